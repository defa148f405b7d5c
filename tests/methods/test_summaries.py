"""voyager, memorybank and chatdev: METHODS.md 3.5."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from harness.contracts import Call, Member, MemoryServices, Outcome, Task, Trajectory
from methods.chatdev import ChatDev
from methods.summaries import MemoryBank, Voyager, retained
from tests.support.fakes import FakeModels, FakeSession, SpyMemory, session, team_memory, trajectory

WON, LOST = Outcome(1.0, True, "completed", "You won."), Outcome(0.0, False, "failed", "You lost.")
SOLVER = Member("solver", "solver")


def task(number: int, key: str) -> Task:
    return Task(f"t{number}", number, f"goal {key}", key, "family")


def memory(kind: Any, models: FakeModels, **config: Any) -> Any:
    made = kind(kind.Config(**config), MemoryServices(sqlite3.connect(":memory:", isolation_level=None), models, 0))
    made.open()
    return made


def steps(count: int) -> Trajectory:
    return trajectory(*((f"act {n}", f"saw {n}") for n in range(1, count + 1)))


@pytest.mark.parametrize("kind", [Voyager, MemoryBank])
class TestSummaries:
    def test_an_episode_is_filed_under_its_summary(self, kind: Any) -> None:
        models = FakeModels(lambda call: "heat egg\nin the microwave." if "wash" in call.messages[1]["content"] else "clean mug.")
        method = memory(kind, models, embedder="hash256")
        method.on_task_end(task(0, "a"), trajectory(("wash", "ok")), WON)
        method.on_task_end(task(1, "b"), trajectory(("cook", "ok")), WON)
        assert models.roles() == [f"memory.{kind.name}.summarise"] * 2
        (card,) = method.on_task_start(task(2, "heat egg"), frozenset(), ()).cards
        assert "> wash" in card.trajectory and card.task == "goal a\nYou won."
        assert len(models.calls) == 2

    def test_a_summary_is_one_line_of_at_most_six_sentences(self, kind: Any) -> None:
        method = memory(kind, FakeModels(lambda call: "One.\nTwo. Three. Four. Five. Six. Seven."), embedder="hash256")
        method.on_task_end(task(0, "a"), steps(1), WON)
        (key,) = method.services.db.execute("SELECT key FROM memory_trajectory").fetchone()
        assert key == "One. Two. Three. Four. Five. Six."

    def test_without_a_summary_the_key_stays(self, kind: Any) -> None:
        method = memory(kind, FakeModels(lambda call: ""), embedder="hash256")
        method.on_task_end(task(0, "clean mug"), steps(1), WON)
        assert method.store.record(1).key == "clean mug"

    def test_failures_are_stored_and_never_shown(self, kind: Any) -> None:
        method = memory(kind, FakeModels(lambda call: "a."), embedder="hash256")
        method.on_task_end(task(0, "a"), steps(1), LOST)
        assert method.on_task_start(task(1, "a"), frozenset(), ()).cards == () and len(method.store) == 1


class TestForgetting:
    def test_the_last_seven_steps_are_retained(self) -> None:
        """exp(-age / 5) >= 0.3 up to an age of 6."""
        assert [age for age in range(20) if retained(age)] == [0, 1, 2, 3, 4, 5, 6]

    def test_older_steps_are_not_in_the_prompt(self) -> None:
        method = memory(MemoryBank, FakeModels(lambda call: ""), embedder="hash256")
        assert method.episode(SOLVER, steps(7)) == steps(7).text()
        text = method.episode(SOLVER, steps(9))
        assert text.startswith("A room.\n[2 earlier steps are forgotten]\n> act 3\n") and text.endswith("> act 9\nsaw 9")
        assert "act 2" not in text

    def test_voyager_forgets_nothing(self) -> None:
        assert memory(Voyager, FakeModels(lambda call: ""), embedder="hash256").episode(SOLVER, steps(30)) == steps(30).text()


class TestChatDev:
    def test_every_tenth_prompt_brings_a_summary(self) -> None:
        models = FakeModels(lambda call: "Seen\nthe room.")
        method = memory(ChatDev, models)
        method.on_task_start(task(0, "a"), frozenset(), ())
        texts = [method.episode(SOLVER, steps(n)) for n in range(25)]
        assert len(models.calls) == 2
        assert texts[8] == steps(8).text()
        assert texts[9] == "A room.\n[The first 9 steps: Seen the room.]"
        assert texts[10] == "A room.\n[The first 9 steps: Seen the room.]\n> act 10\nsaw 10"
        assert texts[19].startswith("A room.\n[The first 19 steps")
        # the second summary is made from the first one and what came after it
        assert "[The first 9 steps: Seen the room.]\n> act 10" in models.calls[1].messages[1]["content"]

    def test_a_new_task_begins_without_one(self) -> None:
        method = memory(ChatDev, FakeModels(lambda call: "Seen."), every=1)
        for _ in range(2):
            method.on_task_start(task(0, "a"), frozenset(), ())
            assert method.episode(SOLVER, steps(0)) == "A room."
            assert "Seen" in method.episode(SOLVER, steps(1))

    def test_an_empty_summary_leaves_the_episode_as_it_is(self) -> None:
        models = FakeModels(lambda call: "")
        method = memory(ChatDev, models, every=1)
        assert method.episode(SOLVER, steps(3)) == steps(3).text() and len(models.calls) == 1

    def test_prompts_count_whichever_agent_they_are_for(self) -> None:
        models = FakeModels(lambda call: "Seen.")
        method = memory(ChatDev, models, every=4)
        for name in "abab":
            method.episode(Member(name, "solver"), steps(2))
        assert len(models.calls) == 1


def test_a_host_shows_the_episode_as_the_memory_gives_it() -> None:
    from methods.hosts.single import SingleAgent

    class Short(SpyMemory):
        def episode(self, agent: Member, trajectory: Trajectory) -> str:
            return f"[{len(trajectory.turns)} steps]"

    models, inner, method = FakeModels(lambda call: "look"), FakeSession(), Short()
    SingleAgent(SingleAgent.Config(), 0).play(session(inner, method, max_steps=2), team_memory(method), models)
    assert [call.messages[1]["content"].endswith(f"\n[{n} steps]\n>") for n, call in enumerate(models.calls)] == [True, True]
    assert isinstance(models.calls[0], Call)
