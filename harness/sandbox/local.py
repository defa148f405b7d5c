"""What the kinds without an engine share: a process group of ours, its output bounded, killed as a whole."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from harness.sandbox.base import ChannelClosed, ChannelTimeout, Completed, SandboxError, SandboxLimits

_CHUNK = 1 << 16


def limit_resources(limits: SandboxLimits, seconds: float | None) -> Callable[[], None]:
    """A function for the child to call before it executes: rlimits from `limits`, and CPU time from the time limit."""

    def apply() -> None:
        size = limits.memory_mib << 20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.scratch_mib << 20, limits.scratch_mib << 20))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        if seconds is not None:
            cpu = int(seconds * max(1.0, limits.cpus)) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))

    return apply


class Child:
    """A started process with pipes, in a session of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        before: Callable[[], None],
    ) -> None:
        try:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=before,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SandboxError(f"The sandbox cannot start {command[0]}: {error}.") from error

    def kill(self) -> None:
        """Kill the whole session and reap the leader."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def complete(self, stdin: str, timeout: float, limit: int) -> Completed:
        """Feed `stdin`, gather output up to `limit` bytes a stream, kill after `timeout` seconds."""
        gathered, timed_out = _pump(self.process, stdin.encode(), time.monotonic() + timeout, limit)
        self.kill() if timed_out else self._end()
        texts = [data[:limit].decode("utf-8", "replace") for data in gathered]
        exit_code = None if timed_out else self.process.returncode
        return Completed(texts[0], texts[1], exit_code, timed_out, any(len(data) > limit for data in gathered))

    def _end(self) -> None:
        """The leader is gone: so must be what it left in the background."""
        self.process.wait()
        self.kill()


def _pump(process: subprocess.Popen[bytes], stdin: bytes, deadline: float, limit: int) -> tuple[list[bytearray], bool]:
    """Write and read until the process ends or time is up; output beyond `limit` is read and dropped."""
    gathered = [bytearray(), bytearray()]
    with selectors.DefaultSelector() as selector:
        streams: list[IO[bytes] | None] = [process.stdout, process.stderr]
        for index, stream in enumerate(streams):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, index)
        assert process.stdin is not None
        if stdin:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE, None)
        else:
            process.stdin.close()
        while selector.get_map():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return gathered, True
            for key, _ in selector.select(min(rest, 0.2)):
                if key.data is None:
                    stdin = _feed(selector, process, stdin)
                elif data := os.read(key.fd, _CHUNK):
                    room = limit + 1 - len(gathered[key.data])
                    gathered[key.data] += data[: max(0, room)]
                else:
                    selector.unregister(key.fileobj)
            if process.poll() is not None and not selector.select(0):
                break  # a child in the background may hold the pipes open for ever
    return gathered, False


def _feed(selector: selectors.BaseSelector, process: subprocess.Popen[bytes], stdin: bytes) -> bytes:
    assert process.stdin is not None
    try:
        stdin = stdin[os.write(process.stdin.fileno(), stdin[:_CHUNK]) :]
    except BrokenPipeError:
        stdin = b""
    if not stdin:
        selector.unregister(process.stdin)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    return stdin


class LocalChannel:
    """A `Channel` over a child's pipes."""

    def __init__(self, child: Child, limit: int) -> None:
        self._child, self._limit, self._held = child, limit, bytearray()

    def ask(self, line: str, *, timeout: float) -> str:
        process = self._child.process
        if process.stdin is None or process.stdin.closed:
            raise ChannelClosed(process.returncode, "the channel was closed")
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._closed() from None
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._held:
                rest = deadline - time.monotonic()
                if rest <= 0 or len(self._held) > self._limit:
                    self.close()
                    raise ChannelTimeout(f"no answer within {timeout:g} s")
                if selector.select(rest):
                    data = os.read(process.stdout.fileno(), _CHUNK)
                    if not data:
                        raise self._closed()
                    self._held += data
        answer, _, rest_of_it = bytes(self._held).partition(b"\n")
        self._held = bytearray(rest_of_it)
        return answer.decode("utf-8", "replace")

    def _closed(self) -> ChannelClosed:
        process = self._child.process
        self._child.kill()
        assert process.stderr is not None
        return ChannelClosed(process.returncode, process.stderr.read(self._limit).decode("utf-8", "replace"))

    def close(self) -> None:
        self._child.kill()
        for stream in (self._child.process.stdin, self._child.process.stdout, self._child.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
