"""Limits on calls, tokens, dollars, seconds and steps: nestable scopes, refused *before* the call that would pass them.

ARCHITECTURE.md rule 5. A scope (task inside stream inside sweep) has its own `LimitSpec` and its own meter; what a call
spends is added to every open scope. A call is refused when what was used plus the estimated prompt is over a limit: the
answer's length is not known beforehand, so a limit may be overshot by one completion, never by more: a call that might
pass a limit together with the calls in flight waits for them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Literal, Protocol

from harness.errors import ConfigError, LimitExceeded
from harness.models.ledger import LedgerRow

ScopeName = Literal["call", "task", "stream", "sweep"]


@dataclass
class LimitSpec:
    """Upper bounds of one scope; None means no limit. Also the schema of `run.limits.<scope>`.

    `calls` counts model calls that carry usage (a refused or timed-out attempt costs no call), `tokens` is input plus
    output (TOK-R1), `usd` dollars by the price file, `seconds` wall time, `steps` environment steps.
    Raises ValueError for a negative or endless one.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                raise ValueError(f"the limit {item.name} is {value}, it must be a finite number from 0 on, or null for none")


@dataclass(frozen=True)
class Spent:
    """What a scope has used, in the units of `LimitSpec`."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    steps: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.seconds + other.seconds,
            self.steps + other.steps,
        )


@dataclass(frozen=True)
class Estimate:
    """What is known of a call before it is made.

    `prompt_usd` is the least that the prompt can cost (all of it cached), `most_usd` the most that the call can cost; both
    are None where the model's price is unknown.
    """

    prompt_tokens: int = 0
    most_output: int = 0
    prompt_usd: float | None = 0.0
    most_usd: float | None = 0.0
    model: str = ""


class Meter(Protocol):
    """Where a scope's consumption is kept: in memory, or (a sweep's) in something that processes share.

    Both methods must be safe to call from several threads; `read` includes what other processes have added.
    """

    def read(self) -> Spent: ...

    def add(self, spent: Spent) -> None: ...


class LocalMeter:
    """A meter for one process, starting at what was `used` before (by tasks committed earlier)."""

    def __init__(self, used: Spent | None = None) -> None:
        self._spent = used or Spent()
        self._lock = threading.Lock()

    def read(self) -> Spent:
        return self._spent

    def add(self, spent: Spent) -> None:
        with self._lock:
            self._spent = self._spent + spent


@dataclass
class _Scope:
    name: ScopeName
    spec: LimitSpec
    meter: Meter
    started: float

    def elapsed(self, now: float) -> float:
        return self.meter.read().seconds + (now - self.started)


@dataclass
class Limits:
    """The open scopes of one process. Thread-safe: the calls of `complete_many` share it.

    `call` bounds every single call (`tokens` and `usd` by its prompt, `seconds` through its time-out).
    """

    call: LimitSpec = field(default_factory=LimitSpec)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._scopes: list[_Scope] = []
        self._pending: list[Estimate] = []
        self._changed = threading.Condition()

    @contextmanager
    def scope(
        self, name: ScopeName, spec: LimitSpec, *, used: Spent | None = None, meter: Meter | None = None
    ) -> Iterator[Meter]:
        """Open a scope inside those already open; `used` is what it had consumed before (on resume), or give a `meter`."""
        scope = _Scope(name, spec, meter or LocalMeter(used), self.clock())
        self._scopes.append(scope)
        try:
            yield scope.meter
        finally:
            self._scopes.remove(scope)
            scope.meter.add(Spent(seconds=self.clock() - scope.started))

    # --- before ---------------------------------------------------------------------------------------------------------
    def check_before_call(self, estimate: Estimate | int) -> None:
        """Raise LimitExceeded if a call with this prompt (an `Estimate`, or its tokens) would certainly pass a limit.

        Raises ConfigError where a dollar limit meets a model without a price: such a limit cannot be kept.
        """
        ask = Estimate(prompt_tokens=estimate) if isinstance(estimate, int) else estimate
        _refuse("call", self.call, Spent(), ask)
        now = self.clock()
        for scope in reversed(self._scopes):
            _refuse_time(scope, now)
            _refuse(scope.name, scope.spec, scope.meter.read(), ask)

    @contextmanager
    def reserve(self, estimate: Estimate) -> Iterator[None]:
        """Hold room for a call while it is in flight. Raises like `check_before_call`; may wait for calls in flight."""
        with self._changed:
            self.check_before_call(estimate)
            while self._pending and not self._fits(estimate):
                self._changed.wait(self.remaining_seconds())
                self.check_before_call(estimate)
            self._pending.append(estimate)
        try:
            yield
        finally:
            with self._changed:
                self._pending.remove(estimate)
                self._changed.notify_all()

    def check_before_step(self) -> None:
        """Raise LimitExceeded if one more environment step would pass a limit on steps or seconds."""
        now = self.clock()
        for scope in reversed(self._scopes):
            _refuse_time(scope, now)
            used, limit = scope.meter.read().steps, scope.spec.steps
            if limit is not None and used + 1 > limit:
                raise LimitExceeded(scope.name, "steps", limit, used)

    def check_time(self) -> None:
        """Raise LimitExceeded if a scope's seconds are used up."""
        now = self.clock()
        for scope in reversed(self._scopes):
            _refuse_time(scope, now)

    def remaining_seconds(self) -> float | None:
        """Seconds until the first scope's time is up (at least 0), the call's own included; None without a limit."""
        now = self.clock()
        rest = [s.spec.seconds - s.elapsed(now) for s in self._scopes if s.spec.seconds is not None]
        if self.call.seconds is not None:
            rest.append(self.call.seconds)
        return max(0.0, min(rest)) if rest else None

    # --- after ----------------------------------------------------------------------------------------------------------
    def add(self, row: LedgerRow) -> None:
        """Add what an attempt used to every open scope."""
        if row.usage_source is None:
            return
        spent = Spent(calls=1, tokens=row.input_tokens + row.output_tokens, usd=row.cost_usd or 0.0)
        for scope in self._scopes:
            scope.meter.add(spent)

    def add_step(self) -> None:
        """Count one environment step."""
        for scope in self._scopes:
            scope.meter.add(Spent(steps=1))

    def used(self, name: ScopeName) -> Spent:
        """What the innermost open scope `name` has used, its running seconds included. Raises KeyError if none is open."""
        for scope in reversed(self._scopes):
            if scope.name == name:
                return scope.meter.read() + Spent(seconds=self.clock() - scope.started)
        raise KeyError(name)

    def _fits(self, ask: Estimate) -> bool:
        """Whether `ask` cannot pass a limit even if every call in flight uses all it may."""
        calls = len(self._pending) + 1
        tokens = ask.prompt_tokens + sum(p.prompt_tokens + p.most_output for p in self._pending)
        usd = (ask.prompt_usd or 0.0) + sum(p.most_usd or 0.0 for p in self._pending)
        for scope in self._scopes:
            used, spec = scope.meter.read(), scope.spec
            if spec.calls is not None and used.calls + calls > spec.calls:
                return False
            if spec.tokens is not None and used.tokens + tokens > spec.tokens:
                return False
            if spec.usd is not None and used.usd + usd > spec.usd:
                return False
        return True


def _refuse_time(scope: _Scope, now: float) -> None:
    limit = scope.spec.seconds
    if limit is not None and (elapsed := scope.elapsed(now)) >= limit:
        raise LimitExceeded(scope.name, "seconds", limit, round(elapsed, 3))


def _refuse(name: ScopeName, spec: LimitSpec, used: Spent, ask: Estimate) -> None:
    if spec.calls is not None and used.calls + 1 > spec.calls:
        raise LimitExceeded(name, "calls", spec.calls, used.calls)
    if spec.tokens is not None and used.tokens + ask.prompt_tokens > spec.tokens:
        raise LimitExceeded(name, "tokens", spec.tokens, used.tokens)
    if spec.usd is not None:
        if ask.prompt_usd is None:
            raise ConfigError(
                f"The {name} limit of {spec.usd:g} USD cannot be kept: the price of {ask.model or 'the model'} is unknown.",
                "Add the model to a file in conf/prices, or limit tokens instead.",
            )
        if used.usd + ask.prompt_usd > spec.usd:
            raise LimitExceeded(name, "usd", spec.usd, used.usd)
