"""The scripted policies: deterministic, honest about being scripted, and the reader helped by memory alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from models_doubles import MemorySink, call, gateway, info, playing, scripted

from harness.contracts import Message, Task
from harness.errors import ConfigError
from harness.models.backends.reader_text import goal_things, parse_command, plan_from, plan_from_goal, read_steps
from harness.models.config import ModelsConfig

CHOICES = ("go to desk 1", "inventory", "look", "take mug 1 from desk 1")


def answers(
    config: ModelsConfig, calls: Sequence[Any], task: Any = None, steps: Callable[[int], int] = lambda n: n, **kw: Any
) -> list[str]:
    at = [0]
    with playing(gateway(config, **kw), task, step=lambda: steps(at[0])) as (models, _):
        texts = []
        for one in calls:
            texts.append(models.complete(one).text)
            at[0] += 1
        return texts


class TestPolicies:
    def test_oracle_plays_the_solution_by_step_then_does_no_harm(self) -> None:
        texts = answers(scripted("oracle"), [call(choices=CHOICES)] * 4, info(oracle=["a", "b"]))
        assert texts == ["a", "b", "look", "look"]

    def test_oracle_says_the_same_to_every_agent_of_a_step(self) -> None:
        assert answers(scripted("oracle"), [call()] * 3, info(oracle=["a", "b"]), steps=lambda n: 1) == ["b"] * 3

    def test_oracle_asks_for_the_solution_once_a_task(self) -> None:
        asked = []
        task = info()
        task = type(task)(task.task, task.seed, oracle=lambda: asked.append(1) or ["a"] * 9, choices=lambda: None)  # type: ignore[func-returns-value]
        answers(scripted("oracle"), [call()] * 5, task)
        assert len(asked) == 1

    def test_oracle_without_a_solution_is_the_users_error(self) -> None:
        with pytest.raises(ConfigError, match="task-7"):
            answers(scripted("oracle"), [call()], info(oracle=None))

    def test_noop_prefers_its_option_then_a_harmless_choice(self) -> None:
        assert answers(scripted("noop"), [call(choices=CHOICES)]) == ["look"]
        assert answers(scripted("noop"), [call(choices=("press red", "wait"))]) == ["wait"]
        assert answers(scripted("noop", noop="pass"), [call(choices=CHOICES)]) == ["pass"]

    def test_random_is_admissible_and_repeats_by_seed_task_and_step(self) -> None:
        calls = [call(choices=CHOICES)] * 20
        first = answers(scripted("random"), calls)
        assert first == answers(scripted("random"), calls) and set(first) <= set(CHOICES) and len(set(first)) > 1
        assert first != answers(scripted("random"), calls, seed=4)
        other = info(task=Task("task-8", 8, "g", "k", "f"))
        assert first != answers(scripted("random"), calls, other)

    def test_random_asks_the_environment_where_the_call_has_no_choices(self) -> None:
        assert answers(scripted("random"), [call()], info(choices=("only",))) == ["only"]

    @pytest.mark.parametrize(("cycle", "last"), [(True, "a"), (False, "")])
    def test_replies_come_in_order_then_again_or_empty(self, cycle: bool, last: str) -> None:
        calls = [call(), call(role="memory.generative.rate", key="memory"), call()]
        assert answers(scripted("replies", replies=["a", "b"], cycle=cycle), calls) == ["a", "b", last]

    def test_replies_begin_again_with_every_task(self) -> None:
        gate = gateway(scripted("replies", replies=["a", "b"]))
        for _ in range(2):
            with playing(gate) as (models, _):
                assert models.complete(call()).text == "a"

    def test_usage_is_an_estimate_and_says_so(self) -> None:
        sink = MemorySink()
        with playing(gateway(scripted("noop", noop="12345")), sink=sink) as (models, _):
            models.complete(call("x" * 41))
        assert (sink.rows[0].input_tokens, sink.rows[0].output_tokens, sink.rows[0].usage_source) == (11, 2, "estimate")


class TestOtherRoles:
    @pytest.mark.parametrize("policy", ["oracle", "noop", "random", "reader"])
    def test_a_rating_can_be_parsed_and_repeats(self, policy: str) -> None:
        rate = call("Rate this.", role="memory.generative.rate", key="memory", phase="retrieve")
        (text,) = answers(scripted(policy), [rate], info(oracle=["a"]))
        label, _, number = text.partition(": ")
        assert label == "Score" and 1 <= int(number) <= 10
        assert answers(scripted(policy), [rate], info(oracle=["a"])) == [text]

    def test_ratings_differ_between_requests(self) -> None:
        rates = [call(f"Rate {n}.", role="memory.generative.rate", phase="retrieve") for n in range(20)]
        assert len(set(answers(scripted("noop"), rates))) > 3

    def test_a_ranker_ranks_and_a_summary_lists_what_was_done(self) -> None:
        rank = call(role="host.dylan.ranker")
        keys = call("> open it\nfine\n> take it\nfine\n>", role="memory.gmemory.keysteps", phase="write")
        assert answers(scripted("noop"), [rank, keys]) == ["1 > 2 > 3", "1. open it\n2. take it"]

    def test_a_schema_is_answered_by_an_instance_of_it(self) -> None:
        schema = {
            "type": "object",
            "properties": {
                "score": {"type": "integer", "minimum": 3},
                "why": {"type": "string", "maxLength": 4},
                "kind": {"enum": ["a", "b"]},
                "steps": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
            },
            "required": ["score", "why", "kind", "steps"],
        }
        (text,) = answers(scripted("noop"), [call(role="sepm.plan", phase="plan", schema=schema)])
        value = json.loads(text)
        assert value["score"] == 3 and value["why"] == "scri" and value["kind"] in ("a", "b") and value["steps"] == [True, True]


class House:
    """A kitchen with ALFWorld's commands and feedback, enough to win or lose at "put a clean X in Y"."""

    PLACES = ("cabinet 1", "cabinet 2", "countertop 1", "fridge 1", "shelf 1", "sinkbasin 1")

    def __init__(self, goal_thing: str, target: str, where: str, grammar: str = "move") -> None:
        self.thing, self.target, self.where, self.grammar = f"{goal_thing} 1", target, where, grammar
        self.here, self.held, self.clean, self.open = "", False, False, {"countertop 1", "shelf 1", "sinkbasin 1"}
        self.goal = f"put a clean {goal_thing} in {target}."
        self.text = [f"You are in the middle of a room. You see {', '.join(self.PLACES)}.", f"Your task is to: {self.goal}"]
        self.done = False

    @property
    def choices(self) -> tuple[str, ...]:
        found = [f"go to {p}" for p in self.PLACES if p != self.here] + ["inventory", "look"]
        if self.here and self.here not in self.open:
            found.append(f"open {self.here}")
        elif self.here:
            if self.held:
                found.append(
                    f"move {self.thing} to {self.here}" if self.grammar == "move" else f"put {self.thing} in/on {self.here}"
                )
            elif self.where == self.here:
                found.append(f"take {self.thing} from {self.here}")
        if self.held and self.here.startswith("sinkbasin"):
            found.append(f"clean {self.thing} with {self.here}")
        return tuple(sorted(found))

    def step(self, action: str) -> None:
        self.text += [f"> {action}", self._do(action) if action in self.choices else "Nothing happens."]

    def _do(self, action: str) -> str:
        seen = f"you see a {self.thing}." if self.where == self.here and not self.held else "you see nothing."
        if action.startswith("go to"):
            self.here = action[6:]
            seen = f"you see a {self.thing}." if self.where == self.here and not self.held else "you see nothing."
            return f"You arrive at {self.here}. " + (
                f"On the {self.here}, {seen}" if self.here in self.open else f"The {self.here} is closed."
            )
        if action.startswith("open"):
            self.open.add(self.here)
            return f"You open the {self.here}. The {self.here} is open. In it, {seen}"
        if action.startswith("take"):
            self.held = True
            return f"You pick up the {self.thing} from the {self.here}."
        if action.startswith("clean"):
            self.clean = True
            return f"You clean the {self.thing} using the {self.here}."
        if action.startswith(("move", "put")):
            self.held, self.where = False, self.here
            self.done = self.clean and self.here.startswith(self.target)
            return f"You move the {self.thing} to the {self.here}."
        return "You look around."


PAST = """## Past successes of the team
Task: clean some plate and put it in cabinet.
You are in the middle of a room. You see cabinet 1, sinkbasin 1, stoveburner 1.
Your task is to: clean some plate and put it in cabinet.
> go to stoveburner 1
On the stoveburner 1, you see a plate 2.
> take plate 2 from stoveburner 1
You pick up the plate 2 from the stoveburner 1.
> clean plate 2 with fridge 1
Nothing happens.
> go to sinkbasin 1
On the sinkbasin 1, you see nothing.
> clean plate 2 with sinkbasin 1
You clean the plate 2 using the sinkbasin 1.
> go to cabinet 1
The cabinet 1 is closed.
> open cabinet 1
You open the cabinet 1. The cabinet 1 is open. In it, you see nothing.
> move plate 2 to cabinet 1
You move the plate 2 to the cabinet 1."""
PROCEDURE = """## Procedures
Procedure 1: clean some plate and put it in cabinet
1. take plate from stoveburner
2. clean plate with sinkbasin
3. move plate to cabinet"""
EXAMPLE = PAST.replace("## Past successes of the team", "## Examples")


def play(house: House, memory: str, steps: int = 30, **options: Any) -> list[str]:
    """The verbs the reader used."""
    actions: list[str] = []
    with playing(gateway(scripted("reader", **options))) as (models, _):
        while not house.done and len(actions) < steps:
            text = f"{memory}\n\n## Current task\n" + "\n".join([*house.text, ">"])
            messages: tuple[Message, ...] = (
                {"role": "system", "content": "Solve it.\n> take mug 1 from desk 1"},
                {"role": "user", "content": text},
            )
            actions.append(models.complete(call(messages=messages, stop=("\n",), choices=house.choices)).text)
            house.step(actions[-1])
    return [parse_command(action).verb for action in actions]


class TestReader:
    @pytest.mark.parametrize("memory", [PAST, PROCEDURE, f"{EXAMPLE}\n\n{PAST}\n\n## Insights from past tasks"])
    @pytest.mark.parametrize("where", ["countertop 1", "cabinet 2", "fridge 1"])
    @pytest.mark.parametrize("grammar", ["move", "put"])
    def test_a_past_success_or_a_procedure_lets_it_win_with_other_things_elsewhere(
        self, memory: str, where: str, grammar: str
    ) -> None:
        house = House("mug", "shelf", where, grammar)
        verbs = play(house, memory)
        assert house.done, house.text
        assert [v for v in verbs if v in ("take", "clean", "move")] == ["take", "clean", "move"]

    @pytest.mark.parametrize(
        "memory", ["", EXAMPLE, "## Past successes of the team\n\n## Insights from past tasks\n1. Be quick."]
    )
    def test_without_one_it_wanders_and_touches_nothing(self, memory: str) -> None:
        house = House("mug", "shelf", "countertop 1")
        verbs = play(house, memory)
        assert not house.done and set(verbs) <= {"go to", "open"}
        assert len({line for line in house.text if line.startswith("> go to")}) == len(House.PLACES)

    def test_it_never_looks_at_the_oracle(self) -> None:
        def forbidden() -> None:
            raise AssertionError("the reader asked for the oracle")

        task = info()
        task = type(task)(task.task, task.seed, oracle=forbidden, choices=lambda: None)
        with playing(gateway(scripted("reader")), task) as (models, _):
            models.complete(call("## Current task\nYour task is to: x", choices=("look",)))

    def test_luck_is_a_share_of_goals_that_it_can_do_by_itself(self) -> None:
        def won(luck: float) -> int:
            wins = 0
            for name in ("mug", "plate", "pan", "fork", "knife", "egg", "bowl", "cup", "pot", "apple"):
                house = House(name, "shelf", "countertop 1")
                play(house, "", luck=luck)
                wins += house.done
            return wins

        assert (won(0.0), won(1.0)) == (0, 10)
        assert 1 <= won(0.5) <= 9 and won(0.5) == won(0.5)

    def test_only_an_episode_of_the_same_kind_is_followed(self) -> None:
        heat = PAST.replace("clean some plate", "heat some plate").replace(
            "> clean plate 2 with sinkbasin 1", "> heat plate 2 with microwave 1"
        )
        both = heat.partition("\n")[2] + "\n\n" + PAST.partition("\n")[2]
        plan = plan_from(both, "put a clean mug in shelf.")
        assert plan is not None and [s[0] for s in plan.steps] == ["take", "clean", "move"]
        assert plan_from(heat, "put a clean mug in shelf.") is None
        assert plan_from(PAST, "put two mug in shelf.") is None

    def test_both_grammars_are_the_same_command(self) -> None:
        assert parse_command("put mug 1 in/on desk 2") == parse_command("move mug 1 to desk 2")
        assert parse_command("go to sink basin 1").things == ("sink basin 1",)
        assert parse_command("press red").verb == "press"

    def test_a_goal_names_its_things_in_order(self) -> None:
        assert goal_things("put two soapbar in garbagecan.") == ["soapbar", "garbagecan"]
        assert goal_things("look at bowl under the desklamp.") == ["bowl", "desklamp"]
        assert [s[0] for s in plan_from_goal("put two soapbar in garbagecan").steps] == ["take", "move", "take", "move"]
        assert [s[0] for s in plan_from_goal("examine the book with the desklamp").steps] == ["take", "use"]

    def test_the_prompt_marker_is_no_action_and_failures_are_seen(self) -> None:
        steps = read_steps("> take x from y\nNothing happens.\n> look\nfine\n>")
        assert [(s.command.verb, s.failed) for s in steps] == [("take", True), ("look", False)]
