"""One generation of the embedded model, computed in a thread of its own.

The library calls back into Python for every chunk, and drops whatever exception comes out of that call. Signals are delivered
to the main thread only: an interrupt raised inside the callback would vanish there, together with the chunk, and the answer
would go on with a hole in it. In a thread of its own no signal reaches the callback; whoever waits for the generation is
interrupted instead, asks it to stop, and goes on with the interrupt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from harness.errors import ModelSetupError, ProviderTimeout

# a batch of the prompt is computed between two looks at the flags (a second on a slow core)
LONGEST_STOP_S = 5.0

Chunk = dict[str, Any]
Complete = Callable[[dict[str, Any], Callable[[Any], bool]], object]


class Generation:
    """The chunks of one answer. `complete` is the library's function: it takes the request and a callback for the chunks, and
    returns when the answer is complete or the callback has said True."""

    def __init__(self, complete: Complete, body: dict[str, Any]) -> None:
        self._complete, self._body = complete, body
        self._chunks: list[Chunk] = []
        self._deadline = float("inf")
        self._late = False
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="memarena-embedded", daemon=True)

    @property
    def runs(self) -> bool:
        """Whether the library is still computing."""
        return self._thread.is_alive() and not self._done.is_set()

    def chunks(self, timeout_s: float) -> list[Chunk]:
        """All chunks, the last of them with an error or the usage. Raises ProviderTimeout, ModelSetupError if `stop` was
        called meanwhile, and what the callback failed with."""
        self._deadline = time.monotonic() + timeout_s
        try:
            self._thread.start()
            # an event, not `join`: this wait is interruptible
            in_time = self._done.wait(timeout_s + LONGEST_STOP_S)
        except BaseException:
            self.stop()
            raise
        if not in_time:
            self.stop()
        if self._error is not None:
            raise self._error
        if any(_finished(chunk) for chunk in self._chunks):
            return self._chunks
        if self._stopping.is_set() and in_time:
            raise ModelSetupError("The embedded model was closed during a call.")
        if self._late or not in_time:
            raise ProviderTimeout(f"The embedded model did not finish within {timeout_s:.1f} s.")
        return self._chunks

    def stop(self) -> None:
        """Ask the library to stop, and wait a moment until it does."""
        self._stopping.set()
        if self._thread.is_alive():
            self._done.wait(LONGEST_STOP_S)

    def _work(self) -> None:
        try:
            self._complete(self._body, self._receive)
        except BaseException as error:  # raised again by whoever waits
            self._error = self._error or error
        finally:
            self._done.set()

    def _receive(self, chunk: Any) -> bool:
        """The callback; True stops the computation. No exception may leave it: the library would lose it."""
        try:
            self._chunks.extend(chunk if isinstance(chunk, list) else [chunk])
            self._late = time.monotonic() > self._deadline
            return self._late or self._stopping.is_set()
        except BaseException as error:
            self._error = error
            return True


def _finished(chunk: Chunk) -> bool:
    return "error" in chunk or bool(chunk.get("usage"))
