"""A control group around a sandbox: bounds on processes and memory for all of it together, where this user may make one.

Needed where we run as root, since the kernel exempts root from the limit on processes. Version 1 (a hierarchy a controller) and
version 2 (one hierarchy) are both served.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


class ControlGroup:
    """A group named after us. `enter` is called by the child before it executes; `close` kills what is left and removes it."""

    def __init__(self, name: str, processes: int, memory_mib: int, root: Path = ROOT) -> None:
        """Raises OSError where groups cannot be made."""
        size = memory_mib << 20
        self._processes = processes
        if (root / "cgroup.controllers").exists():
            wanted = [(root, {"pids.max": processes, "memory.max": size})]
        else:
            wanted = [(root / "pids", {"pids.max": processes}), (root / "memory", {"memory.limit_in_bytes": size})]
        self._folders: list[Path] = []
        try:
            for parent, values in wanted:
                folder = parent / name
                folder.mkdir()
                self._folders.append(folder)
                for key, value in values.items():
                    (folder / key).write_text(str(value))
        except OSError:
            self.close()
            raise

    def enter(self) -> None:
        """Move the calling process into the group."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def drain(self, seconds: float = 5.0) -> None:
        """Kill every process of the group and wait until they are gone.

        The kernel goes on counting a few of them for a second or two; only a count that would be in the way is waited for.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            left = 0
            for folder in self._folders:
                with contextlib.suppress(OSError):
                    pids = (folder / "cgroup.procs").read_text().split()
                    left += len(pids)
                    for pid in pids:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(int(pid), 9)
                with contextlib.suppress(OSError):
                    left += int((folder / "pids.current").read_text()) > self._processes // 2
            if not left:
                return
            time.sleep(0.01)

    def close(self) -> None:
        """Drain the group and remove it; may be called twice."""
        self.drain()
        for folder in self._folders:
            with contextlib.suppress(OSError):
                folder.rmdir()
        self._folders = []
