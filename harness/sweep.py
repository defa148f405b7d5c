"""`memarena run`: one cell, or a sweep over many, each stream of a sweep in a process of its own.

A sweep is composed and checked in full before its first stream starts. With Hydra's basic launcher the streams are started
here, `jobs` at a time; with another launcher (joblib, submitit, ray) Hydra distributes them, and each still runs in a
process of its own. A stream's process ends in good order when the one that started it is gone, however that happened.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from harness.compose import Point, sweep
from harness.errors import ConfigError, MemArenaError
from harness.plan.consent import require_consent
from harness.run import EXIT_INTERRUPTED, EXIT_OK, Prepared, interruptible, play, prepare


def run(overrides: Sequence[str], *, multirun: bool, jobs: int, yes: bool = False) -> int:
    """Compose, check, ask if it may be dear (not with `yes`), and play. Returns an exit code; raises MemArenaError for what a
    user can put right."""
    if jobs < 1:
        raise ConfigError(f"--jobs is {jobs}.", "Use a number from 1 on.")
    points, is_sweep = points_of(overrides, multirun=multirun)
    prepared = [prepare(*point) for point in points]
    if is_sweep:
        _refuse_clashes(prepared)
    require_consent([item.cell for item in prepared if not item.finished], yes=yes)
    if not is_sweep:
        return play(prepared[0])
    if any(word.startswith("hydra/launcher=") and word != "hydra/launcher=basic" for word in overrides):
        sweep(overrides, True, _launched)
        return EXIT_OK
    return _all(points, prepared, jobs)


def points_of(overrides: Sequence[str], *, multirun: bool) -> tuple[list[Point], bool]:
    """The points of a command's configuration, composed here whatever launcher it names, and whether they are a sweep."""
    points: list[Point] = []
    modes: list[bool] = []

    def collect(point: Point, is_sweep: bool) -> None:
        points.append(point)
        modes.append(is_sweep)

    elsewhere = ("hydra/launcher=", "hydra.launcher.", "hydra.sweep.dir=")
    local = [word for word in overrides if not word.lstrip("+").startswith(elsewhere)]
    with tempfile.TemporaryDirectory() as scratch:  # Hydra writes a multirun.yaml of its own
        sweep([*local, f"hydra.sweep.dir={scratch}"], multirun, collect)
    return points, any(modes)


def _refuse_clashes(prepared: Sequence[Prepared]) -> None:
    seen: dict[Path, str] = {}
    for item in prepared:
        before = seen.get(item.directory)
        if before == item.cell.identity:
            raise ConfigError(f"A point of the sweep is there twice: {item.directory}.", "Name every value once.")
        if before is not None:
            raise ConfigError(f"Two points of the sweep would write to {item.directory}.", "Leave run.name out of a sweep.")
        seen[item.directory] = item.cell.identity


def _all(points: Sequence[Point], prepared: Sequence[Prepared], jobs: int) -> int:
    """Play every stream, `jobs` at a time; the first code that is not 0, or 0. An interrupt ends those that run."""
    streams = [None if item.finished else Stream(point, quiet=jobs > 1) for point, item in zip(points, prepared, strict=True)]

    def one(number: int) -> int:
        stream = streams[number]
        return play(prepared[number]) if stream is None else stream.play()

    with interruptible(), ThreadPoolExecutor(min(jobs, len(points))) as pool:
        futures = [pool.submit(one, number) for number in range(len(points))]
        try:
            codes = [future.result() for future in futures]
        except KeyboardInterrupt:
            for stream in streams:
                if stream is not None:
                    stream.stop()
            raise
    failed = [str(item.directory) for item, code in zip(prepared, codes, strict=True) if code]
    if failed and EXIT_INTERRUPTED not in codes:
        print(f"{len(failed)} of {len(codes)} streams did not finish: {', '.join(failed)}", file=sys.stderr)
    return next((code for code in codes if code), EXIT_OK)


class Stream:
    """One stream in a process of its own (`harness.worker`). Its stdin stays open as long as we live.

    `quiet` replaces a progress bar, of which a terminal has room for one, by lines.
    """

    def __init__(self, point: Point, *, quiet: bool) -> None:
        values, choices, bases, experiment = point
        if quiet and values["run"]["progress"] in ("auto", "bar"):
            values = {**values, "run": {**values["run"], "progress": "lines"}}
        self._content = json.dumps({"values": values, "choices": choices, "bases": bases, "experiment": experiment})
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def play(self) -> int:
        """Start it and wait for its end; its exit code. Not started any more after `stop`."""
        with self._lock:
            if self._stopped:
                return EXIT_INTERRUPTED
            self._process = subprocess.Popen([sys.executable, "-m", "harness.worker"], stdin=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(self._content + "\n")
            self._process.stdin.flush()
        return self._process.wait()

    def stop(self) -> None:
        """Let it end its task in good order, and not start if it has not."""
        with self._lock:
            self._stopped = True
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()


def _launched(point: Point, is_sweep: bool) -> None:
    """What a Hydra launcher calls for each point, possibly on another machine."""
    if code := Stream(point, quiet=True).play():
        raise MemArenaError(f"A stream of the sweep ended with exit code {code}.")


def play_point(content: Mapping[str, Any]) -> int:
    """The worker's job: one point as a `Stream` has sent it."""
    return play(prepare(content["values"], content["choices"], content["bases"], content["experiment"]))


def end_with_parent(stdin: IO[str]) -> None:
    """Interrupt this process when `stdin` ends: whoever started it is gone, and nobody waits for what it would spend."""

    def watch() -> None:
        stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent").start()
