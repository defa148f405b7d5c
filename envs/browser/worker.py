"""The browser worker: `python -m envs.browser.worker`, one process an environment, Playwright's synchronous interface in it.

Requests come on stdin, answers go to stdout, one JSON object a line:

    {"op": "open", "plan": {…}}      → {"ok": {page…}}
    {"op": "step", "action": text}   → {"ok": {page…}}
    {"op": "close"}                  → {"ok": {}}: the task is over, its browser context closed; the browser stays
    {"op": "describe", "subsets": …} → {"ok": {"actions": [names], "describe": text}}; starts no browser
    any, on failure                  → {"error": {"kind": setup|browser|worker, "message": text}}

While a request is at work the worker may ask back, for the evaluator's judge:

    {"ask": {"messages": […], "model": …}} → {"told": text}

The worker ends, and takes every process below it and its scratch folder (TMPDIR) along, as soon as stdin closes or its parent is
gone: also in the middle of a request, and also when the parent was killed with -9.
"""

from __future__ import annotations

import json
import os
import queue
import select
import shutil
import sys
import threading
import time
from typing import Any

from envs.browser.processes import descendants, end

_CHUNK = 1 << 16
_TRIES = 100  # to remove the scratch folder, 0.05 s apart
_GLANCE = 1.0  # seconds between two looks at whether the parent still lives


class Line:
    """The worker's end of the pipe. A thread reads, so that the end of the parent is seen while the browser works."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self.requests: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._writing, self._asking = threading.Lock(), threading.Lock()
        self._parent = os.getppid()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        with self._writing:
            try:
                while data:
                    data = data[os.write(self._target, data) :]
            except BrokenPipeError:
                threading.Event().wait()  # nobody listens any more: the reading thread is about to end everything, in good order

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask the parent back; its answer. One at a time."""
        with self._asking:
            self.send({"ask": question})
            return self._answers.get()

    def _read(self) -> None:
        held = bytearray()
        while True:
            ready, _, _ = select.select([self._source], [], [], _GLANCE)
            if not ready:
                if os.getppid() != self._parent:
                    break
                continue
            data = os.read(self._source, _CHUNK)
            if not data:
                break
            held += data
            while b"\n" in held:
                line, _, rest = bytes(held).partition(b"\n")
                held = bytearray(rest)
                message = json.loads(line)
                (self.requests if "op" in message else self._answers).put(message)
        _vanish()


def _vanish() -> None:
    """End all that was started here, remove the scratch folder, and end at once.

    A browser that is about to die may still put a file into the folder while it is removed: so it is done until it is done.
    """
    scratch = os.environ.get("MEMARENA_SCRATCH")
    for _ in range(_TRIES):
        end(descendants(os.getpid()))
        if not scratch:
            break
        shutil.rmtree(scratch, ignore_errors=True)
        if not os.path.lexists(scratch):
            break
        time.sleep(0.05)
    os._exit(0)


def _take_pipes() -> Line:
    """stdin and stdout for the protocol alone: what a library prints goes to stderr, what it reads is empty."""
    source, target = os.dup(0), os.dup(1)
    os.set_inheritable(source, False)
    os.set_inheritable(target, False)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return Line(source, target)


def serve(line: Line) -> None:
    """Answer requests for ever. BrowserGym is imported by the first one, so that its failure is an answer too."""
    engine: Any = None
    while True:
        request = line.requests.get()
        try:
            if engine is None:
                from envs.browser.engine import Engine

                engine = Engine(line.ask)
            answer = engine.handle(request)
        except Exception as error:
            kind = getattr(error, "kind", "worker")
            answer = {"error": {"kind": kind, "message": _first_lines(error)}}
        line.send(answer)


def _first_lines(error: Exception) -> str:
    """The error in one line. Playwright appends a log of what it tried: two lines of it say where."""
    text = str(error) if getattr(error, "kind", None) else f"{type(error).__name__}: {error}"
    return " ".join(" ".join(text.splitlines()[:4]).split())[:600]


if __name__ == "__main__":
    sys.stderr.flush()
    serve(_take_pipes())
