"""The scripted reader: acts well only if a past success or a procedure stands in the prompt, else wanders and looks.

It sees the prompt and the admissible choices, never the oracle, so a memory that shows the right episode helps it and one that
shows none does not: a cheap stand-in for "does the memory reach the agent" in tests and demonstrations. It is no model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.contracts import TaskInfo
from harness.models.backends.base import Request
from harness.models.backends.reader_text import (
    Command,
    Plan,
    Prompt,
    parse_command,
    plan_from,
    plan_from_goal,
    read_prompt,
    type_of,
)
from harness.seeds import rng

WARNED = "works only after"
_THING = re.compile(r"\ban? ([a-z]+ \d+)")
_SEEN = re.compile(r"^on the ([a-z]+ \d+), you see (.*)$|the ([a-z]+ \d+) is open\. in it, you see (.*)$", re.MULTILINE)


class ReaderPolicy:
    """Follows the verbs of a past episode of the same kind, bound to the things of the current goal; explores for what it lacks.

    Option `luck` (0 to 1, default 0) is the share of goals that it can do without any memory, chosen by the seed: without it
    no episode ever succeeds, and a memory that starts empty has nothing to show. Option `hasty` is the share of goals at which
    it puts a thing into a closed place before opening it, unless the prompt says that this works only after opening: a failure
    that recurs until a memory warns of it.
    """

    def __init__(self, options: dict[str, Any], seed: int) -> None:
        self._luck, self._hasty, self._seed = float(options.get("luck", 0.0)), float(options.get("hasty", 0.0)), seed

    def start_task(self, info: TaskInfo) -> None:
        return None

    def act(self, request: Request) -> str:
        text = "\n".join(m["content"] for m in request.call.messages if m["role"] != "system")
        prompt = read_prompt(text)
        plan = plan_from(prompt.memory, prompt.goal)
        if plan is None and rng(self._seed, "scripted", "reader", prompt.goal).random() < self._luck:
            plan = plan_from_goal(prompt.goal)
        hasty = WARNED not in text and rng(self._seed, "scripted", "reader", "hasty", prompt.goal).random() < self._hasty
        return _Episode(prompt, plan or Plan(), request.call.choices or (), hasty).next_action()


class _Episode:
    """The current episode as far as the prompt tells it."""

    def __init__(self, prompt: Prompt, plan: Plan, choices: Sequence[str], hasty: bool = False) -> None:
        self.plan, self.hasty = plan, hasty
        self.carried = ""
        self.refused = {step.command for step in prompt.steps if step.failed}
        self.choices = [(choice, parse_command(choice)) for choice in choices]
        self.done = 0
        self.moved: set[str] = set()
        self.visits: Counter[str] = Counter()
        self.tried: set[str] = set()  # places visited for the pending step
        self.opened: set[str] = set()
        self.here = ""
        self.where: dict[str, str] = {}  # thing → the place where it was seen last
        for step in prompt.steps:
            if not step.failed:
                self._happened(step.command, step.observation)

    @property
    def pending(self) -> tuple[str, tuple[str, ...]] | None:
        return self.plan.steps[self.done] if self.done < len(self.plan.steps) else None

    def next_action(self) -> str:
        if not self.choices:
            return "look"
        if self.pending is None:
            return self._explore()
        verb, types = self.pending
        for choice, command in self.choices:
            if command.verb == verb and self._fits(command, types):
                return choice
        return self._put_into_closed(verb, types) or self._open_here() or self._go_to_known(verb, types) or self._explore()

    def _happened(self, command: Command, observation: str) -> None:
        if command.verb == "go to" and command.things:
            self.here = command.things[0]
            self.visits[self.here] += 1
            self.tried.add(self.here)
        elif command.verb == "open" and command.things:
            self.opened.add(command.things[0])
        for first, inside, second, also in _SEEN.findall(observation.lower()):
            for thing in _THING.findall(inside or also):
                self.where[thing] = first or second
        if command.verb == "take" and command.things:
            self.where.pop(command.things[0], None)
            self.carried = command.things[0]
        if self.pending and command.verb == self.pending[0] and self._fits(command, self.pending[1]):
            self.done += 1
            self.tried = set()
            if command.verb == "move":
                self.moved.add(command.things[0])

    def _fits(self, command: Command, types: tuple[str, ...]) -> bool:
        """Whether a command does a planned step; something already put in its place is not taken again."""
        if command.types[: len(types)] != types:
            return False
        return command.verb != "take" or command.things[0] not in self.moved

    def _put_into_closed(self, verb: str, types: tuple[str, ...]) -> str | None:
        """The mistake of a hasty reader, once for each place."""
        if not self.hasty or verb != "move" or not self.carried or type_of(self.here) != types[-1] or self._open_here() is None:
            return None
        command = f"move {self.carried} to {self.here}"
        return None if parse_command(command) in self.refused else command

    def _open_here(self) -> str | None:
        """Open what we stand at, once."""
        for choice, command in self.choices:
            if command.verb == "open" and command.things == (self.here,) and self.here not in self.opened:
                return choice
        return None

    def _go_to_known(self, verb: str, types: tuple[str, ...]) -> str | None:
        """Go where the step can be done: to the place it names, or where its thing was seen."""
        if len(types) > 1:
            places = [c.things[0] for _, c in self.choices if c.verb == "go to" and type_of(c.things[0]) == types[1]]
        else:
            places = [place for thing, place in self.where.items() if type_of(thing) == types[0] and thing not in self.moved]
        for choice, command in self.choices:
            if command.verb == "go to" and command.things[0] in places and command.things[0] not in self.tried:
                return choice
        return None

    def _explore(self) -> str:
        """Open what is closed here, else go to the place visited least, first where memory found things."""
        opening = self._open_here()
        if opening:
            return opening
        goings = [(choice, c.things[0]) for choice, c in self.choices if c.verb == "go to" and c.things]
        if not goings:
            return next((choice for choice, c in self.choices if not c.interacts), "look")
        order = {place: rank for rank, place in enumerate(self.plan.places)}

        def rank(going: tuple[str, str]) -> tuple[int, int, int]:
            place = going[1]
            number = place.rpartition(" ")[2]
            return self.visits[place], order.get(type_of(place), len(order)), int(number) if number.isdigit() else 0

        return min(goings, key=rank)[0]
