"""Which process owns a container or a folder, and whether it still runs: what a killed process left behind can be removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def process_mark() -> str:
    """What tells this process from all others of this machine: its id and its start time in clock ticks since boot."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def _started(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def alive(mark: str) -> bool:
    """Whether the process of `mark` still runs. Without /proc a process of the same number is taken for the same one."""
    pid, _, started = mark.partition("-")
    if not pid.isdigit():
        return False
    if started != str(None):
        return _started(int(pid)) == started
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def make_marked_folder(prefix: str) -> Path:
    """A new folder in the temporary directory; first removes those of `prefix` whose process is gone."""
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"{prefix}-*"):
        pid, _, rest = old.name.removeprefix(f"{prefix}-").partition("-")
        if not alive(f"{pid}-{rest.partition('-')[0]}"):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{prefix}-{process_mark()}-"))


@contextlib.contextmanager
def marked_folder(prefix: str) -> Iterator[Path]:
    """The same, removed at the end."""
    folder = make_marked_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
