"""Grading in a process of its own: a model wrote the files, and a reader that they make explode must not take us along."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from harness.contracts import Outcome, Task
from harness.errors import EnvironmentCrashed

SECONDS = 120
MEMORY_MIB = 4096


def grade_apart(task: Task, workspace: Path, grader: str) -> Outcome:
    """`grade` in a child with bounded time and memory; what it does not survive is a failure. Raises EnvironmentCrashed where
    no child can be started."""
    request = json.dumps({"id": task.task_id, "payload": dict(task.payload), "workspace": str(workspace), "grader": grader})
    command = [sys.executable, "-m", "envs.officebench.grading.child"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    try:
        done = subprocess.run(
            command, input=request, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return _exploded(task, grader, f"took longer than {SECONDS} s")
    except OSError as error:
        raise EnvironmentCrashed(f"The grader cannot be started: {error}.") from error
    started, _, found = done.stdout.partition("\n")
    if started != "started":
        raise EnvironmentCrashed(f"The grader cannot be started: {done.stderr.strip()[-300:]}.")
    if done.returncode != 0:
        return _exploded(task, grader, f"ended with code {done.returncode}")
    return Outcome(**json.loads(found))


def _exploded(task: Task, grader: str, how: str) -> Outcome:
    metrics: dict[str, float | int | str | None] = {"grader": grader, "checks_passed": None, "grading_error": how}
    return Outcome(0.0, False, "failed", "The result does not pass the checks.", metrics)


def main() -> None:
    """Read a request from stdin, print `started` and the outcome as JSON."""
    from envs.officebench.grading import grade

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MIB << 20, MEMORY_MIB << 20))
    request = json.load(sys.stdin)
    print("started", flush=True)
    task = Task(request["id"], 0, "", "", "", payload=request["payload"])
    with contextlib.redirect_stdout(sys.stderr):  # what a reader prints is not the answer
        outcome = grade(task, Path(request["workspace"]), request["grader"])
    print(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
