"""One contract for all kinds of sandbox (ARCHITECTURE.md rule 10): start, run with a time limit, close.

A sandbox sees a read-only system, the mounts it was given and a scratch /tmp; it has no network. A time-out kills every process
that the command has started. What lies in a mounted folder afterwards was written by the model: read it with
`harness.sandbox.files`, which follows no link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

from harness.contracts import Problem
from harness.errors import InfraError

Kind = Literal["docker", "bubblewrap", "process"]


class SandboxError(InfraError):
    """The sandbox itself failed (not the code inside it): no engine, no image, a container that vanished."""


@dataclass(frozen=True)
class Mount:
    """A folder or file of this machine, seen at the absolute path `target` inside."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Image:
    """A container image by name, built from `context` (a folder with a Dockerfile) where it does not exist yet.

    The other kinds run on this machine's own system, read-only; `python` is their interpreter (None: the one we run on).
    """

    name: str
    context: Path | None = None
    python: str | None = None


@dataclass(frozen=True)
class SandboxLimits:
    """Bounds of one sandbox: memory in MiB, processes, CPUs, scratch space in MiB, and output kept of a command in bytes."""

    memory_mib: int = 1024
    processes: int = 128
    cpus: float = 1.0
    scratch_mib: int = 256
    output_bytes: int = 1 << 20


@dataclass(frozen=True)
class Completed:
    """How a command ended. `exit` is its code (negative: the signal that ended it), None if it was killed at its time limit.

    `truncated` says that output beyond the limit was dropped.
    """

    stdout: str
    stderr: str
    exit: int | None
    timed_out: bool = False
    truncated: bool = False

    @property
    def ok(self) -> bool:
        return self.exit == 0


class Sandbox(Protocol):
    """A started sandbox. Not thread-safe: one command at a time."""

    kind: Kind

    def run(
        self, command: Sequence[str], *, timeout: float, stdin: str = "", workdir: str = "/", env: Mapping[str, str] | None = None
    ) -> Completed:
        """Run `command` to its end, or kill it and all its children after `timeout` seconds. Raises SandboxError."""

    def channel(self, command: Sequence[str], *, workdir: str = "/", env: Mapping[str, str] | None = None) -> Channel:
        """Start a long-lived command that is talked to line by line. Raises SandboxError."""

    def close(self) -> None:
        """Kill what runs and remove every trace; may be called twice."""

    def __enter__(self) -> Sandbox: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class ChannelClosed(Exception):
    """The command behind a channel has ended; `exit` is its code, None where unknown."""

    def __init__(self, exit: int | None, stderr: str) -> None:
        super().__init__(f"the process ended with code {exit}: {stderr.strip()[-500:]}")
        self.exit, self.stderr = exit, stderr


class ChannelTimeout(Exception):
    """No answer within the time limit; the process and its children were killed."""


class Channel(Protocol):
    """A running command, one line a request, one line an answer."""

    def ask(self, line: str, *, timeout: float) -> str:
        """Send a line (without newline), wait for one. Raises ChannelClosed, ChannelTimeout (seconds)."""

    def close(self) -> None:
        """Kill the command and its children."""


@dataclass(frozen=True)
class Plan:
    """What a sandbox is started with."""

    image: Image
    mounts: tuple[Mount, ...] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    owner: str = "memarena"  # the run it belongs to, for labels


class SandboxKind(Protocol):
    """A way to make sandboxes."""

    def check(self, image: Image) -> list[Problem]:
        """What is missing; spends nothing."""

    def start(self, plan: Plan) -> Sandbox:
        """Raises SandboxError, or SetupError where something is missing."""
