"""Builders for the tests of SEPM: procedures, an open pool, a memory with scripted answers by role."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from harness.contracts import Call, Evidence, Member, MemoryServices, Outcome, StepResult, Task, Trajectory, Turn
from methods.sepm.conditions import Condition
from methods.sepm.config import SepmConfig
from methods.sepm.memory import Sepm
from methods.sepm.procedure import Procedure, Step
from methods.sepm.store import Candidate, PoolStore
from tests.support.fakes import FakeModels

WON = Outcome(1.0, True, "completed", "You won.")
LOST = Outcome(0.0, False, "failed", "You lost.")


def pool(db: sqlite3.Connection | None = None) -> PoolStore:
    made = PoolStore(db or sqlite3.connect(":memory:", isolation_level=None))
    made.open()
    return made


def procedure(title: str = "clean a mug", *instructions: str, **other: Any) -> Procedure:
    steps = tuple(Step(f"s{i}", text) for i, text in enumerate(instructions or ("take mug", "clean mug"), 1))
    edges = tuple((a.id, b.id) for a, b in pairwise(steps))
    return Procedure(title, steps=steps, edges=other.pop("edges", edges), **{"family": "clean", **other})


def candidate(number: int, content: Procedure, **other: Any) -> Candidate:
    values: dict[str, Any] = {"op": "create", "target": None, "base_version": None, "family": "clean", "status": "validated"}
    values |= {"state_verified": True, "c_causal": 1.0, "b_claim": 1.0, "c_claim": 0.2, "risk": 0.0, "task_no": 1}
    return Candidate(id=f"c{number}", procedure=content, **{**values, **other})


def fact(
    entity: str, attribute: str, value: Any, step: int = 1, *, tier: int = 4, source: str = "env", conf: float = 1.0
) -> Evidence:
    return Evidence((entity, attribute), value, tier, source, (step, 0), conf)


def by_role(answers: Mapping[str, str | Callable[[Call], str]]) -> FakeModels:
    """Models that answer by role; "" where the role has no answer."""

    def answer(call: Call) -> str:
        found = answers.get(call.role, "")
        return found(call) if callable(found) else found

    return FakeModels(answer)


def memory(models: Any = None, *, db: sqlite3.Connection | None = None, **config: Any) -> Sepm:
    services = MemoryServices(db or sqlite3.connect(":memory:", isolation_level=None), models or by_role({}), 0, 30)
    made = Sepm(SepmConfig(**config), services)
    made.open()
    return made


def task(number: int = 0, goal: str = "put a clean mug in cabinet", family: str = "clean") -> Task:
    return Task(f"t{number}", number, goal, f"{family}-{goal}", family)


class Play:
    """A fake host: says what an agent says, and does it unless the memory blocks it."""

    def __init__(self, method: Sepm, what: Task, facts: frozenset[str], *agents: str) -> None:
        self.method, self.task = method, what
        self.team = [Member(name, name) for name in agents]
        self.turns: list[Turn] = []
        self.guidance = method.on_task_start(what, facts, self.team)

    def notes(self, agent: str) -> str:
        return self.method.before_action(self._member(agent), len(self.turns))

    def say(self, agent: str, text: str) -> str:
        """The memory's word against a reply; empty if it may be executed."""
        return self.method.review(self._member(agent), len(self.turns), text).blocked

    def do(self, agent: str, action: str, *evidence: Evidence, error: str | None = None, result: str = "ok") -> None:
        turn = Turn(len(self.turns) + 1, agent, action, action, StepResult(result, 0.0, False, error, evidence))
        self.turns.append(turn)
        self.method.after_action(turn)

    def end(self, outcome: Outcome = WON) -> None:
        self.method.on_task_end(self.task, Trajectory("A room.", tuple(self.turns)), outcome)

    def _member(self, agent: str) -> Member:
        return next(m for m in self.team if m.name == agent)


def post(entity: str, attribute: str, value: Any = None) -> Condition:
    return Condition(entity, attribute, value)
