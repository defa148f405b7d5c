"""Running totals per endpoint, counted apart from the ledger so that the two can be reconciled (TOK-R7)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields, replace

from harness.models.backends.base import Answer
from harness.models.ledger import LedgerRow


@dataclass(frozen=True)
class EndpointTotals:
    """Totals of one endpoint. `attempts` counts ledger rows, `calls` those that were answered.

    `input` … `reasoning` are the tokens as the ledger counts them; `reported_input` and `reported_output` are the sums of the
    provider's own numbers, `unreported` the answered calls without any (then the run carries `usage_estimated`).
    """

    calls: int = 0
    attempts: int = 0
    replayed: int = 0
    input: int = 0
    cached_input: int = 0
    output: int = 0
    reasoning: int = 0
    reported_input: int = 0
    reported_output: int = 0
    unreported: int = 0

    def __sub__(self, earlier: EndpointTotals) -> EndpointTotals:
        return EndpointTotals(**{f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)})


class Counters:
    """The gateway's totals since it was made. Thread-safe."""

    def __init__(self) -> None:
        self._totals: dict[str, EndpointTotals] = {}
        self._lock = threading.Lock()

    def count_answer(self, endpoint: str, answer: Answer) -> None:
        """Add the provider's own numbers of one answer, before anything is made of them."""
        raw = answer.raw_usage
        with self._lock:
            old = self._totals.get(endpoint, EndpointTotals())
            self._totals[endpoint] = replace(
                old,
                reported_input=old.reported_input + raw.get("input", 0),
                reported_output=old.reported_output + raw.get("output", 0),
                unreported=old.unreported + (not raw),
            )

    def count_row(self, row: LedgerRow) -> None:
        """Add one ledger row."""
        with self._lock:
            old = self._totals.get(row.endpoint, EndpointTotals())
            self._totals[row.endpoint] = replace(
                old,
                calls=old.calls + row.ok,
                attempts=old.attempts + 1,
                replayed=old.replayed + row.replayed,
                input=old.input + row.input_tokens,
                cached_input=old.cached_input + row.cached_input_tokens,
                output=old.output + row.output_tokens,
                reasoning=old.reasoning + row.reasoning_tokens,
            )

    def totals(self) -> dict[str, EndpointTotals]:
        """A copy of the totals by endpoint."""
        with self._lock:
            return dict(self._totals)
