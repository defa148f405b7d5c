"""Ending a process with all that it has started, also what has left its process group. Linux: the tree is read from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process and when it was started (clock ticks since boot): a number that was given away again is another process."""

    pid: int
    group: int
    started: int


def _stat(pid: int) -> tuple[int, Process] | None:
    """Parent and process of `pid`; None where it is gone or only waits to be reaped."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    fields = text[text.rindex(")") + 2 :].split()  # a name may hold blanks and brackets
    if fields[0] in ("Z", "X"):
        return None
    return int(fields[1]), Process(pid, int(fields[2]), int(fields[19]))


def descendants(pid: int) -> tuple[Process, ...]:
    """All processes below `pid`, without itself; empty on systems without /proc."""
    children: dict[int, list[Process]] = {}
    names = os.listdir(_PROC) if _PROC.is_dir() else []
    for name in names:
        if name.isdigit() and (found := _stat(int(name))) is not None:
            children.setdefault(found[0], []).append(found[1])
    tree, seen = [], [pid]
    while seen:
        below = children.get(seen.pop(), [])
        tree += below
        seen += [process.pid for process in below]
    return tuple(tree)


def alive(process: Process) -> bool:
    found = _stat(process.pid)
    return found is not None and found[1].started == process.started


def end(processes: tuple[Process, ...]) -> None:
    """Kill those that still live, and the process groups that they lead."""
    for process in processes:
        if not alive(process):
            continue
        if process.group == process.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.group, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
