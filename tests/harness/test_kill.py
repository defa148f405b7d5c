"""Exactly once, against a real `kill -9` at random moments, Ctrl-C, and a real full disk (ARCHITECTURE.md rule 1)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.store import canonical
from harness.store.view import RunView
from tests.support.build import CHOICES, values

REPEATS = 20


def point(path: Path, content: dict[str, Any]) -> Path:
    choices = {**CHOICES, **{group: content[group]["name"] for group in ("host", "method", "env", "models")}}
    path.write_text(json.dumps({"values": content, "choices": choices, "bases": {}, "experiment": None}))
    return path


def start(config: Path, **kwargs: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.play_toy", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **kwargs,
    )


def finish(config: Path) -> str:
    process = start(config)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


def kill_at_random(config: Path, directory: Path, rng: random.Random, longest: float) -> bool:
    """Start, wait until the stream is under way, kill -9 after a random moment; whether it was still running."""
    process = start(config)
    events = directory / "events.jsonl"
    size = events.stat().st_size if events.exists() else 0
    while process.poll() is None and (not events.exists() or events.stat().st_size == size):
        time.sleep(0.002)
    time.sleep(rng.uniform(0, longest))
    alive = process.poll() is None
    if alive:
        with contextlib.suppress(ProcessLookupError):  # it may end at this very moment
            os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return alive


def killed_and_resumed_equals_uninterrupted(
    tmp_path: Path, content: dict[str, Any], longest: float, seed: int, repeats: int = REPEATS
) -> int:
    """Record an uninterrupted run; replay it uninterrupted; replay it again through `repeats` kills. Returns the kills."""
    recording = str(tmp_path / "recordings.sqlite")
    runs: dict[str, Path] = {}
    for name, mode in (("recorded", "record"), ("whole", "replay"), ("killed", "replay")):
        run = {**content["run"], "root": str(tmp_path), "name": name, "replay": {"mode": mode, "path": recording}}
        runs[name] = point(tmp_path / f"{name}.json", {**content, "run": run})
    finish(runs["recorded"])
    finish(runs["whole"])
    rng, kills = random.Random(seed), 0
    expected = list(canonical.lines(tmp_path / "whole"))
    for _ in range(repeats):
        kills += kill_at_random(runs["killed"], tmp_path / "killed", rng, longest)
        if RunView(tmp_path / "killed").status == "finished":
            assert list(canonical.lines(tmp_path / "killed")) == expected
            shutil.rmtree(tmp_path / "killed")  # the next kills meet a fresh run
    finish(runs["killed"])
    assert list(canonical.lines(tmp_path / "killed")) == expected
    # recorded and replayed agree in everything but the mark of a replayed row
    scores = [(row.task_id, row.score, row.steps) for row in RunView(tmp_path / "recorded").tasks()]
    assert scores == [(row.task_id, row.score, row.steps) for row in RunView(tmp_path / "killed").tasks()]
    return kills


def test_twenty_kills_on_the_toy_change_nothing(tmp_path: Path) -> None:
    content = values(tmp_path, env={"n": 60}, method={"name": "generative"}, host={"name": "autogen"})
    assert killed_and_resumed_equals_uninterrupted(tmp_path, content, longest=0.5, seed=1) >= REPEATS // 2


@pytest.mark.slow
def test_twenty_kills_on_generated_alfworld_games_change_nothing(tmp_path: Path) -> None:
    env = {"name": "alfworld", "source": "generated", "cache_dir": str(tmp_path / "games"), "games_per_family": 2, "repeat": 1}
    content = {**values(tmp_path, method={"name": "metagpt"}, host={"name": "autogen"}), "env": env}
    assert killed_and_resumed_equals_uninterrupted(tmp_path, content, longest=1.5, seed=2) >= REPEATS // 2


def test_the_tokens_of_a_killed_attempt_are_shown_and_not_counted_twice(tmp_path: Path) -> None:
    content = values(tmp_path, env={"n": 400}, run={"name": "x"}, host={"name": "autogen"})
    config = point(tmp_path / "x.json", content)
    rng = random.Random(3)
    while not kill_at_random(config, tmp_path / "x", rng, 0.3):
        pass
    finish(config)
    view = RunView(tmp_path / "x")
    aborted = [a for a in view.attempts() if a["kind"] == "aborted"]
    assert len(aborted) <= 1  # none, if the kill fell between two tasks
    assert view.usage()[0].calls == sum(a["calls"] for a in view.attempts() if a["kind"] == "committed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    config = point(tmp_path / "x.json", values(tmp_path, env={"n": 3000}, run={"name": "x"}, host={"name": "autogen"}))
    process = start(config)
    events = tmp_path / "x" / "events.jsonl"
    while process.poll() is None and (not events.exists() or events.stat().st_size < 20_000):
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.strip() == "memarena: interrupted; what was committed is kept, the same command continues."
    view = RunView(tmp_path / "x")
    assert 0 < len(view.tasks()) < 3000
    assert [a["kind"] for a in view.attempts()][-1] in ("stopped", "committed")


def test_a_really_full_disk_is_one_clear_line_and_loses_nothing(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        config = point(tmp_path / "x.json", values(small, env={"n": 600}, run={"name": "x"}, method={"name": "metagpt"}))
        process = start(config)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1
        assert err.startswith("memarena: Cannot write the run:") and len(err.strip().splitlines()) == 1
        done = len(RunView(small / "x").tasks())
        assert 0 < done < 600
        subprocess.run(["mount", "-o", "remount,size=200m", str(small)], check=True)
        finish(config)
        whole = point(
            tmp_path / "whole.json", values(tmp_path, env={"n": 600}, run={"name": "whole"}, method={"name": "metagpt"})
        )
        finish(whole)
        assert canonical.digest(small / "x") == canonical.digest(tmp_path / "whole")
    finally:
        subprocess.run(["umount", str(small)], check=False)
