"""`memarena replay`: everything is compared, what differs is named, and nothing but recordings is asked."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.archive.packing import pack
from harness.archive.recorded import played_order
from harness.archive.replaying import render, replay
from harness.cli import main
from harness.contracts import Task
from harness.errors import EnvironmentCrashed, IdentityError, SetupError, UserError
from harness.models.backends.scripted import ScriptedBackend
from harness.run import play
from harness.store import manifest
from harness.store.database import Store
from harness.store.events import read_events
from harness.store.identity import digest
from harness.store.view import RunView
from tests.support.build import played, prepared, scripted
from tests.support.toy import Toy, ToySession

ROOT = Path(__file__).resolve().parents[3]
RECORD = {"replay": {"mode": "record"}}


def change(directory: Path, sql: str, *values: Any, file: str = "stream.sqlite") -> None:
    with sqlite3.connect(directory / file) as db:
        assert db.execute(sql, values).rowcount == 1


@contextmanager
def crashing(crashes: dict[int, int]) -> Iterator[None]:
    """The toy's panel fails so many times at each of these tasks."""
    original, left = Toy.open, dict(crashes)

    def opened(self: Toy, task: Task, seed: int) -> Any:
        if left.get(task.index, 0):
            left[task.index] -= 1
            raise EnvironmentCrashed("the panel caught fire")
        return original(self, task, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Toy, "open", opened)
        yield


class TestTheSame:
    def test_a_recorded_run_replays_without_a_model_and_is_not_touched(
        self, recorded: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def asked(*args: object) -> None:
            raise AssertionError("a model was asked")

        monkeypatch.setattr(ScriptedBackend, "complete", asked)
        before = {path.name: path.read_bytes() for path in recorded.iterdir()}
        (found,) = replay(recorded)
        assert found["identical"] and found["tasks"] == 6 and found["difference"] is None and found["notes"] == []
        assert "6 tasks replayed, scores, steps, usage and memory are those of the run" in render([found])
        after = {path.name: path.read_bytes() for path in recorded.iterdir()}
        assert before.items() <= after.items()  # SQLite may leave its own empty files beside what it reads

    def test_a_task_that_was_played_late_is_replayed_late(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, method={"name": "generative"}, run={**RECORD, "name": "late"})
        with crashing({2: 2}):
            assert play(ready) == 1
        assert play(ready) == 0
        view = RunView(ready.directory)
        assert played_order(view) == [0, 1, 3, 4, 5, 2]
        (found,) = replay(ready.directory)
        assert found["identical"], found["difference"]
        assert found["notes"] == ["2 attempts of the run that left no result: not repeated"]

    def test_tasks_without_a_result_are_left_out_and_said(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, run={**RECORD, "name": "holes"})
        with crashing({2: 2, 4: 2}):
            assert play(ready) == 1
        (found,) = replay(ready.directory)
        assert found["identical"] and found["tasks"] == 4
        assert found["notes"][0] == "2 tasks of the run without a result (nothing to compare)"

    def test_a_pilot_that_went_on_replays_as_a_whole(self, tmp_path: Path) -> None:
        played(tmp_path, method={"name": "metagpt"}, run={**RECORD, "name": "p", "tasks": 2})
        directory = played(tmp_path, method={"name": "metagpt"}, run={**RECORD, "name": "p"})
        (found,) = replay(directory)
        assert found["identical"] and found["tasks"] == 6

    def test_a_run_that_was_killed_and_went_on(self, tmp_path: Path) -> None:
        """A child dies in the middle of the fourth task, without a chance to clean up; the run is resumed."""
        groups: dict[str, Any] = {"method": {"name": "generative"}, "run": {**RECORD, "name": "killed"}}
        if (child := os.fork()) == 0:
            with pytest.MonkeyPatch.context() as patch:
                steps, original = [0], ToySession.step

                def dying(self: ToySession, action: str) -> Any:
                    steps[0] += 1
                    return os._exit(9) if steps[0] == 8 else original(self, action)

                patch.setattr(ToySession, "step", dying)
                play(prepared(tmp_path, **groups))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        directory = played(tmp_path, **groups)
        assert [attempt["kind"] for attempt in RunView(directory).attempts()].count("aborted") == 1
        (found,) = replay(directory)
        assert found["identical"], found["difference"]
        pack([directory], tmp_path / "a.zip")
        assert replay(tmp_path / "a.zip")[0]["record"] == found["record"]

    def test_agent_failures_replay(self, tmp_path: Path) -> None:
        limits = {"limits": {"task": {"calls": 2}}}
        directory = played(tmp_path, models=scripted("noop"), run={**RECORD, **limits, "name": "limited"})
        assert {row.kind for row in RunView(directory).tasks()} == {"agent_failure"}
        assert replay(directory)[0]["identical"]

    def test_recordings_elsewhere_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "elsewhere.sqlite"
        directory = played(tmp_path, run={"replay": {"mode": "record", "path": str(path)}})
        with pytest.raises(UserError, match="was not recorded"):
            replay(directory)
        assert replay(directory, recordings=path)[0]["identical"]


class TestWhatDiffers:
    @pytest.mark.parametrize(
        ("sql", "said"),
        [
            ("UPDATE task SET score = 0.5 WHERE position = 3", "task toy-3: score was 0.5, is 1.0."),
            ("UPDATE task SET steps = 7 WHERE position = 1", "task toy-1: steps was 7, is 2."),
            ("UPDATE task SET feedback = 'Well!' WHERE position = 0", "task toy-0: feedback was Well!, is You won.."),
            (
                "UPDATE ledger SET output_tokens = 999 WHERE id = (SELECT max(id) FROM ledger WHERE position = 2 AND role = 'host.single.agent')",
                "task toy-2: output_tokens of its model call 5 (host.single.agent) was 999, is",
            ),
        ],
    )
    def test_the_first_difference_is_named_with_its_task(self, recorded: Path, sql: str, said: str) -> None:
        change(recorded, sql)
        (found,) = replay(recorded)
        assert not found["identical"] and found["record"] is None
        assert said in found["difference"]

    def test_the_memory_is_compared_too(self, recorded: Path) -> None:
        with sqlite3.connect(recorded / "stream.sqlite") as db:
            (table,) = db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'memory%' LIMIT 1"
            ).fetchone()
            db.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
        assert f"a row of the memory's table {table} was None, is " in replay(recorded)[0]["difference"]

    def test_another_recorded_reply_leads_elsewhere(self, recorded: Path) -> None:
        with sqlite3.connect(recorded / "recordings.sqlite") as db:
            db.execute("UPDATE recording SET text = 'press white' WHERE text = 'press red'")
        difference = replay(recorded)[0]["difference"]
        assert difference.startswith("task toy-0: the replay stopped in it: No recording of the call 'host.single.agent'")

    def test_a_world_that_answers_otherwise_is_named_with_the_step(self, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        original = ToySession.step

        def step(self: ToySession, action: str) -> Any:
            found = original(self, action)
            return replace(found, observation="The lights go out.") if action == "press blue" else found

        monkeypatch.setattr(ToySession, "step", step)
        difference = replay(recorded)[0]["difference"]
        assert difference.startswith("task toy-2: the replay stopped in it: No recording of the call 'memory.generative.rate'")
        parted = "The first step that differs is task toy-1, step 2: the observation was You press the blue button., is The lights go out.."
        assert parted in difference

    def test_the_exit_code_says_so(self, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["replay", str(recorded)]) == 0
        change(recorded, "UPDATE task SET score = 0.0 WHERE position = 5")
        assert main(["replay", "r", "--root", str(recorded.parent), "--json"]) == 1
        out = capsys.readouterr().out
        assert json.loads(out[out.index("[") :])[0]["difference"] == "task toy-5: score was 0.0, is 1.0."


class TestWhatCannotBeReplayed:
    def test_a_run_that_was_not_recorded(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"was not recorded: there is no recordings\.sqlite.*run\.replay\.mode=record"):
            replay(played(tmp_path))

    def test_a_run_that_was_recorded_in_part(self, recorded: Path) -> None:
        change(recorded, "DELETE FROM recording WHERE digest = (SELECT min(digest) FROM recording)", file="recordings.sqlite")
        with pytest.raises(
            UserError, match=r"not recorded in full: 1 of its \d+ calls have no recording\..*run\.replay\.mode=record"
        ):
            replay(recorded)

    def test_missing_data_is_named_as_the_environment_does(self, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from harness.contracts import Problem

        monkeypatch.setattr("tests.support.toy.Toy.check", lambda self: [Problem("The toy's data is missing", "make data-toy")])
        with pytest.raises(SetupError, match=r"The toy's data is missing \(mend it with: make data-toy\)"):
            replay(recorded)

    def test_other_data_and_other_code_are_refused_with_the_difference(
        self, recorded: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tests.support.toy.Toy.version", "2-A")
        with pytest.raises(IdentityError, match="code.env: 1 → 2"):
            replay(recorded)

    @pytest.mark.parametrize("file", ["stream.sqlite", "recordings.sqlite"])
    def test_a_database_that_was_cut_off(self, recorded: Path, file: str) -> None:
        RunView(recorded).tasks()  # the log is written back when the last reader closes
        path = recorded / file
        for beside in recorded.glob(f"{file}-*"):
            beside.unlink()
        path.write_bytes(path.read_bytes()[:-4096])
        with pytest.raises(UserError, match=rf"{file} is .*damaged: .*malformed"):
            replay(recorded)

    def test_events_that_lack_what_they_are_about_are_torn_lines(self, recorded: Path) -> None:
        with (recorded / "events.jsonl").open("a") as log:
            log.writelines(f'{{"event": {kind}}}\n' for kind in ('"attempt_start"', '"step"', '"task_end"', "5", "[]"))
        assert [event["event"] for event in read_events(recorded / "events.jsonl")][-5:] == ["torn"] * 5
        (found,) = replay(recorded)
        assert found["identical"]

    def test_a_changed_manifest(self, recorded: Path) -> None:
        content = manifest.read(recorded)
        assert content is not None
        content["cell"]["env"]["max_steps"] = 9
        (recorded / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(UserError, match="its configuration and its identity do not fit"):
            replay(recorded)

    def test_no_run_at_all(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["replay", str(tmp_path)]) == 2
        assert "is not a run" in capsys.readouterr().err


def test_a_pack_replays_in_a_fresh_copy_of_the_code_without_network(tmp_path: Path) -> None:
    """Another folder, its own PYTHONPATH, no key, no socket: the scores are those of the run."""
    pytest.importorskip("alfworld")
    env = {"name": "alfworld", "source": "generated", "games_per_family": 1}
    directory = played(tmp_path, host={"name": "autogen"}, method={"name": "gmemory"}, env=env, run={**RECORD, "tasks": 3})
    file = tmp_path / "made.zip"
    pack([directory], file)
    copy = tmp_path / "clone"
    for name in ("harness", "methods", "envs", "conf"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    offline = (
        "import socket, sys\n"
        "def refuse(*args): raise OSError('no network')\n"
        "socket.socket.connect = socket.socket.connect_ex = refuse\n"
        "import harness; assert harness.__file__.startswith(sys.argv[1]), harness.__file__\n"
        "from harness.cli import main; sys.exit(main(['replay', sys.argv[2], '--json']))\n"
    )
    environ = {key: os.environ[key] for key in ("PATH", "HOME", "XDG_CACHE_HOME") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", offline, str(copy), str(file)],
        cwd=copy,
        env={**environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (elsewhere,) = json.loads(done.stdout)
    (here,) = replay(directory)
    assert elsewhere["identical"] and elsewhere["tasks"] == 3
    assert elsewhere["record"] == here["record"]
    assert [event["score"] for event in read_events(directory / "events.jsonl") if event["event"] == "task_end"] == [
        row.score for row in RunView(directory).tasks()
    ]


@pytest.mark.parametrize(
    ("key", "way_back"),
    [
        ("data_digest", "The code is the same, the data is not: the run played official data. Say where that is (HARNESS_DATA)."),
        ("code", "Use the version that played it (memarena "),
    ],
)
def test_another_cell_is_refused_with_the_way_back_to_the_runs_own(recorded: Path, key: str, way_back: str) -> None:
    content = json.loads((recorded / "manifest.json").read_text())
    content["cell"][key] = "x" if key == "data_digest" else {**content["cell"]["code"], "env": 99}
    content["environment"]["provenance"] = {"source": "official"}
    content["identity"] = digest(content["cell"])
    with Store(recorded) as store:
        store.put("identity", content["identity"])
    (recorded / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(IdentityError) as caught:
        replay(recorded)
    assert way_back in str(caught.value)
