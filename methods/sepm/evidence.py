"""Evidence-based state resolution, key by key (SEPM paper B.3), and the verified state Σ of a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.contracts import TIER_INFERENCE, TIER_TOOL, Evidence
from methods.sepm.conditions import Condition, Key, canonical

Reason = Literal["agreed", "latest", "fresh", "no_eligible", "inference_only", "tie", "sources_conflict"]


@dataclass(frozen=True)
class Resolution:
    """What the evidence on a key amounts to. `value` only means something where `resolved`; `needs` says what would help."""

    resolved: bool
    value: Any
    reason: Reason

    @property
    def needs(self) -> str:
        """The observation that would resolve the key; empty where it is resolved."""
        return {
            "no_eligible": "an observation",
            "inference_only": "an observation by the environment or a tool",
            "tie": "a newer observation",
            "sources_conflict": "a fresh observation by the environment or a tool",
        }.get(self.reason, "")


def resolve(items: Iterable[Evidence], threshold: float = 0.70) -> Resolution:
    """Equations 10 and 11 and the conflict rules below them (SEPM-R21..R24).

    Confidence decides eligibility and nothing else. The highest tier among the eligible decides. Of one source the latest
    observation counts; two of the same moment that differ are a tie. Sources that disagree wait for an observation by the
    environment or a tool that is newer than all they said.
    """
    eligible = [e for e in items if e.confidence >= threshold]
    if not eligible:
        return Resolution(False, None, "no_eligible")
    top = max(e.tier for e in eligible)
    if top <= TIER_INFERENCE:
        return Resolution(False, None, "inference_only")
    best = sorted((e for e in eligible if e.tier == top), key=lambda e: e.observed_at)
    if len({canonical(e.value) for e in best}) == 1:
        return Resolution(True, best[0].value, "agreed")
    if len({e.source for e in best}) == 1:
        return _latest(best)
    return _across_sources(best, top)


def _latest(ordered: Sequence[Evidence]) -> Resolution:
    last = [e for e in ordered if e.observed_at == ordered[-1].observed_at]
    if len({canonical(e.value) for e in last}) > 1:
        return Resolution(False, None, "tie")
    return Resolution(True, last[-1].value, "latest")


def _across_sources(ordered: Sequence[Evidence], tier: int) -> Resolution:
    """Walk through time with what each source said last; a fresh observation settles a conflict that stood before it."""
    said: dict[str, dict[str, Any]] = {}  # source → its values of its latest moment, by canonical form
    moments: dict[str, tuple[int, int]] = {}
    fresh = False
    for at in sorted({e.observed_at for e in ordered}):
        now = [e for e in ordered if e.observed_at == at]
        conflict = len({value for values in said.values() for value in values}) > 1
        if conflict and tier >= TIER_TOOL and len({canonical(e.value) for e in now}) == 1:
            said, fresh = {}, True
        for e in now:
            if moments.get(e.source) != at:
                said[e.source] = {}
            moments[e.source] = at
            said[e.source][canonical(e.value)] = e.value
    values = {form: value for held in said.values() for form, value in held.items()}
    if len(values) == 1:
        return Resolution(True, next(iter(values.values())), "fresh" if fresh else "latest")
    return Resolution(False, None, "tie" if len(said) == 1 else "sources_conflict")


class VerifiedState:
    """Σ of a task: all evidence by key and what it resolves to. `reobserve` are keys that a newer report contradicts."""

    def __init__(self, threshold: float = 0.70) -> None:
        self.threshold = threshold
        self.items: dict[Key, list[Evidence]] = {}
        self.resolved: dict[Key, Any] = {}
        self.unresolved: dict[Key, Resolution] = {}
        self.reobserve: set[Key] = set()

    def add(self, new: Sequence[Evidence]) -> list[Key]:
        """Take evidence in and resolve the keys it touches; those keys, each once, in order."""
        touched = list(dict.fromkeys(e.key for e in new))
        for e in new:
            self.items.setdefault(e.key, []).append(e)
            stored = e.key in self.resolved
            if e.tier >= TIER_TOOL and e.confidence >= self.threshold:
                self.reobserve.discard(e.key)
            elif stored and canonical(self.resolved[e.key]) != canonical(e.value):
                # SEPM-R24: a newer report against the stored state asks for a look at the key, and changes nothing itself
                self.reobserve.add(e.key)
        for key in touched:
            self._resolve(key)
        return touched

    def _resolve(self, key: Key) -> None:
        found = resolve(self.items[key], self.threshold)
        if found.resolved:
            self.resolved[key] = found.value
            self.unresolved.pop(key, None)
        else:
            self.resolved.pop(key, None)
            self.unresolved[key] = found

    def holds(self, condition: Condition) -> bool:
        """Whether some resolved fact establishes `condition`."""
        return any(condition.met_by(key, value) for key, value in self.resolved.items())

    def facts_about(self, conditions: Iterable[Condition]) -> list[tuple[Key, Any]]:
        """The resolved facts that bear on `conditions`, in key order."""
        wanted = list(conditions)
        return sorted((key, value) for key, value in self.resolved.items() if any(c.about(key) for c in wanted))
