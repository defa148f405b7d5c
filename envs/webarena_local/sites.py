"""The run's end of the double's server: started when first needed, asked with deadlines, ended with the run."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from harness.errors import EnvironmentCrashed

START_SECONDS = 30.0
ORDER_SECONDS = 10.0


class Sites:
    """One server with its seven sites. Raises EnvironmentCrashed where it does not start or answer in time; it is then ended
    and started anew by the next call."""

    def __init__(self, start_seconds: float = START_SECONDS) -> None:
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._urls: dict[str, str] = {}
        self._end: weakref.finalize[..., Sites] | None = None

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def urls(self) -> Mapping[str, str]:
        """Address of every site and of the reset server (`reset`), by name; the server is started where none runs."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._urls

    def reset(self) -> None:
        """All sites as they were at the start."""
        self._order({"op": "reset"})

    def plant(self, site: str, kind: str | None, path: str = "/", seconds: float = 0.0) -> None:
        """Let `site` fail at `path` and below (see `site.world.Fault`); `kind` None: no longer. For tests."""
        self._order({"op": "fault", "site": site, "kind": kind, "path": path, "seconds": seconds})

    def state(self) -> dict[str, Any]:
        """What tests ask about the world behind the pages."""
        found: dict[str, Any] = self._order({"op": "state"})
        return found

    def close(self) -> None:
        if self._end is not None:
            self._end()
        self._process = self._end = None

    def _start(self) -> None:
        self.close()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the server)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "envs.webarena_local.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=env,
            start_new_session=True,  # Ctrl-C is the run's: it ends the server itself
        )
        self._end = weakref.finalize(self, _end, self._process, self._stderr)
        self._urls = self._answer(self._start_seconds)["urls"]

    def _order(self, order: Mapping[str, Any]) -> Any:
        self.urls()
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a dead server has an obituary to read
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        return self._answer(ORDER_SECONDS)["ok"]

    def _answer(self, seconds: float) -> dict[str, Any]:
        """The next line that the server writes, as JSON."""
        assert self._process is not None and self._process.stdout is not None
        deadline, held = time.monotonic() + seconds, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not held.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._lost(f"did not answer within {seconds:g} s")
                data = os.read(self._process.stdout.fileno(), 65536)
                if not data:
                    self._lost("has ended")
                held += data
        answer: dict[str, Any] = json.loads(held)
        return answer

    def _lost(self, what: str) -> NoReturn:
        last = ""
        if self._stderr is not None:
            self._stderr.seek(0)
            last = self._stderr.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        self.close()
        raise EnvironmentCrashed(f"The server of the local WebArena sites {what}{f': {last}' if last else ''}.")


def _end(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
