"""Memory methods: what each stores, shows and costs (METHODS.md 3.1–3.3); the contract over the registry is in test_contract."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts import Call, Guidance, MemoryServices, Outcome, Task
from harness.store.view import RunView
from methods.generative import Generative
from methods.metagpt import MetaGPT
from methods.rating import parse_rating
from methods.trajectories import TrajectoryStore
from tests.support.build import played
from tests.support.fakes import FakeModels, trajectory

WON, LOST = Outcome(1.0, True, "completed", "You won."), Outcome(0.0, False, "failed", "You lost.")


def task(number: int, key: str) -> Task:
    return Task(f"t{number}", number, f"goal of {key}", key, "family")


def memory(kind: Any, models: Any = None, **config: Any) -> Any:
    db = sqlite3.connect(":memory:", isolation_level=None)
    made = kind(kind.Config(**config), MemoryServices(db, models or FakeModels(lambda call: "Score: 5"), 0))
    made.open()
    return made


def trajectories(db: sqlite3.Connection) -> TrajectoryStore:
    store = TrajectoryStore(MemoryServices(db, FakeModels(lambda call: ""), 0), "hash256", "memory.test.embed")
    store.open()
    return store


def start(method: Any, number: int, key: str) -> Guidance:
    guidance = method.on_task_start(task(number, key), frozenset(), ())
    assert isinstance(guidance, Guidance)
    return guidance


class TestStore:
    def test_the_nearest_comes_first_and_the_older_of_equals(self) -> None:
        store = trajectories(sqlite3.connect(":memory:"))
        for number, key in enumerate(("clean mug", "heat egg", "clean mug", "clean a plate")):
            store.add(task(number, key), trajectory(), WON)
        assert [record.id for record in store.nearest("clean mug", 3, success=True)] == [1, 3, 4]

    def test_failures_are_stored_and_found_only_when_asked_for(self) -> None:
        store = trajectories(sqlite3.connect(":memory:"))
        store.add(task(0, "clean mug"), trajectory(), LOST)
        assert len(store) == 1
        assert store.nearest("clean mug", 5, success=True) == []
        assert [record.success for record in store.nearest("clean mug", 5, success=False)] == [False]

    @given(st.lists(st.tuples(st.sampled_from(["clean mug", "heat egg", "cool tomato", "look"]), st.booleans()), max_size=40))
    def test_a_reopened_store_answers_as_the_one_that_wrote(self, items: list[tuple[str, bool]]) -> None:
        db = sqlite3.connect(":memory:")
        store = trajectories(db)
        for number, (key, success) in enumerate(items):
            store.add(task(number, key), trajectory(("look", key)), WON if success else LOST)
        again = trajectories(db)
        for success in (True, False):
            assert again.nearest("cool the egg", 4, success=success) == store.nearest("cool the egg", 4, success=success)


class TestMetaGPT:
    def test_it_shows_the_nearest_success_and_calls_no_model(self) -> None:
        models = FakeModels(lambda call: "")
        method = memory(MetaGPT, models)
        method.on_task_end(task(0, "clean mug"), trajectory(("wash", "ok")), WON)
        method.on_task_end(task(1, "heat egg"), trajectory(("cook", "ok")), WON)
        (card,) = start(method, 2, "clean a mug").cards
        assert "> wash" in card.trajectory and "goal of clean mug" in card.task
        assert models.calls == []

    def test_failed_trajectories_are_never_shown(self) -> None:
        method = memory(MetaGPT)
        method.on_task_end(task(0, "clean mug"), trajectory(("break", "ok")), LOST)
        assert start(method, 1, "clean mug").cards == ()


class TestGenerative:
    def test_it_rates_twice_as_many_as_it_shows_and_keeps_the_best(self) -> None:
        models = FakeModels(lambda call: "Score: 9" if "> cook" in call.messages[1]["content"] else "Score: 2")
        method = memory(Generative, models)
        for number, (key, act) in enumerate((("clean mug", "wash"), ("clean egg", "cook"), ("look at bowl", "see"))):
            method.on_task_end(task(number, key), trajectory((act, "ok")), WON)
        (card,) = start(method, 3, "clean mug").cards
        assert "> cook" in card.trajectory
        assert models.roles() == ["memory.generative.rate"] * 2
        assert {call.key for call in models.calls} == {"memory"}

    def test_among_equal_ratings_the_nearer_stays_first(self) -> None:
        method = memory(Generative)
        for number, (key, act) in enumerate((("heat egg", "cook"), ("clean mug", "wash"))):
            method.on_task_end(task(number, key), trajectory((act, "ok")), WON)
        assert "> wash" in start(method, 2, "clean mug").cards[0].trajectory

    def test_an_empty_store_costs_nothing(self) -> None:
        models = FakeModels(lambda call: "")
        assert start(memory(Generative, models), 0, "clean mug").cards == ()
        assert models.calls == []

    @pytest.mark.parametrize(
        ("text", "rating"),
        [("Score: 7", 7), ("7/10", 7), ("I give 3, not 9", 3), ("no idea", 0), ("", 0), ("9" * 5000, 999999999)],
    )
    def test_a_rating_is_the_first_integer_else_zero(self, text: str, rating: int) -> None:
        assert parse_rating(text) == rating


class TestFormsOfTheComparison:
    """What the published forms cost and store on the toy environment."""

    @pytest.mark.parametrize(
        ("name", "expected"), [("none", {}), ("metagpt", {}), ("generative", {1: 1, 2: 2, 3: 2, 4: 2, 5: 2})]
    )
    def test_calls_per_task_are_as_documented(self, name: str, expected: dict[int, int], tmp_path: Path) -> None:
        view = RunView(played(tmp_path, method={"name": name}))
        calls: dict[int, int] = {}
        for row in view.usage("position", "key"):
            if row.group[1] == "memory":
                calls[row.group[0]] = row.calls
        assert calls == expected

    @pytest.mark.parametrize("name", ["none", "metagpt", "generative"])
    def test_the_store_has_a_record_a_task_unless_there_is_none(self, name: str, tmp_path: Path) -> None:
        directory = played(tmp_path, method={"name": name}, env={"n": 20})
        with sqlite3.connect(directory / "stream.sqlite") as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'memory%'")}
            counts = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
        assert counts == ([] if name == "none" else [20, 20])


def test_calls_carry_the_phase_they_belong_to() -> None:
    models = FakeModels(lambda call: "Score: 5")
    method = memory(Generative, models)
    method.on_task_end(task(0, "clean mug"), trajectory(), WON)
    start(method, 1, "clean mug")
    assert isinstance(models.calls[0], Call) and models.calls[0].phase == "retrieve"
