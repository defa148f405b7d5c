"""Episodes filed under a summary that a model writes: `voyager`, and `memorybank`, which also forgets (METHODS.md 3.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Call, Guidance, Member, MemoryServices, Message, Outcome, Task, Trajectory
from methods.base import MemoryMethod
from methods.text.embedders import check_embedder
from methods.text.lists import one_line
from methods.trajectories import TrajectoryStore

SENTENCES = 6
STABILITY, LEAST_RETENTION = 5.0, 0.3  # of the forgetting curve: steps, share

INSTRUCTION = (
    f"You file what a team of agents did in a task so that it is found again for similar tasks. Summarise goal, approach and "
    f"result in "
    f"at most {SENTENCES} sentences on a single line. Nothing else."
)


@dataclass
class SummaryConfig:
    """`successful_topk` past successes are shown; failures are stored and never shown."""

    name: str = "voyager"
    embedder: str = "wordllama"
    successful_topk: int = 1

    def __post_init__(self) -> None:
        check_embedder(self.embedder)
        if self.successful_topk < 0:
            raise ValueError("successful_topk must be 0 or more")


class Voyager(MemoryMethod):
    """One summary call at the end of a task takes the place of the key; the nearest successes are shown."""

    Config: ClassVar[type] = SummaryConfig
    name = "voyager"
    version = "1-A"

    def __init__(self, config: SummaryConfig, services: MemoryServices) -> None:
        super().__init__(config, services)
        self.store = TrajectoryStore(services, config.embedder, f"memory.{self.name}.embed")

    def open(self) -> None:
        self.store.open()

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        found = self.store.nearest(task.key, self.config.successful_topk, success=True)
        return Guidance(cards=tuple(record.card() for record in found))

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        description = f"{task.goal}\n{outcome.feedback}".strip()
        summary = self._summary(description, trajectory.text())
        self.store.add_record(
            key=summary or task.key, description=description, trajectory=trajectory.text(), success=outcome.success
        )

    def _summary(self, description: str, trajectory: str) -> str:
        messages: tuple[Message, ...] = (
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": f"Task: {description}\n\nWhat was done:\n{trajectory}"},
        )
        reply = self.services.models.complete(Call(f"memory.{self.name}.summarise", messages, "memory", "write", "memory"))
        return one_line(reply.text, SENTENCES)


@dataclass
class MemoryBankConfig(SummaryConfig):
    """As for voyager."""

    name: str = "memorybank"


class MemoryBank(Voyager):
    """Like voyager across tasks; within one, only the steps that the forgetting curve retains are shown."""

    Config = MemoryBankConfig
    name = "memorybank"
    version = "1-A"

    def episode(self, agent: Member, trajectory: Trajectory) -> str:
        kept = tuple(
            turn for age, turn in zip(range(len(trajectory.turns) - 1, -1, -1), trajectory.turns, strict=True) if retained(age)
        )
        forgotten = len(trajectory.turns) - len(kept)
        if not forgotten:
            return trajectory.text()
        start = f"{trajectory.initial_observation}\n[{forgotten} earlier steps are forgotten]"
        return Trajectory(start, kept).text()


def retained(age: int) -> bool:
    """Whether a step `age` steps before the latest is remembered: exp(-age / 5) of at least 0.3, that is the last 7 steps."""
    return math.exp(-age / STABILITY) >= LEAST_RETENTION
