"""The official task files: `tasks/<apps>-<n>/subtasks/<k>.json` beside the folders `testbed` and `reference`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envs.officebench.grading import CHECKS
from harness.contracts import Task
from harness.errors import SetupError

FETCH = "make data-officebench"
TOTAL = 300
# `records_digest` of the official tasks
OFFICIAL = "14ace3bb41030bd93e2eaaf85b4279e958273593fd8dd325a4ef37f136f504e5"
# how many tasks there are by number of applications (paper, section 3)
GROUPS = {1: 93, 2: 95, 3: 112}
_FOLDER = re.compile(r"(\d)-(\d+)")
_FIELDS = ("username", "date", "weekday", "time", "task", "evaluation")


def default_directory() -> Path:
    """Where the data lies unless the configuration says otherwise."""
    if given := os.environ.get("HARNESS_DATA"):
        return Path(given) / "officebench"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "memarena" / "data" / "officebench"


def _places(root: Path) -> Iterator[tuple[tuple[int, int, int], Path]]:
    """(applications, number, subtask) and the file of every task, in no order."""
    for path in (root / "tasks").glob("*/subtasks/*.json"):
        folder = _FOLDER.fullmatch(path.parent.parent.name)
        if folder and path.stem.isdigit():
            yield (int(folder.group(1)), int(folder.group(2)), int(path.stem)), path


def load(root: Path) -> tuple[Task, ...]:
    """The tasks in the order of the official evaluation: by applications, number and subtask. Raises SetupError."""
    made = []
    for index, ((apps, number, subtask), path) in enumerate(sorted(_places(root))):
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            missing = [name for name in _FIELDS if name not in row]
            # a check that is not to be understood would be one that no agent can pass
            if not missing and not _understood(row["evaluation"]):
                raise ValueError("its evaluation is no list of known checks")
        except (OSError, ValueError, TypeError) as error:
            raise SetupError(f"{path} cannot be read: {error}.", f"Mend it with: {FETCH}.") from error
        if missing:
            raise SetupError(f"{path} has no {', '.join(missing)}.", f"Mend it with: {FETCH}.")
        made.append(_task(index, apps, number, subtask, row, path.parent.parent))
    return tuple(made)


def _understood(evaluation: Any) -> bool:
    """Whether `evaluation` is what a task file has: a list of known checks, each with its arguments."""
    known = {f"evaluate_{name}" for name in CHECKS}
    return (
        isinstance(evaluation, list)
        and bool(evaluation)
        and all(isinstance(item, dict) and str(item.get("function")) in known for item in evaluation)
        and all(isinstance(item.get("args"), dict) for item in evaluation)
    )


def _task(index: int, apps: int, number: int, subtask: int, row: Mapping[str, Any], folder: Path) -> Task:
    goal = str(row["task"])
    return Task(
        task_id=f"{apps}-{number}/{subtask}",
        index=index,
        goal=goal,
        key=f"{apps}-app-{goal}",
        family=f"{apps}-{number}",
        group=f"{apps}-app",
        payload={**{name: row[name] for name in _FIELDS}, "folder": str(folder)},
    )


def records_digest(tasks: tuple[Task, ...]) -> str:
    """sha256 over what the task files say."""
    rows = [[task.task_id, {name: task.payload[name] for name in _FIELDS}] for task in tasks]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def is_official(tasks: tuple[Task, ...]) -> bool:
    """Whether these are the 300 official tasks, word for word."""
    return records_digest(tasks) == OFFICIAL


def digest(root: Path, tasks: tuple[Task, ...]) -> str:
    """sha256 over the task files and all files of the testbeds and references that belong to `tasks`."""
    total = hashlib.sha256(records_digest(tasks).encode())
    for folder in sorted({task.family for task in tasks}):
        for part in ("testbed", "reference"):
            start = root / "tasks" / folder / part
            for path in sorted(start.rglob("*")):
                if path.is_file():
                    total.update(f"{folder}/{part}/{path.relative_to(start)}\n".encode())
                    total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
