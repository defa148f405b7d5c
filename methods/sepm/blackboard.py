"""The shared blackboard of a task: append-only records of what was done and what came of it (SEPM paper 4.1, equation 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Evidence

MAX_RECORDS, MAX_EVIDENCE = 10_000, 50


@dataclass(frozen=True)
class Record:
    """b = (q, o, u, r, ε) of an agent at a step, and what links it to the task graph.

    `subtask` q is the assigned step, `observation` o what the agent had before it, `action` u as executed, `result` r,
    `error` ε or None. `node_id` is the step it belongs to (None: none), `established` are the steps whose conditions its
    evidence meets. Reasoning is never part of it (SEPM-R2).
    """

    seq: int
    step: int
    agent: str
    subtask: str
    observation: str
    action: str
    result: str
    error: str | None = None
    node_id: str | None = None
    established: tuple[str, ...] = ()
    declared: bool = False  # the agent itself named the step
    goal: str | None = None
    plan: Mapping[str, Any] | None = None
    evidence: tuple[Evidence, ...] = field(default=())

    @property
    def executed(self) -> bool:
        return self.error is None

    def on(self, node_id: str) -> bool:
        """Whether this is a record on that step."""
        return self.node_id == node_id or node_id in self.established

    def plain(self) -> dict[str, Any]:
        """JSON-able, for the store."""
        return {
            "subtask": self.subtask,
            "observation": self.observation,
            "action": self.action,
            "result": self.result,
            "error": self.error,
            "established": list(self.established),
            "goal": self.goal,
            "plan": self.plan,
            "evidence": [[list(e.key), e.value, e.tier, e.source, list(e.observed_at), e.confidence] for e in self.evidence],
        }


class Blackboard:
    """The records of one task. There is no way to change or remove one."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record) -> None:
        """Raises ValueError beyond the limits, or where `seq` is not the next number."""
        if record.seq != len(self._records) + 1:
            raise ValueError(f"record {record.seq} cannot follow record {len(self._records)}")
        if len(self._records) >= MAX_RECORDS or len(record.evidence) > MAX_EVIDENCE:
            raise ValueError(f"a blackboard holds {MAX_RECORDS} records of {MAX_EVIDENCE} pieces of evidence at most")
        self._records.append(record)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self._records))

    def on(self, node_id: str) -> list[Record]:
        """The records on a step, oldest first."""
        return [record for record in self._records if record.on(node_id)]

    @property
    def last(self) -> Record | None:
        return self._records[-1] if self._records else None
