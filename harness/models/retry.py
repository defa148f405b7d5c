"""When a failed attempt is repeated, and after how long."""

from __future__ import annotations

import random
from collections.abc import Callable

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.stop import stop_base
from tenacity.wait import wait_base

from harness.errors import ProviderError, RateLimited
from harness.models.config import EndpointConfig

RETRIED_STATUS = frozenset({408, 409, 425, 429})  # and every 5xx; None means: no connection
LONGEST_WAIT_S = 60.0


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    if not isinstance(error, ProviderError):
        return False
    return error.status is None or error.status in RETRIED_STATUS or error.status >= 500


class _Wait(wait_base):
    """Exponential with jitter from the run's seed; at least what Retry-After asked for."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._drawn: tuple[int, float] = (0, 0.0)

    def __call__(self, retry_state: RetryCallState) -> float:
        attempt = retry_state.attempt_number
        if self._drawn[0] != attempt:  # asked twice an attempt (to stop, to wait): the same answer
            backoff = min(LONGEST_WAIT_S, 2.0 ** (attempt - 1)) * self._rng.uniform(0.5, 1.0)
            self._drawn = (attempt, backoff)
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, RateLimited) and error.retry_after is not None else None
        return self._drawn[1] if asked is None else asked + 0.1 * min(1.0, asked) * self._drawn[1] / 2.0 ** (attempt - 1)


class _Stop(stop_base):
    """After `max_retries`, or where the next wait would not fit what may still be waited."""

    def __init__(self, config: EndpointConfig, wait: _Wait, remaining: Callable[[], float | None]) -> None:
        self._config, self._wait, self._remaining = config, wait, remaining

    def __call__(self, retry_state: RetryCallState) -> bool:
        if retry_state.attempt_number > self._config.max_retries:
            return True
        pause, remaining = self._wait(retry_state), self._remaining()
        return retry_state.idle_for + pause > self._config.max_wait_s or (remaining is not None and pause >= remaining)


def retrying(
    config: EndpointConfig, rng: random.Random, remaining: Callable[[], float | None], sleep: Callable[[float], None]
) -> Retrying:
    """The retry policy for one call; the last error is raised as it is. `remaining` is the limits' remaining seconds."""
    wait = _Wait(rng)
    return Retrying(
        retry=retry_if_exception(is_transient), wait=wait, stop=_Stop(config, wait, remaining), sleep=sleep, reraise=True
    )


def give_up_message(error: ProviderError, endpoint: str, attempts: int, waited_s: float) -> ProviderError:
    """The one error that the run sees after the last attempt, of the same type and status."""
    times = "once" if attempts == 1 else f"{attempts} times in {waited_s:.0f} s"
    text = f"Endpoint '{endpoint}' failed {times}; the last error was: {error.message.rstrip('.')}."
    if isinstance(error, RateLimited):
        if error.retry_after is not None:
            text += f" It asks to wait {error.retry_after:g} s."
        return RateLimited(text, retry_after=error.retry_after)
    return type(error)(text, error.hint, status=error.status)
