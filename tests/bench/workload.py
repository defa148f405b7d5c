"""W2: 100 tasks × 30 steps with the scripted model and the full transcript on disk, once through the harness, once without.

`python -m tests.bench.workload KIND DIRECTORY` plays it in this process and prints one JSON line: CPU seconds, steps, bytes on
disk and peak memory. KIND is a host's name, or `floor`: a plain loop that assembles the same prompts and writes the same
transcript as JSON lines and a SQLite row a step, committed once a task.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from envs.catalogue import CATALOGUE
from tests.support.build import prepared, scripted
from tests.support.toy import Toy, ToyConfig

TASKS, STEPS = 100, 30
FILLER = "On the countertop 1, you see a bread 1, a butterknife 2, a cellphone 1, a peppershaker 1, and a statue 2. "


class WideToy(Toy):
    """The toy with observations as long as ALFWorld's; a step costs next to nothing."""

    def open(self, task: Any, seed: int) -> Any:
        from contextlib import contextmanager
        from dataclasses import replace

        inner = super().open(task, seed)

        @contextmanager
        def wide() -> Any:
            with inner as session:
                session.observation += " " + FILLER * 3
                step = session.step

                def longer(action: str) -> Any:
                    result = step(action)
                    return replace(result, observation=f"{FILLER}{result.observation}")

                session.step = longer
                yield session

        return wide()


def harness(host: str, root: Path) -> int:
    """Steps played through the whole harness."""
    from harness.run import play
    from harness.store.view import RunView

    CATALOGUE["toy"] = "tests.bench.workload:WideToy"
    ready = prepared(
        root,
        host={"name": host},
        env={"n": TASKS, "max_steps": STEPS, "length": 99},
        models=scripted("random"),
        run={"name": host},
    )
    if play(ready):
        raise SystemExit("the workload did not finish")
    return sum(row.steps for row in RunView(ready.directory).tasks())


def floor(root: Path) -> int:
    """The same prompts and the same transcript, written by the plainest loop that keeps them."""
    from harness.contracts import Guidance, Member
    from harness.limits import Limits
    from harness.session import RecordedSession
    from methods.base import MemoryMethod
    from methods.hosts.prompt import assemble

    root.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(root / "floor.sqlite", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE step (task TEXT, step INTEGER, action TEXT, tokens INTEGER)")
    environment, memory, member, steps = (
        WideToy(ToyConfig(n=TASKS, max_steps=STEPS)),
        MemoryMethod(None, None),
        Member("a", "a"),
        0,
    )  # type: ignore[arg-type]
    with (root / "floor.jsonl").open("a") as log:
        for task in environment.tasks():
            db.execute("BEGIN IMMEDIATE")
            with environment.open(task, 0) as inner:
                session = RecordedSession(task, inner, memory, Limits(), lambda *a: None, STEPS)
                while not session.done:
                    messages = assemble("Act.", member, session, Guidance())
                    turn = session.act("a", "look")
                    log.write(json.dumps({"messages": messages, "reply": "look", "observation": turn.result.observation}) + "\n")
                    tokens = sum(len(message["content"]) for message in messages) // 4
                    db.execute("INSERT INTO step VALUES (?, ?, ?, ?)", (task.task_id, turn.step, turn.action, tokens))
                    steps += 1
            log.flush()
            db.execute("COMMIT")
    return steps


def main() -> None:
    kind, root = sys.argv[1], Path(sys.argv[2])
    cpu, wall = time.process_time(), time.perf_counter()
    steps = floor(root) if kind == "floor" else harness(kind, root)
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    print(
        json.dumps(
            {
                "kind": kind,
                "steps": steps,
                "cpu_seconds": time.process_time() - cpu,
                "wall_seconds": time.perf_counter() - wall,
                "bytes": size,
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
