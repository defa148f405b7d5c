"""What a path in a check means.

The official evaluation runs on `tasks/<task>/outputs/<subtask>/<run>/testbed`, so that its checks reach the task's own folders by
`../../../../`: `reference` holds expected files, `cache/<subtask>/testbed` the files as they were before the run.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path

_UP = "../../../../"


@dataclass(frozen=True)
class Places:
    """`workspace` is the graded folder, `task` the official folder of the task (with `testbed` and `reference`)."""

    workspace: Path
    task: Path

    def path(self, text: str) -> Path:
        """The file that a check names. Raises ValueError for one outside the workspace and the task's folders."""
        clean = posixpath.normpath(text)
        if clean.startswith(_UP):
            parts = clean.removeprefix(_UP).split("/")
            if parts[0] == "reference":
                return self.task.joinpath(*parts)
            if parts[0] == "cache" and len(parts) > 3 and parts[2] == "testbed":
                return self.task.joinpath("testbed", *parts[3:])
        if clean.startswith(("/", "..")):
            raise ValueError(f"the check names {text}, which is outside the workspace")
        return self.workspace / clean
