"""No sandbox: the code runs as a plain process of this user, in a process group of its own with rlimits.

It protects from endless loops, runaway memory and huge files. It does NOT protect from reading or writing any file that the
user may, from the network, from signals to other processes, or from a fork bomb beyond the user's own limit. It is used only
where `sandbox=process` was chosen by name (ARCHITECTURE.md rule 10).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from harness.contracts import Problem
from harness.errors import SetupError
from harness.sandbox.base import Channel, Completed, Image, Kind, Plan, Sandbox
from harness.sandbox.local import Child, LocalChannel, limit_resources


class ProcessSandbox:
    """Commands on the bare machine. A mount's target must be its source: there is no file system of its own."""

    kind: Kind = "process"

    def __init__(self, plan: Plan) -> None:
        for mount in plan.mounts:
            if Path(mount.target) != mount.source:
                raise SetupError(f"sandbox=process cannot show {mount.source} as {mount.target}.", "Use docker or bubblewrap.")
        self._plan = plan
        self._channels: list[LocalChannel] = []

    def _child(self, command: Sequence[str], workdir: str, env: Mapping[str, str] | None, seconds: float | None) -> Child:
        python = self._plan.image.python or sys.executable
        path = f"{Path(python).parent}:{os.environ.get('PATH', os.defpath)}"
        # nothing else of our environment: keys of model providers are in it
        variables = {"PATH": path, "HOME": workdir, "LANG": "C.UTF-8", **(env or {})}
        return Child(command, env=variables, cwd=workdir, before=limit_resources(self._plan.limits, seconds))

    def run(
        self, command: Sequence[str], *, timeout: float, stdin: str = "", workdir: str = "/", env: Mapping[str, str] | None = None
    ) -> Completed:
        return self._child(command, workdir, env, timeout).complete(stdin, timeout, self._plan.limits.output_bytes)

    def channel(self, command: Sequence[str], *, workdir: str = "/", env: Mapping[str, str] | None = None) -> Channel:
        channel = LocalChannel(self._child(command, workdir, env, None), self._plan.limits.output_bytes)
        self._channels.append(channel)
        return channel

    def close(self) -> None:
        while self._channels:
            self._channels.pop().close()

    def __enter__(self) -> ProcessSandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Process:
    """Implements `SandboxKind`."""

    def check(self, image: Image) -> list[Problem]:
        return []

    def start(self, plan: Plan) -> Sandbox:
        return ProcessSandbox(plan)
