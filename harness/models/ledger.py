"""The usage ledger: one row per attempted model call (METHODS.md TOK-R1..R10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harness.contracts import ModelKey, Phase, UsageSource

# the endpoint of what is computed in this process: it costs nothing, counts against no limit and is not reconciled
IN_PROCESS = "in-process"


@dataclass(frozen=True)
class LedgerRow:
    """One attempt at one call. Token fields are counts; `cached_input_tokens` is part of `input_tokens` (TOK-R3),
    `reasoning_tokens` part of `output_tokens` (TOK-R2).

    `usage_source` is None where the attempt brought no usage (then all counts are 0 and `ok` is False, TOK-R4).
    `cost_usd` is None where the price is unknown, never 0 instead. `latency_s` is None for a replayed call: nothing was
    measured. `digest` and `occurrence` identify the request for record/replay.
    """

    position: int  # place in the stream, 0-based
    task_index: int  # official index
    task_id: str
    step: int  # environment steps made when the call started
    role: str
    agent: str | None
    phase: Phase
    key: ModelKey | Literal["embed"]
    kind: Literal["chat", "embedding"]
    endpoint: str
    model: str
    attempt: int  # 1-based retry count of this call
    ok: bool
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    usage_source: UsageSource | None
    cost_usd: float | None
    latency_s: float | None
    replayed: bool
    constrained: bool  # the answer was held to the admissible choices
    digest: str
    occurrence: int
    error: str | None


class LedgerSink(Protocol):
    """Where the gateway writes; the stream's store implements it."""

    def write(self, row: LedgerRow, transcript: Mapping[str, Any]) -> None:
        """Append a row; `transcript` (messages, reply text, parameters) goes to the event log."""

    def occurrences(self, digest: str) -> int:
        """How many successful calls with this digest the stream has in its ledger, the task in flight included."""
