"""A sandbox of namespaces and rlimits, by bubblewrap: no engine, no image, the machine's own system read-only.

New user, mount, PID, network, IPC and UTS namespaces; the file system holds /usr and what it needs, the Python that we run on,
the mounts, and a scratch /tmp. Killing the first process of the PID namespace kills all of it. The bound on processes is an
rlimit inside the user namespace; the kernel exempts root from that, so that as root a control group does it.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from harness.contracts import Problem
from harness.errors import SetupError
from harness.sandbox.base import Channel, Completed, Image, Kind, Plan, Sandbox, SandboxError
from harness.sandbox.cgroup import ControlGroup
from harness.sandbox.local import Child, LocalChannel, limit_resources

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/etc/fonts", "/etc/ssl")


class BubblewrapSandbox:
    """A plan to start the same namespaces around each command; /tmp is new for each, the mounts are not."""

    kind: Kind = "bubblewrap"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._channels: list[LocalChannel] = []
        self._group: ControlGroup | None = None
        if os.geteuid() == 0:
            try:
                self._group = ControlGroup(f"memarena-{uuid.uuid4().hex[:12]}", plan.limits.processes, plan.limits.memory_mib)
            except OSError as error:
                raise SandboxError(f"bubblewrap as root needs a control group, and none can be made: {error}.") from error

    def _arguments(self, command: Sequence[str], workdir: str) -> list[str]:
        words = ["bwrap", "--unshare-all", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
        words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        words += ["--proc", "/proc", "--dev", "/dev", "--size", str(self._plan.limits.scratch_mib << 20), "--tmpfs", "/tmp"]
        for folder in (*_SYSTEM, *_python_folders(self._plan.image.python)):
            if os.path.islink(folder):
                words += ["--symlink", os.readlink(folder), folder]
            elif os.path.exists(folder):
                words += ["--ro-bind", folder, folder]
        for mount in self._plan.mounts:
            words += ["--bind" if mount.writable else "--ro-bind", str(mount.source.resolve()), mount.target]
        words += ["--remount-ro", "/", "--chdir", workdir]
        return [*words, "--", "prlimit", f"--nproc={self._plan.limits.processes}", *command]

    def _child(self, command: Sequence[str], workdir: str, env: Mapping[str, str] | None, seconds: float | None) -> Child:
        python = self._plan.image.python or sys.executable
        variables = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **(env or {})}
        limit = limit_resources(self._plan.limits, seconds)

        def before() -> None:
            if self._group is not None:
                self._group.enter()
            limit()

        return Child(self._arguments(command, workdir), env=variables, cwd="/", before=before)

    def run(
        self, command: Sequence[str], *, timeout: float, stdin: str = "", workdir: str = "/", env: Mapping[str, str] | None = None
    ) -> Completed:
        done = self._child(command, workdir, env, timeout).complete(stdin, timeout, self._plan.limits.output_bytes)
        if done.timed_out and self._group is not None and not self._channels:
            self._group.drain()
        return done

    def channel(self, command: Sequence[str], *, workdir: str = "/", env: Mapping[str, str] | None = None) -> Channel:
        channel = LocalChannel(self._child(command, workdir, env, None), self._plan.limits.output_bytes)
        self._channels.append(channel)
        return channel

    def close(self) -> None:
        while self._channels:
            self._channels.pop().close()
        if self._group is not None:
            self._group.close()

    def __enter__(self) -> BubblewrapSandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _python_folders(python: str | None) -> list[str]:
    """Folders outside of the system that an interpreter needs: its own prefix and, in a virtual environment, the base's."""
    if python is not None:
        return [str(Path(python).resolve().parent.parent)]
    return sorted({sys.prefix, sys.base_prefix} - {"/usr"})


class Bubblewrap:
    """Implements `SandboxKind`."""

    def check(self, image: Image) -> list[Problem]:
        if shutil.which("bwrap") is None:
            return [Problem("bubblewrap is not installed", "apt-get install bubblewrap, or choose another sandbox")]
        try:
            with BubblewrapSandbox(Plan(image)) as sandbox:
                probe = sandbox.run(["true"], timeout=10)
        except SandboxError as error:
            return [Problem(error.message, "choose sandbox=docker")]
        if not probe.ok:
            reason = probe.stderr.strip().splitlines()[-1:] or ["unknown reason"]
            return [Problem(f"bubblewrap cannot make namespaces here ({reason[0]})", "choose sandbox=docker")]
        return []

    def start(self, plan: Plan) -> Sandbox:
        if shutil.which("bwrap") is None:
            raise SetupError("bubblewrap is not installed.", "Install it (apt-get install bubblewrap) or choose another sandbox.")
        return BubblewrapSandbox(plan)
