"""The stream player: exactly once, three outcomes, resume, and what stops a stream."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Call, Guidance
from harness.errors import ConfigError, IdentityError, LimitExceeded, MemArenaError, RunBusyError, SetupError, StorageError
from harness.run import play
from harness.store import canonical
from harness.store.database import Store
from harness.store.events import read_events
from harness.store.view import RunView
from methods.base import MemoryMethod
from methods.none import NoMemory
from tests.support.build import played, prepared, scripted


class TestPlaying:
    def test_tasks_run_in_official_order_with_the_seeds_of_the_paper(self, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, run={"seed": 1}))
        assert [row.task_index for row in view.tasks()] == list(range(6))
        # RUN-R3: s_i = s_base × 1000003 + i
        assert [row.seed for row in view.tasks()] == [1_000_003 + i for i in range(6)]

    def test_the_oracle_wins_and_doing_nothing_loses(self, tmp_path: Path) -> None:
        assert all(row.success for row in RunView(played(tmp_path)).tasks())
        assert not any(row.success for row in RunView(played(tmp_path, models=scripted("noop"), run={"name": "noop"})).tasks())

    def test_a_shuffled_order_depends_only_on_its_seed(self, tmp_path: Path) -> None:
        orders = [
            [row.task_id for row in RunView(played(tmp_path, run={"order": order, "name": name})).tasks()]
            for order, name in (("shuffled:3", "a"), ("shuffled:3", "b"), ("shuffled:4", "c"))
        ]
        assert orders[0] == orders[1] != orders[2]
        assert sorted(orders[0]) == sorted(orders[2])

    def test_steps_never_exceed_the_environments_maximum(self, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, models=scripted("noop"), env={"max_steps": 3}))
        assert {row.steps for row in view.tasks()} == {3}

    def test_ledger_sums_equal_the_attempts(self, tmp_path: Path) -> None:
        view = RunView(played(tmp_path))
        (total,) = view.usage()
        assert total.total_tokens == sum(a["input_tokens"] + a["output_tokens"] for a in view.attempts())
        assert total.calls == sum(a["calls"] for a in view.attempts()) == sum(row.steps for row in view.tasks())

    def test_the_event_log_tells_every_step_and_every_call(self, tmp_path: Path) -> None:
        events = list(read_events(played(tmp_path) / "events.jsonl"))
        kinds = [event["event"] for event in events]
        assert kinds.count("attempt_start") == kinds.count("task_end") == 6
        assert kinds.count("step") == kinds.count("model_call") == 12
        call = next(event for event in events if event["event"] == "model_call")
        assert any("## Current task" in message["content"] for message in call["messages"])


class TestIdentity:
    def test_a_finished_cell_is_skipped(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        directory = played(tmp_path)
        before = (directory / "events.jsonl").read_bytes()
        assert play(prepared(tmp_path)) == 0
        assert "finished before" in capsys.readouterr().out
        assert (directory / "events.jsonl").read_bytes() == before

    def test_a_changed_cell_is_refused_with_the_difference(self, tmp_path: Path) -> None:
        played(tmp_path, run={"name": "x"})
        with pytest.raises(IdentityError, match=r"env\.max_steps: 8 → 9"):
            prepared(tmp_path, run={"name": "x"}, env={"max_steps": 9})

    def test_changed_data_is_refused(self, tmp_path: Path) -> None:
        played(tmp_path, run={"name": "x"})
        with pytest.raises(IdentityError, match="data_digest"):
            prepared(tmp_path, run={"name": "x"}, env={"length": 3})

    @pytest.mark.parametrize(
        "option",
        [
            {"infra_retries": 7},
            {"tasks": 3},
            {"progress": "lines"},
            {"replay": {"mode": "record"}},
            {"limits": {"stream": {"calls": 999}}},
        ],
    )
    def test_run_options_do_not_change_the_cell(self, tmp_path: Path, option: dict[str, Any]) -> None:
        first = prepared(tmp_path, run={"name": "x"}).cell.identity
        assert prepared(tmp_path, run={"name": "x", **option}).cell.identity == first

    @pytest.mark.parametrize(
        "group",
        [{"run": {"seed": 1}}, {"run": {"limits": {"task": {"calls": 9}}}}, {"host": {"max_attempts": 2}}],
    )
    def test_what_changes_scores_changes_the_cell(self, tmp_path: Path, group: dict[str, Any]) -> None:
        assert prepared(tmp_path).cell.identity != prepared(tmp_path, **group).cell.identity

    def test_a_pilot_is_the_beginning_of_the_whole_run(self, tmp_path: Path) -> None:
        directory = played(tmp_path, method={"name": "generative"}, run={"tasks": 2})
        assert RunView(directory).status == "finished" and len(RunView(directory).tasks()) == 2
        assert played(tmp_path, method={"name": "generative"}) == directory
        assert len(RunView(directory).tasks()) == 6
        assert canonical.digest(directory) == canonical.digest(played(tmp_path / "other", method={"name": "generative"}))
        assert prepared(tmp_path, method={"name": "generative"}, run={"tasks": 3}).finished

    def test_two_processes_cannot_play_one_stream(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path)
        with Store(ready.directory), pytest.raises(RunBusyError, match="Another process"):
            play(ready)


class TestOutcomes:
    def test_an_infrastructure_failure_is_retried_at_once(self, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, env={"crashes": {2: 1}}))
        assert [a["kind"] for a in view.attempts() if a["position"] == 2] == ["infra_failure", "committed"]
        assert view.status == "finished"

    def test_one_that_lasts_has_no_score_and_is_retried_on_resume(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, env={"crashes": {2: 2}})
        assert play(ready) == 1
        view = RunView(ready.directory)
        assert view.infra_failures() == [2]
        assert len(view.tasks()) == 5
        assert play(ready) == 0
        assert view.infra_failures() == []
        assert [row.position for row in view.tasks() if row.late] == [2]

    def test_too_many_in_a_row_stop_the_stream(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, env={"crashes": dict.fromkeys(range(1, 6), 9)}, run={"max_infra_failures": 2})
        with pytest.raises(MemArenaError, match="2 tasks in a row"):
            play(ready)
        assert len(RunView(ready.directory).tasks()) == 1

    def test_a_task_limit_is_an_agent_failure_and_the_stream_goes_on(self, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, models=scripted("noop"), run={"limits": {"task": {"calls": 2}}}))
        assert {row.kind for row in view.tasks()} == {"agent_failure"}
        assert {row.score for row in view.tasks()} == {0.0}
        assert all("task limit reached: 2 of 2 calls" in (row.error or "") for row in view.tasks())

    def test_a_stream_limit_stops_and_a_higher_one_continues(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, run={"limits": {"stream": {"calls": 5}}})
        with pytest.raises(LimitExceeded, match="stream limit reached"):
            play(ready)
        done = len(RunView(ready.directory).tasks())
        assert done == 2
        assert play(prepared(tmp_path, run={"limits": {"stream": {"calls": 50}}})) == 0
        kinds = [a["kind"] for a in RunView(ready.directory).attempts()]
        assert kinds.count("stopped") == 1 and kinds.count("committed") == 6

    def test_an_empty_answer_for_ever_ends(self, tmp_path: Path) -> None:
        """METHODS.md 1.1: bounded retries, then the no-op; pitfall P-1 is an endless loop here."""
        view = RunView(played(tmp_path, models=scripted("replies", replies=[""])))
        assert {row.steps for row in view.tasks()} == {8}
        (total,) = view.usage()
        assert total.calls == 6 * 8 * 3

    def test_an_unforeseen_error_is_never_a_score(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(self: object, *args: object) -> Guidance:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(NoMemory, "on_task_start", broken)
        ready = prepared(tmp_path)
        with pytest.raises(ZeroDivisionError):
            play(ready)
        assert RunView(ready.directory).tasks() == []


class Counting(MemoryMethod):
    """Writes a row per hook call, and calls a model at the start and the end."""

    class Config(NoMemory.Config):
        pass

    name = "none"
    version = "1-A"

    def open(self) -> None:
        self.services.db.execute("CREATE TABLE IF NOT EXISTS hook (id INTEGER PRIMARY KEY, name TEXT, step INTEGER)")

    def _note(self, name: str, step: int = 0) -> None:
        self.services.db.execute("INSERT INTO hook (name, step) VALUES (?, ?)", (name, step))

    def on_task_start(self, *args: Any) -> Guidance:
        self._note("start")
        self.services.models.complete(
            Call("memory.count.read", ({"role": "user", "content": "hello"},), key="memory", phase="retrieve")
        )
        return Guidance()

    def after_action(self, turn: Any) -> None:
        self._note("after", turn.step)

    def on_task_end(self, *args: Any) -> None:
        self._note("end")


class TestMemory:
    def test_hooks_run_exactly_once_a_task_and_once_a_step(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """HOST-AG R7."""
        monkeypatch.setattr("methods.none.NoMemory", Counting)
        directory = played(tmp_path)
        with sqlite3.connect(directory / "stream.sqlite") as db:
            counts = dict(db.execute("SELECT name, count(*) FROM hook GROUP BY name"))
        assert counts == {"start": 6, "end": 6, "after": 12}

    def test_a_failed_attempt_leaves_nothing_in_the_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Failing(Counting):
            failed = False

            def on_task_end(self, *args: Any) -> None:
                super().on_task_end()
                if not Failing.failed:
                    Failing.failed = True
                    from harness.errors import ProviderError

                    raise ProviderError("the memory's endpoint is down")

        monkeypatch.setattr("methods.none.NoMemory", Failing)
        directory = played(tmp_path)
        view = RunView(directory)
        assert [a["kind"] for a in view.attempts() if a["position"] == 0] == ["infra_failure", "committed"]
        with sqlite3.connect(directory / "stream.sqlite") as db:
            assert dict(db.execute("SELECT name, count(*) FROM hook GROUP BY name")) == {"start": 6, "end": 6, "after": 12}
        # the abandoned attempt was paid for: it is beside the ledger, not in it
        abandoned = view.attempts()[0]
        assert abandoned["calls"] == 3 and abandoned["input_tokens"] > 0
        assert view.usage()[0].calls == sum(a["calls"] for a in view.attempts() if a["kind"] == "committed")

    def test_a_memory_cannot_commit_the_streams_transaction(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Committing(Counting):
            def on_task_end(self, *args: Any) -> None:
                self.services.db.commit()

        monkeypatch.setattr("methods.none.NoMemory", Committing)
        ready = prepared(tmp_path)
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            play(ready)
        assert RunView(ready.directory).tasks() == []

    def test_two_streams_in_one_process_see_nothing_of_each_other(self, tmp_path: Path) -> None:
        first = played(tmp_path, method={"name": "metagpt"}, run={"name": "first"})
        second = played(tmp_path, method={"name": "metagpt"}, run={"name": "second"})
        assert canonical.digest(first) == canonical.digest(second)


class TestStorage:
    def test_a_full_disk_is_one_clear_error_and_loses_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import errno
        import os

        ready = prepared(tmp_path)
        real, calls = os.write, []

        def full(fd: int, data: Any) -> int:
            calls.append(fd)
            if len(calls) > 20:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(fd, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(StorageError, match=r"No space left on device.*continues where it stopped"):
                play(ready)
        done = len(RunView(ready.directory).tasks())
        assert 0 < done < 6
        assert play(ready) == 0
        assert canonical.digest(ready.directory) == canonical.digest(played(tmp_path / "other"))

    def test_a_torn_line_in_the_event_log_is_named_and_kept(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, run={"limits": {"stream": {"calls": 5}}})
        with pytest.raises(LimitExceeded):
            play(ready)
        with (ready.directory / "events.jsonl").open("ab") as log:
            log.write(b'{"event":"model_call","posi')
        assert play(prepared(tmp_path)) == 0
        kinds = [event["event"] for event in read_events(ready.directory / "events.jsonl")]
        assert "torn" in kinds and "torn_line" in kinds


class TestManifest:
    def test_it_names_the_cell_but_not_the_machine(self, tmp_path: Path) -> None:
        import platform

        directory = played(tmp_path)
        text = (directory / "manifest.json").read_text()
        found = json.loads(text)
        assert found["labels"]["host"] == "single" and found["models"]["scripted"] is True
        assert found["tasks"]["n"] == found["tasks"]["total"] == 6
        assert found["environment"]["official_max_steps"] == 8
        assert platform.node() not in text

    def test_a_resumed_run_has_a_session_for_each_process(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, run={"limits": {"stream": {"calls": 5}}})
        with pytest.raises(LimitExceeded):
            play(ready)
        play(prepared(tmp_path))
        assert len(RunView(ready.directory).manifest["sessions"]) == 2


class TestSetup:
    def test_missing_data_is_named_before_anything_is_spent(self, tmp_path: Path) -> None:
        with pytest.raises(SetupError, match="data is missing.*make data-toy"):
            prepared(tmp_path, env={"missing": True})
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ({"method": {"name": "metagtp"}}, r"Unknown method 'metagtp'\. Did you mean metagpt or metagpt_pool\?"),
            ({"env": {"max_step": 3}}, r"Unknown key env\.max_step.*Did you mean max_steps"),
            ({"env": {"max_steps": "many"}}, r"env\.max_steps.*many"),
            ({"run": {"limits": {"task": {"callz": 3}}}}, r"run\.limits\.task\.callz.*calls"),
            ({"run": {"order": "random"}}, "run.order"),
            ({"run": {"tasks": 0}}, "run.tasks"),
            ({"run": {"tasks": 7}}, "run.tasks is 7, but toy has 6"),
            ({"host": {"max_attempts": 0}}, "max_attempts is 0; it must be a number, 1 or more"),
            ({"models": scripted("orakel")}, "oracle"),
            ({"run": {"name": "../../etc"}}, "run.name"),
        ],
    )
    def test_bad_input_is_one_clear_error(self, tmp_path: Path, groups: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message) as caught:
            prepared(tmp_path, **groups)
        assert "\n" not in str(caught.value)
