"""An embedding call that the endpoint refuses is an agent failure: the task commits, and the store stays in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from harness.contracts import Member, MemoryServices, Outcome, StepResult, Task, Trajectory, Turn
from harness.errors import ContentRefused
from harness.registry import methods
from methods.gmemory.method import GMemory
from methods.trajectories import TrajectoryStore
from tests.support.fakes import FakeModels, trajectory

WON = Outcome(1.0, True, "completed", "You won.")
SOLVER = Member("solver", "solver")
# the methods that keep trajectories or records with vectors
STORING = ("generative", "generative_full", "gmemory", "memorybank", "metagpt", "metagpt_pool", "voyager")


class Refusing(FakeModels):
    """Answers well; refuses to embed while `refuse` is set."""

    refuse = False

    def embed(self, role: str, texts: Sequence[str], **keywords: Any) -> Any:
        if self.refuse:
            raise ContentRefused("The request was refused.")
        return super().embed(role, texts, **keywords)


def task(number: int) -> Task:
    return Task(f"t{number}", number, f"goal {number}", f"clean mug {number}", "family")


def opened(name: str, models: FakeModels, db: sqlite3.Connection) -> Any:
    kind: Any = methods().load(name)
    made = kind(kind.Config(embedder="hash256"), MemoryServices(db, models, 0))
    made.open()
    return made


def play(method: Any, number: int) -> None:
    method.on_task_start(task(number), frozenset(), (SOLVER,))
    method.on_task_end(task(number), trajectory(("look", "ok")), WON)


def counts(db: sqlite3.Connection) -> dict[str, int]:
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'memory%'")]
    kept = ("memory_trajectory", "memory_record", "memory_vector")
    return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names if name in kept}


@pytest.mark.parametrize("name", STORING)
class TestRefusal:
    def test_no_half_record_is_left_and_the_next_task_is_stored(self, name: str) -> None:
        db = sqlite3.connect(":memory:", isolation_level=None)
        models = Refusing(lambda call: "Score: 5")
        method = opened(name, models, db)
        play(method, 0)
        before = counts(db)
        method.on_task_start(task(1), frozenset(), (SOLVER,))
        models.refuse = True
        if name != "gmemory":  # it has the vector of the task's start
            with pytest.raises(ContentRefused):
                method.on_task_end(task(1), trajectory(("look", "ok")), WON)
            assert counts(db) == before
        models.refuse = False
        play(opened(name, models, db), 2)
        play(opened(name, models, db), 3)
        assert len(set(counts(db).values())) == 1 and counts(db)["memory_vector"] == 3 * before["memory_vector"]


def test_a_start_that_failed_leaves_no_vector_of_another_task() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    models = Refusing(lambda call: "Score: 5")
    method = opened("gmemory", models, db)
    play(method, 0)
    method.on_task_start(task(1), frozenset(), (SOLVER,))
    models.refuse = True
    with pytest.raises(ContentRefused):
        method.on_task_start(task(2), frozenset(), (SOLVER,))
    with pytest.raises(ContentRefused):
        method.on_task_end(task(2), trajectory(("look", "ok")), WON)
    assert counts(db) == {"memory_trajectory": 1, "memory_vector": 1}


def test_the_clock_of_the_memory_stream_counts_a_task_whose_records_were_refused() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    models = Refusing(lambda call: "Score: 5")
    method = opened("generative_full", models, db)
    method.on_task_start(task(0), frozenset(), (SOLVER,))
    models.refuse = True
    with pytest.raises(ContentRefused):
        method.on_task_end(task(0), trajectory(("look", "ok")), WON)
    assert db.execute("SELECT tasks FROM memory_clock").fetchone() == (1,)


class TestAnOlderFile:
    """Files that an older version left with a record without a vector are opened, and go on."""

    def broken(self) -> sqlite3.Connection:
        """Records 1 to 3, of which 3 has no vector."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        for number, key in enumerate(("clean mug", "heat egg"), 1):
            self.store(db).add(Task(f"t{number}", number, key, key, "family"), trajectory(("look", key)), WON)
        db.execute("INSERT INTO memory_trajectory VALUES (3, 'cool tomato', 'lost', 'lost', 0, NULL, NULL)")
        return db

    def store(self, db: sqlite3.Connection) -> TrajectoryStore:
        made = TrajectoryStore(MemoryServices(db, FakeModels(lambda call: ""), 0), "hash256", "memory.test.embed")
        made.open()
        return made

    def test_it_is_not_counted_nor_found_and_its_id_is_not_given_again(self) -> None:
        db = self.broken()
        store = self.store(db)
        assert len(store) == 2 and store.all_keys() == ["clean mug", "heat egg"]
        assert store.add(Task("t4", 4, "slice bread", "slice bread", "family"), trajectory(("cut", "bread")), WON) == 4
        for again in (store, self.store(db)):
            assert [record.key for record in again.nearest("slice bread", 1, success=True)] == ["slice bread"]
            assert again.successes([1, 4]) == [1, 4] and again.nearest("lost", 9, success=False) == []
            assert again.all_keys() == ["clean mug", "heat egg", "slice bread"] and len(again) == 3

    def test_gmemory_learns_from_it(self) -> None:
        db = self.broken()
        method = GMemory(
            GMemory.Config(embedder="hash256", start=1, every=1, points=9, merge_every=4),
            MemoryServices(db, FakeModels(lambda call: "1. ADD: Look first, because it helps."), 0),
        )
        method.open()
        for number in range(4, 8):
            method.on_task_start(task(number), frozenset(), (SOLVER,))
            turn = Turn(1, "solver", "look", "look", StepResult("ok"))
            method.on_task_end(task(number), Trajectory("A room.", (turn,)), WON)
        assert db.execute("SELECT max(id), count(*) FROM memory_trajectory").fetchone() == (7, 7)
        assert db.execute("SELECT count(*) FROM memory_gmemory_edge WHERE older = 3 OR newer = 3").fetchone() == (0,)
