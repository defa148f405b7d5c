"""Streams on the double: hosts and memories through the command line, failures in a stream, and `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from envs.webarena_local.adapter import Stage, WebArenaLocal
from harness.contracts import Task
from harness.run import play
from harness.store.view import RunView
from tests.harness.test_kill import killed_and_resumed_equals_uninterrupted
from tests.support.browsers import use_installed_browser
from tests.support.build import prepared, values

pytestmark = pytest.mark.slow
QUICK: dict[str, Any] = {"name": "webarena_local", "grader_pause": 0.0, "observation_delay": 0.05}


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch) -> None:
    use_installed_browser(monkeypatch, webarena=True)


def test_hosts_with_memories_play_by_the_command_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness", "run", "-m", "-j", "3", "host=autogen,dylan", "method=none,gmemory,sepm"),
            *("env=webarena_local", "env.tasks=[9003,9036]", "env.grader_pause=0", "env.observation_delay=0.05"),
            *("models=scripted", f"run.root={tmp_path}", "run.progress=off"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs = {path.name: RunView(path) for path in tmp_path.iterdir() if (path / "manifest.json").is_file()}
    assert len(runs) == 6
    for name, view in runs.items():
        assert [(row.task_id, row.score, row.kind) for row in view.tasks()] == [
            ("webarena_local.9003", 1.0, "scored"),
            ("webarena_local.9036", 1.0, "scored"),
        ], name
        judged = [row for row in view.usage("role") if row.group == ("env.judge",)]
        assert [row.calls for row in judged] == [1], name


@contextmanager
def staged(monkeypatch: pytest.MonkeyPatch, before: Any) -> Iterator[list[str]]:
    """Let `before(stage, n)` happen before the n-th attempt of a stream's tasks."""
    attempts: list[str] = []
    real = WebArenaLocal.open

    @contextmanager
    def opened(self: WebArenaLocal, task: Task, seed: int) -> Iterator[Any]:
        attempts.append(task.task_id)
        with self.stage() as stage:
            before(stage, task)
        with real(self, task, seed) as session:
            yield session

    monkeypatch.setattr(WebArenaLocal, "open", opened)
    yield attempts


def test_a_failing_login_sets_its_tasks_aside_and_the_stream_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_login(stage: Stage, task: Task) -> None:
        stage.sites.plant("shopping_admin", "login")

    with staged(monkeypatch, no_login) as attempts:
        ready = prepared(tmp_path, env={**QUICK, "tasks": [9003, 9015, 9036]}, run={"infra_retries": 1})
        assert play(ready) != 0
    assert [number[-4:] for number in attempts] == ["9003", "9015", "9015", "9036"]
    view = RunView(ready.directory)
    assert [(row.task_id[-4:], row.score) for row in view.tasks()] == [("9003", 1.0), ("9036", 1.0)]
    failed = [row["error"] for row in view.attempts() if row["kind"] == "infra_failure"]
    wanted = "EnvironmentCrashed: The task could not be started: login at shopping_admin: the site asks for a password again"
    assert failed == [wanted, wanted]


def test_a_browser_that_is_killed_costs_an_attempt_and_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from envs.webarena_local.session import LocalSession

    killed: list[int] = []
    real = LocalSession.step

    def step(self: LocalSession, action: str) -> Any:
        worker = self._browser.process_id
        if not killed and "send_msg" in action:
            assert worker is not None
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)
        return real(self, action)

    monkeypatch.setattr(LocalSession, "step", step)
    ready = prepared(tmp_path, env={**QUICK, "tasks": [9000, 9003]})
    assert play(ready) == 0
    view = RunView(ready.directory)
    assert [(row.task_id[-4:], row.score) for row in view.tasks()] == [("9000", 1.0), ("9003", 1.0)]
    assert [row["kind"] for row in view.attempts()] == ["infra_failure", "committed", "committed"]


def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    env = {**QUICK, "tasks": [9003, 9024, 9036]}
    content = {**values(tmp_path, method={"name": "metagpt"}, host={"name": "autogen"}), "env": env}
    assert killed_and_resumed_equals_uninterrupted(tmp_path, content, longest=6.0, seed=5, repeats=2) >= 1
