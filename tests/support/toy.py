"""A tiny environment for tests of the harness: press the right buttons in order. No data, no engine, microseconds a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Evidence, Outcome, Problem, StepResult, Task
from harness.errors import EnvironmentCrashed

BUTTONS = ("red", "green", "blue", "white")


@dataclass
class ToyConfig:
    """`crashes` maps a task index to how many attempts at it crash; `missing` makes the data missing."""

    name: str = "toy"
    n: int = 6
    max_steps: int = 8
    length: int = 2
    missing: bool = False
    crashes: dict[int, int] = field(default_factory=dict)


class ToySession:
    action_mode = "line"
    noop_action = "look"
    instructions = "Answer with 'press <colour>'."
    few_shots: tuple[str, ...] = ()

    def __init__(self, task: Task, wanted: Sequence[str]) -> None:
        self.observation = f"A panel with buttons. {task.goal}"
        self.facts = frozenset({f"family:{task.family}"})
        self._wanted, self._pressed, self._step = list(wanted), [], 0

    @property
    def choices(self) -> tuple[str, ...]:
        return ("look", *(f"press {colour}" for colour in BUTTONS))

    def normalise(self, text: str) -> str:
        return text.strip().lower()

    def step(self, action: str) -> StepResult:
        self._step += 1
        if action not in self.choices:
            return StepResult("Nothing happens.", -1.0)
        if action == "look":
            return StepResult("Buttons: " + ", ".join(BUTTONS))
        self._pressed.append(action.split()[1])
        won = self._pressed[-len(self._wanted) :] == self._wanted
        evidence = Evidence(("button", "pressed"), self._pressed[-1], 4, "panel", (self._step, 0))
        return StepResult(f"You press the {self._pressed[-1]} button.", float(won), won, None, (evidence,))

    def observe(self, keys: Sequence[tuple[str, str]]) -> None:
        return None

    def outcome(self) -> Outcome:
        won = self._pressed[-len(self._wanted) :] == self._wanted
        return Outcome(float(won), won, "completed" if won else "failed", "You won." if won else "You did not win.")


class Toy:
    Config = ToyConfig
    name = "toy"
    version = "1-A"
    action_mode = "line"

    def __init__(self, config: ToyConfig) -> None:
        self.config = config
        self.max_steps = config.max_steps
        self.attempts: dict[int, int] = {}

    @property
    def data_digest(self) -> str:
        return f"toy-{self.config.n}-{self.config.length}"

    @property
    def provenance(self) -> Mapping[str, Any]:
        return {"source": "toy"}

    def check(self) -> list[Problem]:
        return [Problem("The toy's data is missing", "make data-toy")] if self.config.missing else []

    def tasks(self) -> Sequence[Task]:
        families = ("pair", "other")
        return [
            Task(f"toy-{i}", i, f"Press {' then '.join(self._wanted(i))}.", f"{families[i % 2]}-press", families[i % 2])
            for i in range(self.config.n)
        ]

    def _wanted(self, index: int) -> list[str]:
        return [BUTTONS[(index + k) % len(BUTTONS)] for k in range(self.config.length)]

    def oracle(self, task: Task) -> Sequence[str]:
        return [f"press {colour}" for colour in self._wanted(task.index)]

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[ToySession]:
        count = self.attempts[task.index] = self.attempts.get(task.index, 0) + 1
        if count <= self.config.crashes.get(task.index, 0):
            raise EnvironmentCrashed(f"the panel of {task.task_id} caught fire")
        yield ToySession(task, self._wanted(task.index))
