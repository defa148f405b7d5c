"""The memory contract, over the registry: a new method is tested by being there (METHODS.md 1.3, 3, 12.4).

What a method costs and stores is documented in METHODS.md 3; the tables below say it in numbers for the toy environment. SEPM's own
numbers are in tests/methods/sepm.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Call, Guidance, Member, MemoryServices, Outcome, Reply, StepResult, Task, Trajectory, Turn, Usage
from harness.errors import LimitExceeded
from harness.models.backends.scripted_text import utility_answer
from harness.registry import methods
from harness.store import canonical
from harness.store.view import RunView
from tests.support.build import played, scripted
from tests.support.fakes import FakeModels

NAMES = methods().names()
ELSEWHERE = {"sepm"}  # documented and tested in tests/methods/sepm
OURS = sorted(set(NAMES) - ELSEWHERE)
WON, LOST = Outcome(1.0, True, "completed", "You won."), Outcome(0.0, False, "failed", "You lost.")
SOLVER = Member("solver", "solver")
MARK = "xyzzy"

# role → calls at the positions 0..5 of a stream of successes with two environment steps each
EACH = (1,) * 6
CALLS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "none": {},
    "metagpt": {},
    "generative": {"memory.generative.rate": (0, 1, 2, 2, 2, 2)},
    "gmemory": {
        "memory.gmemory.rate": (0, 1, 2, 2, 2, 2),
        "memory.gmemory.keysteps": EACH,
        "memory.gmemory.insights": (0, 0, 0, 0, 5, 0),
    },
    "generative_full": {"memory.generative_full.importance": EACH},
    "metagpt_pool": {"memory.metagpt_pool.plan": EACH},
    "voyager": {"memory.voyager.summarise": EACH},
    "memorybank": {"memory.memorybank.summarise": EACH},
    "chatdev": {},
}
# table → rows a task; the rest of a method's tables grows by what the model says
SIZES: Mapping[str, Mapping[str, int]] = {
    "none": {},
    "chatdev": {},
    "generative_full": {},
    "gmemory": {"memory_trajectory": 1, "memory_vector": 1, "memory_gmemory_state": 2},
    **{
        name: {"memory_trajectory": 1, "memory_vector": 1}
        for name in ("metagpt", "metagpt_pool", "generative", "voyager", "memorybank")
    },
}
# methods that give all they have at the start of a task
SILENT_DURING_TASKS = ("none", "metagpt", "generative", "generative_full", "gmemory", "voyager")


class ScriptedModels(FakeModels):
    """Answers in every role, the same for the same request."""

    def __init__(self) -> None:
        super().__init__(self._say)

    def _say(self, call: Call) -> str:
        import hashlib

        digest = hashlib.sha256(repr((call.role, call.messages)).encode()).hexdigest()
        return "go" if call.phase == "act" else utility_answer(call, digest)

    def complete(self, call: Call) -> Reply:
        return Reply(super().complete(call).text, Usage(10, 5), "scripted")


def memory(name: str) -> tuple[Any, ScriptedModels]:
    kind: Any = methods().load(name)
    models = ScriptedModels()
    made = kind(kind.Config(), MemoryServices(sqlite3.connect(":memory:", isolation_level=None), models, 0))
    made.open()
    return made, models


def task(number: int, key: str = "clean mug") -> Task:
    return Task(f"t{number}", number, f"goal {key}", key, "family")


def live(method: Any, number: int, outcome: Outcome, action: str) -> Guidance:
    """One task with two steps of `action`, every hook being called."""
    guidance = method.on_task_start(task(number), frozenset(), (SOLVER,))
    turns: list[Turn] = []
    for step in (1, 2):
        method.before_action(SOLVER, step - 1)
        method.episode(SOLVER, Trajectory("A room.", tuple(turns)))
        method.review(SOLVER, step - 1, action)
        turns.append(Turn(step, "solver", action, action, StepResult(f"saw {action}")))
        method.after_action(turns[-1])
    method.on_task_end(task(number), Trajectory("A room.", tuple(turns)), outcome)
    assert isinstance(guidance, Guidance)
    return guidance


def sizes(directory: Path) -> dict[str, int]:
    with sqlite3.connect(directory / "stream.sqlite") as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'memory%'")]
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def test_every_method_is_documented_here_or_elsewhere() -> None:
    """A method that is not in the tables yet is held to the rest of the contract, and to nothing it has not promised."""
    assert set(CALLS) == set(SIZES) <= set(OURS)


@pytest.mark.parametrize("name", [name for name in OURS if name in CALLS])
class TestDocumentedCost:
    def test_calls_per_task_by_role(self, name: str, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, method={"name": name}))
        found: dict[str, list[int]] = {}
        for row in view.usage("role", "position", method_only=True):
            role, position = row.group
            if role.startswith("memory."):
                found.setdefault(role, [0] * 6)[position] += row.calls
        assert {role: tuple(calls) for role, calls in found.items()} == CALLS[name]

    def test_the_memorys_calls_are_its_own(self, name: str, tmp_path: Path) -> None:
        """TOK-R5, GMEM-R4: they carry its model key and role, and count in the method's total."""
        view = RunView(played(tmp_path, method={"name": name}))
        rows = [row for row in view.usage("key", "role") if row.group[0] == "memory"]
        assert all(row.group[1].startswith(f"memory.{name}.") for row in rows)
        assert bool(rows) == bool(CALLS[name])

    @pytest.mark.parametrize("count", [6, 20, 40])
    def test_store_sizes(self, name: str, count: int, tmp_path: Path) -> None:
        found = sizes(played(tmp_path, method={"name": name}, env={"n": count}))
        expected = {table: rows * count for table, rows in SIZES[name].items()}
        assert {table: found[table] for table in expected} == expected
        if name in ("none", "chatdev"):
            assert found == {}
        if name == "generative_full":
            assert found["memory_record"] == found["memory_vector"] >= 3 * count
            assert found["memory_reflection"] >= (count >= 20)


@pytest.mark.parametrize("name", OURS)
class TestWhatIsShown:
    def test_the_first_task_of_a_stream_is_shown_nothing_of_others(self, name: str, tmp_path: Path) -> None:
        played(tmp_path / "before", method={"name": name}, env={"n": 6})
        directory = played(tmp_path / "now", method={"name": name}, env={"n": 1})
        events = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
        first = next(event for event in events if event["event"] == "model_call" and event["role"] == "host.single.agent")
        sections = first["messages"][1]["content"].split("## ")
        assert [part.strip() for part in sections if part.startswith(("Past", "Insights", "Briefing"))] == [
            "Past successes of the team",
            "Insights from past tasks",
        ]

    def test_failures_are_stored_and_never_shown(self, name: str) -> None:
        method, models = memory(name)
        for number in range(2):
            live(method, number, LOST, MARK)
        stored = "\n".join(method.services.db.iterdump())
        if name in CALLS:
            assert (MARK in stored) == (name not in ("none", "chatdev"))
        models.calls.clear()
        guidance = method.on_task_start(task(2), frozenset(), (SOLVER,))
        assert MARK not in repr(guidance) and guidance.cards == ()
        assert not any(MARK in message["content"] for call in models.calls for message in call.messages)

    def test_a_success_is_shown_where_there_is_a_store(self, name: str) -> None:
        method, _ = memory(name)
        live(method, 0, WON, MARK)
        assert (MARK in repr(method.on_task_start(task(1), frozenset(), (SOLVER,)))) == (name not in ("none", "chatdev"))


@pytest.mark.parametrize("name", SILENT_DURING_TASKS)
def test_nothing_is_read_during_a_task(name: str) -> None:
    """Between start and end neither the database nor a model is asked."""
    method, models = memory(name)
    for number in range(6):
        live(method, number, WON, "go")
    method.on_task_start(task(6), frozenset(), (SOLVER,))
    seen: list[str] = []
    method.services.db.set_trace_callback(seen.append)
    before = (len(models.calls), len(models.embeddings))
    trajectory = Trajectory("A room.", (Turn(1, "solver", "go", "go", StepResult("ok")),))
    assert method.before_action(SOLVER, 0) == "" and method.episode(SOLVER, trajectory) == trajectory.text()
    assert method.review(SOLVER, 0, "go").text == "go"
    method.after_action(trajectory.turns[0])
    assert seen == [] and (len(models.calls), len(models.embeddings)) == before


@pytest.mark.parametrize("name", NAMES)
class TestTrust:
    def test_streams_do_not_leak_into_each_other(self, name: str, tmp_path: Path) -> None:
        """The same cell after another one in the same process is the same cell."""
        first = played(tmp_path / "a", method={"name": name})
        played(tmp_path / "b", method={"name": name}, env={"length": 3}, run={"seed": 7})
        assert canonical.digest(played(tmp_path / "c", method={"name": name})) == canonical.digest(first)

    def test_a_resumed_stream_equals_an_uninterrupted_one(self, name: str, tmp_path: Path) -> None:
        """Stopped again and again in the middle of a task, by a limit of the stream; every process makes its objects anew."""
        group: dict[str, Any] = {"method": {"name": name}, "env": {"n": 22}}
        whole = list(canonical.lines(played(tmp_path / "whole", **group)))
        stops = 0
        for limit in (7, 31, 68, None):
            run = {"limits": {"stream": {"calls": limit}}}
            try:
                directory = played(tmp_path / "parts", run=run, **group)
            except LimitExceeded:
                stops += 1
        assert stops >= 2 and list(canonical.lines(directory)) == whole

    def test_a_stream_of_failures_ends_in_good_order(self, name: str, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, method={"name": name}, models=scripted("noop"), env={"n": 11, "max_steps": 3}))
        assert view.status == "finished" and not any(row.success for row in view.tasks())

    def test_empty_completions_end(self, name: str, tmp_path: Path) -> None:
        view = RunView(
            played(tmp_path, method={"name": name}, models=scripted("replies", replies=[]), env={"n": 6, "max_steps": 2})
        )
        assert view.status == "finished"


REPLAY = """
import json, sys
from pathlib import Path
from envs.catalogue import CATALOGUE
CATALOGUE["toy"] = "tests.support.toy:Toy"
from harness.store import canonical
from tests.support.build import played
root, mode, out = Path(sys.argv[1]), sys.argv[2], {}
for name in sys.argv[3:]:
    run = {"name": f"{name}-{mode}", "replay": {"mode": mode.split("-")[0], "path": str(root / f"{name}.sqlite")}}
    out[name] = canonical.digest(played(root, method={"name": name}, env={"n": 21}, run=run))
print(json.dumps(out))
"""


def digests(root: Path, mode: str, seed: str) -> dict[str, str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."}
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(root), mode, *NAMES], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_a_replay_does_not_depend_on_pythons_hash_seed(tmp_path: Path) -> None:
    digests(tmp_path, "record", "0")
    assert digests(tmp_path, "replay-1", "1") == digests(tmp_path, "replay-2", "2")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SQLite's fsync is not what is tested here."""
    from harness.store.events import EventLog

    monkeypatch.setattr(EventLog, "sync", lambda self: None)
    yield
