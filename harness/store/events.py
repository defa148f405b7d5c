"""The append-only event log of a stream: one JSON object a line, written before the transaction that it belongs to commits.

The log keeps what the database must not: calls and steps of attempts that were aborted. A line is one `write` call, so a
killed process can tear at most the last one; a torn tail is closed and named when the log is opened again, never dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any


class EventLog:
    """Append-only writer of `path`. Raises OSError where the disk refuses (the caller turns that into StorageError)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._fd).st_size
        if self._size and os.pread(self._fd, 1, self._size - 1) != b"\n":
            self._write(b"\n")
            self.append("torn_line", {"note": "the line before was cut off when the process died"})

    @property
    def offset(self) -> int:
        """Bytes written so far."""
        return self._size

    def append(self, kind: str, content: Mapping[str, Any]) -> None:
        """Write one event. `content` must be JSON-able."""
        line = json.dumps({"event": kind, **content}, ensure_ascii=False, separators=(",", ":"))
        # a lone surrogate in a model's answer must not lose the line
        self._write(line.encode("utf-8", "backslashreplace") + b"\n")

    def sync(self) -> None:
        """Force the log to the disk; called once a task, before the commit."""
        os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            self._size += written
            view = view[written:]


# what readers take from an event of this kind; one without is no better than a torn line
_NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attempt_start": ("position", "task_id"),
        "task_end": ("position",),
        "step": ("position", "step", "action", "observation", "reward", "done"),
    }
)


def _told(event: Mapping[str, Any]) -> bool:
    kind = event.get("event")
    return isinstance(kind, str) and all(key in event for key in _NEEDED.get(kind, ()))


def read_events(path: Path, start: int = 0, *, whole: bool = True) -> Iterator[dict[str, Any]]:
    """The events of `path` from byte `start` on. A line torn by a crash is yielded as `{"event": "torn", "text": …}`.

    So is an event that lacks what it is about, unless `whole` is False: who counts what was spent takes all that there is.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.strip():
                continue
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            if not isinstance(event, dict) or (whole and not _told(event)):
                event = {"event": "torn", "text": line.decode("utf-8", "replace").rstrip("\n")}
            yield event
