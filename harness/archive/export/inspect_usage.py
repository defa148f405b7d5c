"""Usage in Inspect's words: its input leaves out what came from a cache, ours (TOK-R3) does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def total(calls: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of ledger rows as a ModelUsage; the cost is null as soon as one answered call has no known price."""
    held = list(calls)
    cached = sum(call["cached_input_tokens"] for call in held)
    given = sum(call["input_tokens"] for call in held)
    output = sum(call["output_tokens"] for call in held)
    costs = [call["cost_usd"] for call in held if call["ok"]]
    return {
        "input_tokens": given - cached,
        "output_tokens": output,
        "total_tokens": given + output,
        "input_tokens_cache_read": cached,
        "reasoning_tokens": sum(call["reasoning_tokens"] for call in held),
        "total_cost": None if None in costs else math.fsum(costs),
    }


def by(calls: Iterable[Mapping[str, Any]], key: str) -> dict[str, Any]:
    """Totals by `model` or `role`. A benchmark's judge and embeddings are rows of their own there, as in the ledger."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for call in calls:
        groups.setdefault(str(call[key]), []).append(call)
    return {name: total(rows) for name, rows in sorted(groups.items())}
