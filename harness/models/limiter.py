"""How many requests an endpoint gets at once: halved when it says 429, grown slowly while it answers (AIMD)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class AdaptiveLimiter:
    """At most `maximum` requests at once, fewer after a 429. Thread-safe."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._allowed = float(maximum)
        self._running = 0
        self._halved_at = float("-inf")
        self._free = threading.Condition()

    @property
    def allowed(self) -> int:
        """How many requests may run at once now."""
        return max(1, int(self._allowed))

    @contextmanager
    def slot(self) -> Iterator[float]:
        """Wait for a slot and hold it; yields the moment the request started (to be given to `throttled`)."""
        with self._free:
            while self._running >= self.allowed:
                self._free.wait()
            self._running += 1
        try:
            yield time.monotonic()
        finally:
            with self._free:
                self._running -= 1
                self._free.notify_all()

    def throttled(self, started: float) -> None:
        """The endpoint said 429 to a request begun at `started`: halve, but once only for requests that ran side by side."""
        with self._free:
            if started >= self._halved_at:
                self._allowed = max(1.0, self._allowed / 2)
                self._halved_at = time.monotonic()

    def answered(self) -> None:
        """The endpoint answered: allow one more after as many answers as are allowed now."""
        if self._allowed < self.maximum:
            with self._free:
                self._allowed = min(float(self.maximum), self._allowed + 1.0 / self._allowed)
                self._free.notify_all()
