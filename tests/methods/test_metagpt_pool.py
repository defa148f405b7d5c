"""method=metagpt_pool: publish and subscribe, the procedure, its bounds (METHODS.md 3.3, the variant)."""

from __future__ import annotations

import sqlite3
from typing import Any

from harness.contracts import Call, Guidance, Member, MemoryServices, Outcome, Reply, StepResult, Task, Turn, Usage
from methods.metagpt_pool.method import MetaGPTPool
from methods.metagpt_pool.pool import Pool, Role, RoleMemory
from tests.support.fakes import FakeModels, trajectory

SOLVER, RANKER = Member("solver", "solver"), Member("ranker", "ranker", acts=False)
WON = Outcome(1.0, True, "completed", "You won.")
TASK = Task("t", 0, "goal clean", "clean", "family")


class TestPool:
    def test_a_message_reaches_those_it_is_for_and_never_its_sender(self) -> None:
        pool = Pool()
        a, b, c = (pool.enter(Role(name, frozenset({"Plan"}))) for name in "abc")
        pool.publish("for all", "Plan", "a")
        pool.publish("for b", "Other", "a", ["b"])
        assert [m.content for m in a.observe()] == []
        assert [m.content for m in b.observe()] == ["for all", "for b"]
        assert [m.content for m in c.observe()] == ["for all"] and pool.idle

    def test_news_are_what_is_watched_or_addressed_and_not_known_yet(self) -> None:
        pool = Pool()
        role = pool.enter(Role("a", frozenset({"Plan"})))
        message = pool.publish("p", "Plan", "b")
        pool.publish("o", "Observation", "b")
        assert [m.content for m in role.observe()] == ["p"] and role.idle
        role.inbox.append(message)
        assert role.observe() == []

    def test_a_late_role_hears_what_was_said_to_everybody(self) -> None:
        pool = Pool()
        pool.publish("p", "Plan", "b")
        pool.publish("x", "Plan", "b", ["c"])
        assert [m.content for m in pool.enter(Role("a", frozenset({"Plan"}))).observe()] == ["p"]

    def test_the_history_keeps_all_and_none_of_them_means_none(self) -> None:
        """The published get(k=0) returns everything, since -0 slices from the start."""
        pool, memory = Pool(), RoleMemory()
        for text in "xyz":
            memory.add(pool.publish(text, "Plan", "b"))
        assert len(pool.history) == 3
        assert ([m.content for m in memory.get()], memory.get(0), [m.content for m in memory.get(2)]) == (
            ["x", "y", "z"],
            [],
            ["y", "z"],
        )
        assert memory.latest("Plan") == pool.history[2] and memory.latest("Verdict") is None


def memory(answer: Any, **config: Any) -> tuple[MetaGPTPool, FakeModels]:
    models = FakeModels(answer)
    db = sqlite3.connect(":memory:", isolation_level=None)
    made = MetaGPTPool(MetaGPTPool.Config(**{"embedder": "hash256", **config}), MemoryServices(db, models, 0))
    made.open()
    return made, models


def start(method: MetaGPTPool) -> Guidance:
    return method.on_task_start(TASK, frozenset(), (SOLVER, RANKER))


def step(method: MetaGPTPool, number: int) -> str:
    note = method.before_action(SOLVER, number)
    method.after_action(Turn(number + 1, "solver", f"act {number}", "", StepResult("ok")))
    return note


def plans(call: Call) -> str:
    return "1. Do it." if call.role.endswith("plan") else "REPLAN: too slow."


def short(models: FakeModels) -> list[str]:
    return [role.rpartition(".")[2] for role in models.roles()]


class TestProcedure:
    def test_the_plan_stands_in_every_note_of_an_executor(self) -> None:
        method, models = memory(plans)
        start(method)
        assert [step(method, n) for n in range(3)] == ["Plan of the team: 1. Do it."] * 3
        assert short(models) == ["plan"] and set(method.pool.roles) == {"planner", "verifier", "solver"}

    def test_a_negative_verdict_leads_to_a_new_plan_for_three_rounds(self) -> None:
        method, models = memory(plans, verify_every=2)
        start(method)
        for number in range(12):
            step(method, number)
        assert short(models) == ["plan", "verify", "plan", "verify", "plan"]
        assert "Verdict: REPLAN: too slow." in models.calls[2].messages[1]["content"]
        assert "> act 2\nok\n> act 3\nok" in models.calls[3].messages[1]["content"]

    def test_a_positive_verdict_changes_nothing(self) -> None:
        method, models = memory(lambda call: "1. Do it." if call.role.endswith("plan") else "OK", verify_every=2)
        start(method)
        notes = [step(method, number) for number in range(6)]
        assert short(models) == ["plan"] + ["verify"] * 3 and set(notes) == {"Plan of the team: 1. Do it."}

    def test_no_round_begins_once_the_budget_is_spent(self) -> None:
        method, models = memory(plans, verify_every=2, budget_tokens=3)
        start(method)
        for number in range(8):
            step(method, number)
        assert short(models) == ["plan", "verify"]  # at 2 tokens a call

    def test_empty_answers_end(self) -> None:
        method, models = memory(lambda call: "", verify_every=1)
        start(method)
        assert [step(method, number) for number in range(5)] == [""] * 5
        assert len(models.calls) <= 1 + 5

    def test_nothing_of_the_pool_outlives_a_task(self) -> None:
        method, _ = memory(plans)
        start(method)
        step(method, 0)
        method.on_task_end(TASK, trajectory(("act", "ok")), WON)
        assert method.pool.history == []
        assert len(start(method).cards) == 1

    def test_an_agent_that_was_not_in_the_team_gets_the_plan_too(self) -> None:
        method, _ = memory(plans)
        start(method)
        assert method.before_action(Member("late", "solver"), 0) == "Plan of the team: 1. Do it."


def test_the_guard_counts_what_the_gateway_reports() -> None:
    class Dear(FakeModels):
        def complete(self, call: Call) -> Reply:
            return Reply(super().complete(call).text, Usage(900, 200), "fake")

    db = sqlite3.connect(":memory:", isolation_level=None)
    method = MetaGPTPool(
        MetaGPTPool.Config(embedder="hash256", verify_every=1, budget_tokens=1000), MemoryServices(db, Dear(plans), 0)
    )
    method.open()
    start(method)
    step(method, 0)
    assert len(method.services.models.calls) == 1  # type: ignore[attr-defined]
