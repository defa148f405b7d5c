"""The progress of a stream: a bar on a terminal, a line a task elsewhere, nothing where nothing can be shown."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.harness.test_kill import finish, point, start
from tests.support.build import values


def on_terminal(config: Path, columns: int) -> str:
    """What a stream prints on a pseudo-terminal of that width."""
    pid, terminal = pty.fork()
    if pid == 0:
        time.sleep(0.3)  # until the width is set
        os.execv(sys.executable, [sys.executable, "-m", "tests.support.play_toy", str(config)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    shown = b""
    try:
        while data := os.read(terminal, 4096):
            shown += data
    except OSError:  # the terminal's other end is closed
        pass
    assert os.waitpid(pid, 0)[1] == 0
    return shown.decode()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return point(tmp_path / "x.json", values(tmp_path, run={"name": "x", "progress": "auto"}))


def test_a_terminal_shows_a_bar_with_score_tokens_and_time_left(config: Path) -> None:
    shown = on_terminal(config, 140)
    last = next(line for line in reversed(shown.replace("\r", "\n").splitlines()) if "6/6" in line)
    assert "6/6" in last and "score=1.000" in last and "tokens=" in last and "last=toy-5" in last


def test_a_narrow_terminal_still_shows_count_score_and_tokens(config: Path) -> None:
    last = next(line for line in reversed(on_terminal(config, 80).replace("\r", "\n").splitlines()) if "6/6" in line)
    assert "score=1.000" in last and "tokens=" in last


def test_a_terminal_without_a_width_gets_lines(config: Path) -> None:
    assert on_terminal(config, 0).count("score 1, 2 steps") == 6


def test_elsewhere_there_is_a_line_a_task(config: Path) -> None:
    process = start(config)
    _, err = process.communicate(timeout=60)
    assert err.count("score 1, 2 steps") == 6
    assert err.strip().splitlines()[-1] == f"x: score 1.000 over 6 tasks; memarena show {config.parent / 'x'}"


def test_off_is_silent(tmp_path: Path) -> None:
    config = point(tmp_path / "x.json", values(tmp_path, run={"name": "x"}))
    assert finish(config) == ""
