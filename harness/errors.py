"""The errors of the harness, each naming the party at fault, and the one table of what an error means for a score.

A run distinguishes three outcomes (ARCHITECTURE.md rule 4): a *score*; an *agent failure*, scored 0; and an
*infrastructure failure*, which is left out of the denominator, shown beside it and retried on resume. A fourth kind,
*stop*, ends the stream in good order: what was committed stays, nothing more is spent, and the same command continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["agent_failure", "infra_failure", "stop"]


class MemArenaError(Exception):
    """Base of all errors that a user may see: one line saying what and where, and a hint saying what to do."""

    party = "harness"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


# --- the user ---------------------------------------------------------------------------------------------------------
class UserError(MemArenaError):
    """Something the user can put right before anything is spent."""

    party = "user"


class ConfigError(UserError):
    """Unknown name, misspelt key, wrong type or an impossible combination in the configuration."""


class SetupError(UserError):
    """A dataset, package, browser, service or key is missing; the hint is the command that mends it."""


class IdentityError(UserError):
    """The run directory holds another cell; the message lists what differs (RUN-R5)."""


class RunBusyError(UserError):
    """Another process is playing this stream."""


# --- limits -----------------------------------------------------------------------------------------------------------
class LimitExceeded(MemArenaError):
    """A limit was reached *before* the call that would have passed it.

    `scope` is call, task, stream or sweep; `kind` is calls, tokens, usd, seconds or steps; `limit` and `used` are in that unit.
    """

    party = "agent"

    def __init__(self, scope: str, kind: str, limit: float, used: float) -> None:
        super().__init__(
            f"{scope} limit reached: {used:g} of {limit:g} {kind}.",
            f"Raise run.limits.{scope}.{kind} to allow more." if scope in ("task", "stream", "sweep") else "",
        )
        self.scope, self.kind, self.limit, self.used = scope, kind, limit, used


# --- the agent (the model and what it wrote) --------------------------------------------------------------------------
class AgentError(MemArenaError):
    """The agents' own doing: the task is scored 0 and the stream goes on."""

    party = "agent"


class ContextOverflow(AgentError):
    """The prompt does not fit the model's context window (`used` of `limit` tokens)."""

    def __init__(self, model: str, used: int | None, limit: int | None) -> None:
        numbers = f"{used if used is not None else 'unknown'} of {limit if limit is not None else 'unknown'} tokens"
        super().__init__(f"The prompt does not fit the context window of {model}: {numbers}.")
        self.used, self.limit = used, limit


class ContentRefused(AgentError):
    """The provider's content filter refused the prompt or the answer."""


# --- infrastructure ---------------------------------------------------------------------------------------------------
class InfraError(MemArenaError):
    """Neither the agents nor the user: the attempt is rolled back, counted apart and retried."""

    party = "infrastructure"


class ProviderError(InfraError):
    """A model endpoint failed after all retries; `status` is the HTTP status where there was one."""

    def __init__(self, message: str, hint: str = "", *, status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class RateLimited(ProviderError):
    """429 or an equivalent; `retry_after` is in seconds where the provider said so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, status=429)
        self.retry_after = retry_after


class ProviderTimeout(ProviderError):
    """The endpoint did not answer within the call's time limit."""


class EnvironmentCrashed(InfraError):
    """The benchmark's engine, site, container or browser failed."""


# --- errors that end the stream ---------------------------------------------------------------------------------------
class ModelSetupError(SetupError):
    """The endpoint refuses every call: wrong key, no access, unknown model."""


class ReplayMiss(UserError):
    """`replay` mode met a request that was never recorded."""


class StorageError(MemArenaError):
    """The disk is full or a file cannot be written; what was committed is safe."""

    party = "infrastructure"


class LedgerMismatch(MemArenaError):
    """TOK-R7: ledger, gateway counters and provider usage disagree. A bug of the harness: nothing is committed."""


@dataclass(frozen=True)
class Rule:
    """What an exception means: its verdict for the task, and whether the same attempt may be repeated at once."""

    verdict: Verdict
    retry: bool


# The first matching row decides (rows are ordered from special to general).
POLICY: tuple[tuple[type[BaseException], Rule], ...] = (
    (ModelSetupError, Rule("stop", retry=False)),
    (ReplayMiss, Rule("stop", retry=False)),
    (UserError, Rule("stop", retry=False)),
    (StorageError, Rule("stop", retry=False)),
    (LedgerMismatch, Rule("stop", retry=False)),
    (LimitExceeded, Rule("agent_failure", retry=False)),
    (AgentError, Rule("agent_failure", retry=False)),
    (InfraError, Rule("infra_failure", retry=True)),
    (MemArenaError, Rule("stop", retry=False)),
)


def classify(error: BaseException) -> Rule:
    """Return the rule for `error`. A stream's or sweep's own limit stops the stream; an unforeseen exception does too.

    An exception that no row names is a bug (in the harness, a method or an adapter): it is never turned into a score.
    """
    if isinstance(error, LimitExceeded) and error.scope in ("stream", "sweep"):
        return Rule("stop", retry=False)
    for kind, rule in POLICY:
        if isinstance(error, kind):
            return rule
    return Rule("stop", retry=False)
