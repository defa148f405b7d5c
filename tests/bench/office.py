"""What an OfficeBench step costs in a container above the application's own work, and how a task's start is spread over its steps.

`python -m tests.bench.office [docker|bubblewrap|process]…` plays made-up files. An action's own work is measured by calling the
application in this process; the rest is the way into the sandbox and back.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl

from envs.officebench.adapter import OfficeBench, OfficeBenchConfig
from harness.contracts import Session

REPEATS = 30
ACTIONS: dict[str, dict[str, Any]] = {
    "shell true": {"app": "shell", "action": "command", "command": "true"},
    "excel read_file": {"app": "excel", "action": "read_file", "file_path": "/testbed/data/prices.xlsx"},
    "excel set_cell": {"app": "excel", "action": "set_cell", "file_path": "/testbed/data/prices.xlsx", "row_idx": 3, "column_idx": 2, "text": "7"},
    "calendar create_event": {
        "app": "calendar", "action": "create_event", "user": "Ann", "summary": "Lunch",
        "time_start": "2030-01-07 12:00:00", "time_end": "2030-01-07 13:00:00",
    },
}  # fmt: skip


def office(root: Path) -> None:
    """One made-up task in the official layout."""
    task = {"username": "Ann", "date": "2030-01-07", "weekday": "Monday", "time": "9:00 AM", "task": "Do it.", "evaluation": []}
    book = openpyxl.Workbook()
    for row in range(40):
        book.active.append([row, f"item {row}", row * 3])
    for folder in ("subtasks", "testbed/data"):
        (root / "tasks" / "1-1" / folder).mkdir(parents=True)
    (root / "tasks" / "1-1" / "subtasks" / "0.json").write_text(json.dumps(task))
    book.save(root / "tasks" / "1-1" / "testbed" / "data" / "prices.xlsx")


def median(work: Callable[[], Any]) -> float:
    """Milliseconds of one call, the median of REPEATS after one to warm up."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def own(workspace: Path, action: dict[str, Any]) -> float:
    """Milliseconds of the application's own work, in this process."""
    from envs.officebench.apps.dispatch import perform
    from envs.officebench.apps.workspace import Workspace

    space = Workspace(workspace)
    arguments = {name: value for name, value in action.items() if name not in ("app", "action")}
    return median(lambda: perform(space, action["app"], action["action"], arguments))


def measure(kind: str, root: Path) -> None:
    made = OfficeBench(OfficeBenchConfig(data_dir=str(root), sandbox=kind))
    if problems := made.check():
        print(f"  {kind}: {problems[0].what}")
        return
    task = made.tasks()[0]
    with made.open(task, 0) as session:  # builds the image where it is missing
        session.step(session.noop_action)
    started = time.perf_counter()
    with made.open(task, 0) as session:
        session.step(session.noop_action)
        first = (time.perf_counter() - started) * 1000
        for name, action in ACTIONS.items():
            report(kind, name, session, action, root)
        ended = time.perf_counter()
        session.outcome()
    last = (time.perf_counter() - ended) * 1000
    print(
        f"  {kind:10} start and first action {first:.0f} ms, grading and end {last:.0f} ms: {(first + last) / 20:.0f} ms a step of 20"
    )


def report(kind: str, name: str, session: Session, action: dict[str, Any], root: Path) -> None:
    """An action is timed together with one that does nothing, whose time is taken off: the same five times would end the task."""
    nothing = [json.dumps({"app": "shell", "action": "command", "command": command}) for command in ("true", ":")]
    base = median(lambda: [session.step(text) for text in nothing]) / 2
    text = json.dumps(action)
    one = base if name == "shell true" else median(lambda: [session.step(text), session.step(nothing[1])]) - base
    work = own(root / "tasks" / "1-1" / "testbed", action)
    print(f"  {kind:10} {name:22} {one:7.1f} ms, own work {work:7.1f} ms, above it {one - work:7.1f} ms")


def main(kinds: list[str]) -> None:
    print("OfficeBench: a step in the sandbox (median of 30)")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        office(root)
        root.chmod(0o755)
        for kind in kinds:
            measure(kind, root)


if __name__ == "__main__":
    main(sys.argv[1:] or ["docker", "bubblewrap", "process"])
