"""`make bench`: what the harness itself costs. Prints tables; absolute times depend on the machine, ratios much less."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def child(*arguments: str) -> tuple[float, str]:
    """CPU seconds (user and system, children included) and stdout of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # one BLAS thread: several would measure how busy the other cores are
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def start_up() -> None:
    """CPU until the help stands on the screen, beside an empty interpreter."""
    print("Start-up (median of 7, CPU seconds)")
    for name, arguments in (("python -c pass", ("-c", "pass")), ("memarena --help", ("-m", "harness", "--help"))):
        times = sorted(child(*arguments)[0] for _ in range(7))
        print(f"  {name:18} {times[3]:.3f}")


def workload() -> None:
    """W2 in a process each; CPU per step and its ratio to the floor."""
    print("\nW2: 100 tasks × 30 steps, scripted model, full transcript on disk")
    print(f"  {'':8} {'CPU s':>7} {'ms/step':>8} {'× floor':>8} {'wall s':>7} {'MiB disk':>9} {'MiB peak':>9}")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("floor", "single", "autogen"):
            out = child("-m", "tests.bench.workload", kind, str(Path(scratch) / kind))[1]
            rows.append(json.loads(out.splitlines()[-1]))
    base = rows[0]["cpu_seconds"] / rows[0]["steps"]
    for row in rows:
        each = row["cpu_seconds"] / row["steps"]
        print(
            f"  {row['kind']:8} {row['cpu_seconds']:7.2f} {each * 1000:8.3f} {each / base:8.2f} {row['wall_seconds']:7.2f}"
            f" {row['bytes'] / 2**20:9.1f} {row['peak_mib']:9.0f}"
        )


def methods() -> None:
    """What a memory method's own work costs, each part in a process of its own."""
    print("\n" + child("-m", "tests.bench.sepm")[1], end="", flush=True)
    print("\n" + child("-m", "tests.bench.memories")[1], end="")


def environments() -> None:
    """What an environment's way into its sandbox costs above the work that is done there."""
    print("\n" + child("-m", "tests.bench.office")[1], end="", flush=True)
    print("\n" + child("-m", "tests.bench.browser")[1], end="")


if __name__ == "__main__":
    start_up()
    workload()
    methods()
    environments()
    print("\n" + child("-m", "tests.bench.report")[1], end="")
