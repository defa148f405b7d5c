"""Tasks and what happens in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TaskStatus = Literal["completed", "failed", "unresolved"]

# Evidence tiers (SEPM paper B.3): environment or official state > tool observation > verified artifact > agent inference.
TIER_ENVIRONMENT, TIER_TOOL, TIER_ARTIFACT, TIER_INFERENCE = 4, 3, 2, 1


@dataclass(frozen=True)
class Task:
    """One task of a benchmark.

    `index` is the official 0-based index; `key` is the short text that memories retrieve by ("<family>-<goal sentence>");
    `group` is what results are broken down by (OfficeBench's number of applications); `payload` is the adapter's own.
    """

    task_id: str
    index: int
    goal: str
    key: str
    family: str
    group: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Evidence:
    """One observed fact: `key` is (entity, attribute); `observed_at` is the logical clock (step, sequence), never wall time."""

    key: tuple[str, str]
    value: Any
    tier: int
    source: str
    observed_at: tuple[int, int]
    confidence: float = 1.0
    node_id: str | None = None


@dataclass(frozen=True)
class StepResult:
    """What an action led to. `reward` follows the benchmark; `error` is set where the environment refused the action."""

    observation: str
    reward: float = 0.0
    done: bool = False
    error: str | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The grader's word: `score` in [0, 1]; `feedback` is the text that a memory may learn from (RUN-R7)."""

    score: float
    success: bool
    status: TaskStatus
    feedback: str = ""
    metrics: Mapping[str, float | int | str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"score {self.score} lies outside [0, 1]")


@dataclass(frozen=True)
class Turn:
    """One environment step: who acted, the executed action as normalised, the model's raw text, and what came of it.

    `upstream` are the agents whose messages this action answered (edges of an interaction graph).
    """

    step: int
    agent: str
    action: str
    raw: str
    result: StepResult
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trajectory:
    """All that happened in one attempt; `turns` in order."""

    initial_observation: str
    turns: tuple[Turn, ...]

    def text(self) -> str:
        """The episode as `> action` / observation pairs (METHODS.md 1.4)."""
        lines = [self.initial_observation]
        for turn in self.turns:
            lines += [f"> {turn.action}", turn.result.observation]
        return "\n".join(lines)
