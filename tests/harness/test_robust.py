"""What a hostile day does to a run: damaged files, closed outputs, dead parents, limits over several processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.errors import ConfigError, IdentityError, LimitExceeded, MemArenaError, UserError
from harness.report.listing import listing
from harness.run import play
from harness.store.database import Store
from harness.store.view import RunView, find_runs
from tests.harness.test_cli import memarena
from tests.harness.test_kill import point, start
from tests.support.build import played, prepared, scripted, values


class TestLimitsOverProcesses:
    def test_steps_and_calls_of_a_stream_go_on_where_the_last_process_stopped(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, run={"limits": {"stream": {"steps": 5}}})
        for _ in range(3):
            with pytest.raises(LimitExceeded, match="stream limit reached: 5 of 5 steps"):
                play(ready)
        assert sum(row.steps for row in RunView(ready.directory).tasks()) <= 5

    def test_seconds_of_earlier_processes_count(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, run={"limits": {"stream": {"calls": 5}}})
        with pytest.raises(LimitExceeded):
            play(ready)
        with Store(ready.directory) as store:
            store.db.execute("UPDATE attempt SET seconds = 100 WHERE position = 0")
        with pytest.raises(LimitExceeded, match="seconds"):
            play(prepared(tmp_path, run={"limits": {"stream": {"seconds": 50.0}}}))

    def test_failed_attempts_cost_no_call_after_a_resume_either(self, tmp_path: Path) -> None:
        directory = played(tmp_path)
        with Store(directory) as store:
            before = store.spent().answered
            store.db.execute("UPDATE attempt SET calls = calls + 100")
            assert store.spent().answered == before == 12


class TestDamage:
    @pytest.mark.parametrize("text", ["", "[]", "{", "{}", "null", "\x00\x01"])
    def test_a_damaged_manifest_is_named(self, tmp_path: Path, text: str) -> None:
        directory = played(tmp_path, run={"name": "x"})
        (directory / "manifest.json").write_text(text)
        with pytest.raises(UserError, match=r"manifest\.json is damaged"):
            prepared(tmp_path, run={"name": "x"})
        with pytest.raises(UserError, match=r"manifest\.json is damaged"):
            _ = RunView(directory).manifest

    @pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\x00" + b"\x00" * 50])
    def test_a_damaged_database_is_named(self, tmp_path: Path, content: bytes) -> None:
        directory = played(tmp_path, run={"name": "x"})
        for path in directory.glob("stream.sqlite*"):
            path.unlink()
        (directory / "stream.sqlite").write_bytes(content)
        with pytest.raises(UserError, match=r"stream\.sqlite is damaged"):
            RunView(directory).tasks()
        with pytest.raises(MemArenaError, match="damaged|schema"):
            play(prepared(tmp_path, run={"name": "x"}))

    def test_results_without_their_manifest_are_not_adopted_by_another_cell(self, tmp_path: Path) -> None:
        directory = played(tmp_path, method={"name": "generative"}, run={"name": "x"})
        (directory / "manifest.json").unlink()
        with pytest.raises(IdentityError, match="those of another cell"):
            play(prepared(tmp_path, models=scripted("noop"), run={"name": "x"}))
        assert play(prepared(tmp_path, method={"name": "generative"}, run={"name": "x"})) == 0
        assert RunView(directory).status == "finished"

    def test_a_log_that_was_emptied_loses_no_later_spending(self, tmp_path: Path) -> None:
        ready = prepared(tmp_path, env={"n": 300}, run={"name": "x", "limits": {"stream": {"calls": 50}}})
        with pytest.raises(LimitExceeded):
            play(ready)
        # somebody empties the log; later an attempt starts, makes two calls and dies
        call = {
            "event": "model_call",
            "endpoint": "main",
            "usage_source": "provider",
            "cost_usd": 0.5,
            "input_tokens": 7,
            "output_tokens": 3,
        }
        lines = [{"event": "attempt_start", "position": 99, "attempt": 1}, call, {"event": "step"}, call]
        (ready.directory / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with Store(ready.directory) as store:
            before = store.spent()
            assert store.recover() == 1
            after = store.spent()
            assert store.recover() == 0
        assert (after.calls - before.calls, after.input_tokens - before.input_tokens, after.steps - before.steps) == (2, 14, 1)
        assert (
            after.cost_usd is not None and before.cost_usd is not None and after.cost_usd - before.cost_usd == pytest.approx(1.0)
        )

    @pytest.mark.parametrize("line", ["null", "[1]", '{"event":"attempt_start"}', '{"x":1}', "\x00"])
    def test_odd_lines_in_the_log_do_not_stop_a_resume(self, tmp_path: Path, line: str) -> None:
        ready = prepared(tmp_path, run={"limits": {"stream": {"calls": 5}}})
        with pytest.raises(LimitExceeded):
            play(ready)
        with (ready.directory / "events.jsonl").open("a") as log:
            log.write(line + "\n")
        assert play(prepared(tmp_path)) == 0

    def test_a_folder_named_like_a_manifest_hides_no_other_run(self, tmp_path: Path) -> None:
        played(tmp_path, run={"name": "good"})
        (tmp_path / "bad" / "manifest.json").mkdir(parents=True)
        assert len(list(find_runs(tmp_path))) == len(listing(tmp_path)) == 1


class TestPlaces:
    def test_a_root_that_is_a_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UserError, match="Cannot use .*file.*run.root"):
            play(prepared(tmp_path / "file"))

    def test_a_long_derived_name_is_shortened_and_stays_distinct(self, tmp_path: Path) -> None:
        from harness.config import LONGEST_NAME, resolve

        names = set()
        for n in (1, 2):
            composed = values(tmp_path, env={"crashes": dict.fromkeys(range(60), n)})
            choices = {"host": "single", "method": "none", "env": "toy", "models": "scripted", "run": "default"}
            config = resolve(composed, choices, {"env": {"name": "toy"}})[0]
            names.add(config.default_name())
        assert len(names) == 2 and all(len(name) == LONGEST_NAME for name in names)

    @pytest.mark.parametrize("name", ["x" * 300, "a\nb", " a", "a/../b", "a//b", ""])
    def test_names_that_no_directory_should_have_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError, match=r"run\.name"):
            prepared(tmp_path, run={"name": name})

    def test_a_seed_beyond_sqlites_integers_is_refused_before_anything_is_spent(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"run\.seed"):
            prepared(tmp_path, run={"seed": 9_223_372_036_854})


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_refused_wherever_it_stands(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=f"limits.stream.usd is {value}, which is no number"):
        prepared(tmp_path, run={"limits": {"stream": {"usd": float(value)}}})
    with pytest.raises(ConfigError, match=f"recency is {value}, which is no number"):
        prepared(tmp_path, method={"name": "generative_full", "recency": float(value)})


class TestOutputs:
    @pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", ">&-", "> /dev/full", "<&-"])
    def test_a_closed_or_full_output_does_not_stop_a_stream(self, tmp_path: Path, redirect: str) -> None:
        config = point(tmp_path / "x.json", values(tmp_path, run={"name": "x", "progress": "lines"}))
        subprocess.run(
            f"{sys.executable} -m tests.support.play_toy {config} {redirect}", shell=True, stderr=subprocess.DEVNULL, check=False
        )
        assert RunView(tmp_path / "x").status == "finished"

    @pytest.mark.parametrize("command", ["list --json", "table table1"])
    def test_a_full_output_is_one_line(self, tmp_path: Path, command: str) -> None:
        played(tmp_path / "results" / "runs", run={"name": "mine"})
        done = subprocess.run(
            f"{sys.executable} -m harness {command} > /dev/full",
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr

    def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        done = memarena("list", "--root", str(tmp_path / "nowhere"), cwd=tmp_path)
        assert done.returncode == 2 and "There is no folder" in done.stderr


class TestSweeps:
    OVERRIDES = ("models=scripted", "env.source=generated", "host=single")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("-m", "-j", "0", "run.seed=0,1"), "--jobs is 0"),
            (("-m", "method=none,none"), "there twice"),
            (("-m", "run.seed=0,1", "run.name=x"), "Leave run.name out"),
            (("host=null",), "Config group override must be a string"),
            (("method=[none,metagpt]",), "method"),
            (("run.order=${nowhere}",), "nowhere"),
            (("foo=bar",), "Unknown key foo"),
        ],
    )
    def test_bad_sweeps_are_one_clear_line(self, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
        done = memarena("run", *self.OVERRIDES, *arguments, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_streams_end_when_the_sweep_ends_however_that_happens(self, tmp_path: Path, number: signal.Signals) -> None:
        """Only the parent gets the signal: orphans would go on spending."""
        arguments = ["run", "-m", "-j", "2", "models=scripted-random", "env.source=generated", "host=autogen", "run.seed=0,1"]
        parent = subprocess.Popen(
            [sys.executable, "-m", "harness", *arguments],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        logs = [
            tmp_path / "results" / "runs" / f"alfworld-autogen-none-scripted-random-s{seed}-env.source-generated" / "events.jsonl"
            for seed in (0, 1)
        ]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not all(log.exists() and log.stat().st_size > 10_000 for log in logs):
            assert parent.poll() is None
            time.sleep(0.05)
        parent.send_signal(number)
        parent.wait(timeout=30)
        deadline = time.monotonic() + 20
        for log in logs:  # the lock is free as soon as its process is gone
            while True:
                try:
                    Store(log.parent).close()
                    break
                except UserError:
                    assert time.monotonic() < deadline, "an orphan goes on playing"
                    time.sleep(0.1)
        assert [a["kind"] for a in RunView(logs[0].parent).attempts()][-1] in ("stopped", "committed")


def test_two_interrupts_soon_after_each_other_end_in_good_order(tmp_path: Path) -> None:
    config = point(tmp_path / "x.json", values(tmp_path, env={"n": 3000}, run={"name": "x"}, host={"name": "autogen"}))
    process = start(config)
    events = tmp_path / "x" / "events.jsonl"
    while process.poll() is None and (not events.exists() or events.stat().st_size < 20_000):
        time.sleep(0.01)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in err
    assert [a["kind"] for a in RunView(tmp_path / "x").attempts()][-1] in ("stopped", "committed")


def test_the_identity_in_the_database_is_that_of_the_manifest(tmp_path: Path) -> None:
    directory = played(tmp_path)
    with Store(directory) as store:
        assert store.get("identity") == json.loads((directory / "manifest.json").read_text())["identity"]


def test_a_local_server_that_is_not_running_is_named_before_anything_is_tried(tmp_path: Path) -> None:
    environment = {"MEMARENA_MODEL": "foo", "MEMARENA_API_BASE": "http://127.0.0.1:9/v1"}
    started = time.monotonic()
    done = memarena("run", "models=openai-compatible", "env.source=generated", cwd=tmp_path, **environment)
    assert done.returncode == 2 and "No server answers at http://127.0.0.1:9/v1" in done.stderr
    assert time.monotonic() - started < 30  # not the minutes that retries would take


def test_show_says_why_agents_failed(tmp_path: Path) -> None:
    from harness.report.show import render, summary

    directory = played(tmp_path, models=scripted("noop"), run={"limits": {"task": {"calls": 2}}})
    assert "task limit reached: 2 of 2 calls" in render(summary(RunView(directory)))
