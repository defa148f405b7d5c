"""A sandbox in a container, by the Docker SDK (any engine that speaks its API: Docker, Podman).

No network, a read-only root, a scratch /tmp, no capabilities, no new privileges, an unprivileged user, limits on memory,
processes and CPUs. A container lives as long as its sandbox and serves many commands; it carries labels that say which process
owns it, so that what a killed process left behind is removed when the next one starts.
"""

from __future__ import annotations

import contextlib
import socket as sockets
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from harness.contracts import Problem
from harness.errors import SetupError
from harness.sandbox.base import Channel, ChannelClosed, ChannelTimeout, Completed, Image, Kind, Plan, Sandbox, SandboxError
from harness.sandbox.marks import alive, process_mark

LABEL = "memarena.owner"
PROCESS_LABEL = "memarena.process"
USER = "65534:65534"
_ENGINE = "starting Docker or Podman (DOCKER_HOST names its socket), or choosing sandbox=bubblewrap"


def _failures() -> tuple[type[Exception], ...]:
    """What the SDK raises: its own errors, and those of the HTTP client below it where the engine is gone or does not answer."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    return DockerException, RequestException


def reap(client: Any) -> int:
    """Remove the containers of processes that are gone; how many there were."""
    count = 0
    # a run beside ours may remove one while they are listed
    for container in client.containers.list(all=True, filters={"label": PROCESS_LABEL}, ignore_removed=True):
        if not alive(container.labels.get(PROCESS_LABEL, "")):
            with contextlib.suppress(Exception):
                container.remove(force=True)
                count += 1
    return count


class DockerSandbox:
    """One container."""

    kind: Kind = "docker"

    def __init__(self, client: Any, plan: Plan) -> None:
        self._client, self._plan = client, plan
        limits = plan.limits
        volumes = {str(m.source.resolve()): {"bind": m.target, "mode": "rw" if m.writable else "ro"} for m in plan.mounts}
        try:
            self._container = client.containers.run(
                plan.image.name,
                # a first process that collects orphans; not every engine has an init of its own to offer
                ["sh", "-c", "while :; do sleep 3600 & wait; done"],
                detach=True,
                network_mode="none",
                read_only=True,
                tmpfs={"/tmp": f"rw,size={limits.scratch_mib}m,mode=1777"},
                mem_limit=f"{limits.memory_mib}m",
                memswap_limit=f"{limits.memory_mib}m",
                pids_limit=limits.processes,
                nano_cpus=int(limits.cpus * 1e9),
                user=USER,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                volumes=volumes,
                labels={LABEL: plan.owner, PROCESS_LABEL: process_mark()},
            )
        except _failures() as error:
            raise SandboxError(f"The container of {plan.image.name} cannot be started: {error}.") from error

    def run(
        self, command: Sequence[str], *, timeout: float, stdin: str = "", workdir: str = "/", env: Mapping[str, str] | None = None
    ) -> Completed:
        stream = _Exec(self._client, self._container.id, command, workdir, env)
        try:
            return stream.complete(stdin, timeout, self._plan.limits.output_bytes, self._kill_all)
        finally:
            stream.close()

    def channel(self, command: Sequence[str], *, workdir: str = "/", env: Mapping[str, str] | None = None) -> Channel:
        return DockerChannel(
            _Exec(self._client, self._container.id, command, workdir, env), self._kill_all, self._plan.limits.output_bytes
        )

    def _kill_all(self) -> None:
        """Kill every process in the container but its first, which keeps it open.

        A fork bomb may leave no room for the process that is to kill it; then the container is started anew, which loses /tmp.
        """
        from docker.errors import DockerException

        try:
            for _ in range(10):
                with contextlib.suppress(DockerException):
                    # all at once, so that nothing forks away from it; it fails where there was no room for it to start
                    killed = self._container.exec_run(["sh", "-c", "kill -9 -1"], user=USER).exit_code == 0
                    if killed and self._container.exec_run(["true"], user=USER).exit_code == 0:
                        return
                time.sleep(0.1)
            self._container.restart(timeout=0)
        except _failures() as error:  # also an engine that does not answer, at once: it would not at the next try either
            raise SandboxError(f"The container cannot be freed of what runs in it: {error}.") from error

    def close(self) -> None:
        with contextlib.suppress(*_failures()):
            self._container.remove(force=True)

    def __enter__(self) -> DockerSandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _Exec:
    """A command in a running container and its multiplexed stream (frames of 8 bytes head: stream, length)."""

    def __init__(self, client: Any, container: str, command: Sequence[str], workdir: str, env: Mapping[str, str] | None) -> None:
        try:
            made = client.api.exec_create(
                container, list(command), stdin=True, workdir=workdir, environment=dict(env or {}), user=USER
            )
            self._api, self.id = client.api, made["Id"]
            self._raw = client.api.exec_start(self.id, socket=True)
        except _failures() as error:
            raise SandboxError(f"The container does not take a command: {error}.") from error
        # the SDK hands out a wrapper around the connection's socket
        self.socket: sockets.socket = getattr(self._raw, "_sock", self._raw)
        self.received = {1: bytearray(), 2: bytearray()}
        self._pending = bytearray()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def end_of_input(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(sockets.SHUT_WR)

    def receive(self, deadline: float) -> bool:
        """Read what comes until `deadline`; False at the end of the stream. Raises TimeoutError."""
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        self.socket.settimeout(rest)
        data = self.socket.recv(1 << 16)
        self._pending += data
        while len(self._pending) >= 8:
            stream, length = self._pending[0], struct.unpack(">I", self._pending[4:8])[0]
            if len(self._pending) < 8 + length:
                break
            self.received.setdefault(stream, bytearray()).extend(self._pending[8 : 8 + length])
            del self._pending[: 8 + length]
        return bool(data)

    def complete(self, stdin: str, timeout: float, limit: int, kill: Any) -> Completed:
        deadline, timed_out = time.monotonic() + timeout, False
        writer = threading.Thread(target=self._feed, args=(stdin.encode(),), daemon=True)
        writer.start()
        dropped = False
        try:
            while self.receive(deadline):
                for data in self.received.values():
                    dropped = dropped or len(data) > limit
                    del data[limit + 1 :]
        except TimeoutError:
            timed_out = True
            kill()
        except OSError as error:
            raise SandboxError(f"The connection to the container was lost: {error}.") from error
        texts = [self.received[stream][:limit].decode("utf-8", "replace") for stream in (1, 2)]
        return Completed(texts[0], texts[1], None if timed_out else self.exit_code(), timed_out, dropped)

    def _feed(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            if data:
                self.send(data)
            self.end_of_input()

    def exit_code(self) -> int | None:
        for _ in range(100):
            try:
                state = self._api.exec_inspect(self.id)
            except _failures() as error:
                raise SandboxError(f"The container has vanished: {error}.") from error
            if not state.get("Running"):
                code: int | None = state.get("ExitCode")
                return code
            time.sleep(0.01)
        return None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()
        with contextlib.suppress(OSError):
            self._raw.close()


class DockerChannel:
    """A `Channel` over an exec's stream."""

    def __init__(self, stream: _Exec, kill: Any, limit: int) -> None:
        self._stream, self._kill, self._limit = stream, kill, limit
        self._open = True

    def ask(self, line: str, *, timeout: float) -> str:
        if not self._open:
            raise ChannelClosed(None, "the channel was closed")
        deadline = time.monotonic() + timeout
        held = self._stream.received[1]
        try:
            self._stream.send(line.encode() + b"\n")
            while b"\n" not in held:
                if len(held) > self._limit:
                    raise TimeoutError
                if not self._stream.receive(deadline):
                    raise ChannelClosed(self._stream.exit_code(), self._stream.received[2].decode("utf-8", "replace"))
        except TimeoutError:
            self.close()
            raise ChannelTimeout(f"no answer within {timeout:g} s") from None
        except (BrokenPipeError, ConnectionError):
            raise ChannelClosed(self._stream.exit_code(), self._stream.received[2].decode("utf-8", "replace")) from None
        answer, _, rest = bytes(held).partition(b"\n")
        held[:] = rest
        return answer.decode("utf-8", "replace")

    def close(self) -> None:
        if self._open:
            self._open = False
            self._kill()
            self._stream.close()


class Docker:
    """Implements `SandboxKind`; one client a process, made when first needed."""

    def __init__(self) -> None:
        self._client: Any = None

    def _connect(self) -> Any:
        if self._client is None:
            try:
                import docker
            except ModuleNotFoundError as error:
                raise SetupError("The package docker is not installed.", "Mend it with: pip install '.[docker]'.") from error
            try:
                client = docker.from_env()
                reap(client)
            except _failures() as error:
                raise SetupError("No container engine answers.", f"Mend it with: {_ENGINE}.") from error
            self._client = client
        return self._client

    def check(self, image: Image) -> list[Problem]:
        try:
            if _has(self._connect(), image.name) or image.context is not None:
                return []
        except SetupError as error:
            return [Problem(error.message, error.hint.removeprefix("Mend it with: "))]
        except SandboxError as error:
            return [Problem(error.message, _ENGINE)]
        return [Problem(f"There is no image {image.name}", f"docker pull {image.name}")]

    def start(self, plan: Plan) -> Sandbox:
        client = self._connect()
        if not _has(client, plan.image.name):
            self.build(plan.image)
        return DockerSandbox(client, plan)

    def build(self, image: Image) -> None:
        """Build `image` from its folder. Raises SetupError with the end of the build's log."""
        import docker

        if image.context is None:
            raise SetupError(f"There is no image {image.name}.", f"Mend it with: docker pull {image.name}.")
        try:
            # packages are installed while it is built; what runs in it later has no network
            self._connect().images.build(path=str(image.context), tag=image.name, rm=True, network_mode="host")
        except docker.errors.BuildError as error:
            log = "".join(str(part.get("stream", "")) for part in error.build_log if isinstance(part, dict))
            raise SetupError(f"The image {image.name} cannot be built: {log[-400:].strip() or error}.") from error
        except _failures() as error:
            raise SetupError(f"The image {image.name} cannot be built: {error}.") from error


def _has(client: Any, name: str) -> bool:
    import docker

    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        return False
    except _failures() as error:
        raise SandboxError(f"The container engine does not answer: {error}.") from error
    return True
