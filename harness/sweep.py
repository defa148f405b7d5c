"""`memarena run`: one cell, or a sweep over many, each stream of a sweep in a process of its own.

A sweep is composed and checked in full before its first stream starts. With Hydra's basic launcher the streams are started
here, `jobs` at a time; with another launcher (joblib, submitit, ray) Hydra distributes them, and each still runs in a
process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.compose import Point, sweep
from harness.errors import ConfigError, MemArenaError
from harness.run import EXIT_INTERRUPTED, EXIT_OK, Prepared, play, prepare


def run(overrides: Sequence[str], *, multirun: bool, jobs: int) -> int:
    """Compose, check and play. Returns an exit code; raises MemArenaError for what a user can put right."""
    points: list[Point] = []
    modes: list[bool] = []

    def collect(point: Point, is_sweep: bool) -> None:
        points.append(point)
        modes.append(is_sweep)

    elsewhere = ("hydra/launcher=", "hydra.launcher.", "hydra.sweep.dir=")
    local = [word for word in overrides if not word.lstrip("+").startswith(elsewhere)]
    with tempfile.TemporaryDirectory() as scratch:  # Hydra writes a multirun.yaml of its own
        sweep([*local, f"hydra.sweep.dir={scratch}"], multirun, collect)
    prepared = [prepare(*point) for point in points]
    if not any(modes):
        return play(prepared[0])
    _refuse_clashes(prepared)
    if any(word.startswith("hydra/launcher=") and word != "hydra/launcher=basic" for word in overrides):
        sweep(overrides, True, _launched)
        return EXIT_OK
    return _all(points, prepared, jobs)


def _refuse_clashes(prepared: Sequence[Prepared]) -> None:
    counts = Counter(item.directory for item in prepared)
    for directory, count in counts.items():
        if count > 1:
            raise ConfigError(f"{count} points of the sweep would write to {directory}.", "Leave run.name out of a sweep.")


def _all(points: Sequence[Point], prepared: Sequence[Prepared], jobs: int) -> int:
    """Play every stream, `jobs` at a time; the first code that is not 0, or 0."""

    def one(number: int) -> int:
        if prepared[number].finished:
            return play(prepared[number])
        return _subprocess(points[number], quiet=jobs > 1)

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        codes = list(pool.map(one, range(len(points))))
    failed = [str(item.directory) for item, code in zip(prepared, codes, strict=True) if code]
    if failed and EXIT_INTERRUPTED not in codes:
        print(f"{len(failed)} of {len(codes)} streams did not finish: {', '.join(failed)}", file=sys.stderr)
    return next((code for code in codes if code), EXIT_OK)


def _subprocess(point: Point, *, quiet: bool = False) -> int:
    """Play one stream in a process of its own. `quiet` replaces a progress bar, of which there can be only one, by lines."""
    values, choices, bases, experiment = point
    if quiet and values["run"]["progress"] in ("auto", "bar"):
        values = {**values, "run": {**values["run"], "progress": "lines"}}
    content = json.dumps({"values": values, "choices": choices, "bases": bases, "experiment": experiment})
    process = subprocess.Popen([sys.executable, "-m", "harness.worker"], stdin=subprocess.PIPE, text=True)
    try:
        process.communicate(content)
    except KeyboardInterrupt:
        # the terminal has sent it the same signal; it ends its task in good order
        process.wait()
    return process.returncode


def _launched(point: Point, is_sweep: bool) -> None:
    """What a Hydra launcher calls for each point, possibly on another machine."""
    if code := _subprocess(point, quiet=True):
        raise MemArenaError(f"A stream of the sweep ended with exit code {code}.")


def play_point(content: Mapping[str, Any]) -> int:
    """The worker's job: one point as written by `_subprocess`."""
    return play(prepare(content["values"], content["choices"], content["bases"], content["experiment"]))
