"""The run's end of the browser worker: every request has a deadline, and a worker that misses it is killed and replaced.

    pool = BrowserPool(WorkerSettings(env={"MINIWOB_URL": …}))
    with pool.borrow() as browser:                    # a worker process; it stays alive for the next task
        page = browser.open(TaskPlan("browsergym.miniwob.all:ClickTestTask", seed=3))
        page = browser.step("click('13')")            # page.reward, page.done, page.tree, page.error, …

A worker that died, that missed its deadline, or whose browser is gone raises EnvironmentCrashed: infrastructure, never the
agents' failure. The stream then retries the task in a fresh worker, or sets it aside. What an action cannot do (an element that
is not there, a page that does not answer within Playwright's own time) is no failure: it stands in `page.error`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from envs.browser.plan import Complete, Page, Question, TaskPlan
from envs.browser.processes import Process, descendants, end
from harness.errors import EnvironmentCrashed, SetupError
from harness.sandbox.marks import make_marked_folder

_CHUNK = 1 << 18
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)  # in the name of a variable
_TAIL = 2000  # characters of a dead worker's stderr that an error quotes at most


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker process is started with, and the seconds it may take for each request.

    `reset_seconds` bounds the start of a task (the worker's own start is added to that of its first one), `step_seconds` an
    action with its grading, `close_seconds` the end of a task. The time that a judge takes to answer does not count.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = 60.0
    reset_seconds: float = 60.0
    step_seconds: float = 30.0
    close_seconds: float = 20.0
    command: Sequence[str] = (sys.executable, "-m", "envs.browser.worker")


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What a process that shows pages to a model has no business to know: keys of providers stay out of it."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}


class _Worker:
    """A started worker with its pipes and its scratch folder. Not thread-safe."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.scratch = str(make_marked_folder("memarena-browser"))
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the worker
        env = {**_without_secrets(os.environ), "PYTHONPATH": os.pathsep.join(part for part in sys.path if part), **settings.env}
        env |= {"TMPDIR": self.scratch, "MEMARENA_SCRATCH": self.scratch}
        env["NO_PROXY"] = env["no_proxy"] = ",".join(part for part in ("127.0.0.1", "localhost", env.get("NO_PROXY", "")) if part)
        try:
            self.process = subprocess.Popen(
                list(settings.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise EnvironmentCrashed(f"The browser worker cannot be started: {error}.") from error
        self._held = bytearray()
        self._known: tuple[Process, ...] = ()
        self._owner = os.getpid()

    def send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise EnvironmentCrashed(self._obituary()) from error

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next message; raises EnvironmentCrashed where the worker has died, TimeoutError after `deadline`."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._held:
            rest = deadline - time.monotonic()
            if rest <= 0 or not select.select([descriptor], [], [], rest)[0]:
                raise TimeoutError
            data = os.read(descriptor, _CHUNK)
            if not data:
                raise EnvironmentCrashed(self._obituary())
            self._held += data
        line, _, rest_of_it = bytes(self._held).partition(b"\n")
        self._held = bytearray(rest_of_it)
        message: dict[str, Any] = json.loads(line)
        return message

    def remember(self) -> None:
        """Note the browser's processes: should the worker be killed from outside, they can still be found."""
        self._known = descendants(self.process.pid)

    def _obituary(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _TAIL))
        last = self._stderr.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"The browser worker has died (code {self.process.poll()}){': ' + last[0] if last else ''}."

    def kill(self) -> None:
        """End the worker and every process of its browser, remove its scratch folder. May be called twice.

        In a process forked from ours it does nothing: the worker is still in use.
        """
        if os.getpid() != self._owner:
            return
        known = {*self._known, *descendants(self.process.pid)}
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        end(tuple(known))
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


class Browser:
    """A worker that is started when it is first needed and again after it was lost. One task at a time; not thread-safe.

    `complete` answers what a task's evaluator asks a model (see `TaskPlan.judge`); an error that it raises comes out of the
    request during which the evaluator asked.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._worker: _Worker | None = None
        self._end: weakref.finalize[[], Browser] | None = None
        self._described: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = {}
        self.complete: Complete | None = None

    @property
    def process_id(self) -> int | None:
        """The worker's process, None where none runs."""
        return self._worker.process.pid if self._worker is not None else None

    @property
    def scratch(self) -> str | None:
        """The worker's scratch folder (downloads, recordings); it goes with the worker."""
        return self._worker.scratch if self._worker is not None else None

    def scratch_file(self, name: str) -> Path:
        """A place in the worker's scratch folder (see `scratch`); the worker is started where none runs."""
        return Path(self._started().scratch) / name

    def describe(self, subsets: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Names of the actions in `subsets`, and BrowserGym's own description of them."""
        key = tuple(subsets)
        if key not in self._described:
            found = self._request({"op": "describe", "subsets": list(key)}, self._settings.start_seconds)
            self._described[key] = tuple(found["actions"]), str(found["describe"])
        return self._described[key]

    def open(self, plan: TaskPlan) -> Page:
        """Begin a task in a fresh browser context; what came before in this worker is closed."""
        seconds = self._settings.reset_seconds + (self._settings.start_seconds if self._worker is None else 0.0)
        page = Page.from_json(self._request({"op": "open", "plan": plan.to_json()}, seconds))
        assert self._worker is not None
        self._worker.remember()
        return page

    def step(self, action: str) -> Page:
        """Carry out one action and let the task grade."""
        return Page.from_json(self._request({"op": "step", "action": action}, self._settings.step_seconds))

    def close_task(self) -> None:
        """End the task: its context is closed, by which a recording is written; the browser stays. Never raises."""
        self.complete = None
        if self._worker is not None:
            with contextlib.suppress(EnvironmentCrashed):
                self._request({"op": "close"}, self._settings.close_seconds)

    def close(self) -> None:
        """End the worker and its browser; the next request starts another."""
        if self._end is not None:
            self._end()
        self._worker = self._end = None

    def _started(self) -> _Worker:
        if self._worker is None:
            self._worker = _Worker(self._settings)
            self._end = weakref.finalize(self, self._worker.kill)
        return self._worker

    def _request(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        worker = self._started()
        try:
            worker.send(request)
            answer = self._answer(worker, time.monotonic() + seconds)
        except TimeoutError:
            self.close()
            raise EnvironmentCrashed(
                f"The browser did not finish '{request['op']}' within {seconds:g} s; it was ended and will be started anew.",
                "env.reset_seconds and env.step_seconds are the limits.",
            ) from None
        except BaseException:  # a dead worker, a refused judge, Ctrl-C: what it is at work on can no longer be told apart
            self.close()
            raise
        if "error" in answer:
            return self._failed(answer["error"])
        found: dict[str, Any] = answer["ok"]
        return found

    def _answer(self, worker: _Worker, deadline: float) -> dict[str, Any]:
        while True:
            message = worker.receive(deadline)
            if "ask" not in message:
                return message
            start = time.monotonic()
            worker.send({"told": self._told(message["ask"])})
            deadline += time.monotonic() - start

    def _told(self, ask: Mapping[str, Any]) -> str:
        if self.complete is None:
            raise SetupError("The task's evaluator asks a model, and none was given.", "Set env.judge=gateway.")
        return self.complete(
            Question(tuple(ask["messages"]), str(ask.get("model")), ask.get("temperature"), ask.get("max_tokens"))
        )

    def _failed(self, error: Mapping[str, str]) -> dict[str, Any]:
        """Raise what the worker reports. Only a failed setup of a task leaves a browser that can be used again."""
        if error["kind"] != "setup":
            self.close()
        what = {
            "setup": "The task could not be started",
            "browser": "The browser failed",
            "worker": "The browser worker failed",
        }[error["kind"]]
        raise EnvironmentCrashed(f"{what}: {error['message']}")


class BrowserPool:
    """The browsers of one environment: one, and another while a task is open (a rehearsal). They live as long as the pool."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self._idle: list[Browser] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Browser]:
        """A browser for one task; its task is closed at the end of the block."""
        with self._lock:
            browser = self._idle.pop() if self._idle else Browser(self.settings)
        try:
            yield browser
        finally:
            browser.close_task()
            with self._lock:
                self._idle.append(browser)

    def close(self) -> None:
        """End all workers that are not at work."""
        with self._lock:
            for browser in self._idle:
                browser.close()
            self._idle.clear()
