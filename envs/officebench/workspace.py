"""A task's files: a fresh copy of its testbed for the sandbox, and what is left of it for the grader."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from harness.contracts import Task
from harness.errors import EnvironmentCrashed
from harness.sandbox.files import copy_regular

# they exist in every testbed, also where the task ships nothing for them (as the official loop makes them)
FOLDERS = ("data", "emails", "calendar")
ANSWER = "answer.txt"


def prepare(task: Task, folder: Path) -> Path:
    """Copy the testbed of `task` into `folder`, open to the sandbox's user. Raises EnvironmentCrashed (a full disk)."""
    workspace = folder / "testbed"
    source = Path(task.payload["folder"]) / "testbed"
    try:
        if source.is_dir():
            shutil.copytree(source, workspace, copy_function=shutil.copyfile)
        for name in FOLDERS:
            (workspace / name).mkdir(parents=True, exist_ok=True)
        for path, _, files in os.walk(workspace):
            os.chmod(path, 0o777)
            for name in files:
                os.chmod(Path(path) / name, 0o666)
        folder.chmod(0o711)  # the code in the sandbox may be another user's, and must get to the workspace
    except OSError as error:
        raise EnvironmentCrashed(f"The workspace of {task.task_id} cannot be made: {error}.") from error
    return workspace


def collect(workspace: Path, target: Path, answer: str | None) -> int:
    """Copy the regular files of `workspace` to the new folder `target` and write the answer; how many files were left out.

    The answer loses its quotes and ends with a newline, as the official loop writes it.
    """
    try:
        left_out = copy_regular(workspace, target)
        if answer is not None:
            path = target / "data" / ANSWER
            path.parent.mkdir(exist_ok=True)
            path.write_text(answer.replace('"', "").replace("'", "") + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise EnvironmentCrashed(f"The workspace cannot be copied for grading: {error}.") from error
    return len(left_out)
