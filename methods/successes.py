"""What the memories that show past successes share: the trajectory store, what is taken from it and what goes into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.contracts import Guidance, Member, MemoryServices, Outcome, Task, Trajectory
from methods.base import MemoryMethod
from methods.ranges import check_range
from methods.text.embedders import check_embedder
from methods.trajectories import Record, TrajectoryStore


@dataclass
class SuccessConfig:
    """`successful_topk` past successes are shown; failures are stored and never shown."""

    name: str
    successful_topk: int = 1
    embedder: str = "hash256"

    def __post_init__(self) -> None:
        check_embedder(self.embedder)
        check_range(self, "successful_topk", least=0)


class PastSuccesses(MemoryMethod):
    """The nearest successes straight from the store, and every finished task into it under its key."""

    Config: ClassVar[type] = SuccessConfig

    def __init__(self, config: Any, services: MemoryServices) -> None:
        super().__init__(config, services)
        self.store = TrajectoryStore(services, config.embedder, f"memory.{self.name}.embed")

    def open(self) -> None:
        self.store.open()

    def shown(self, task: Task) -> Sequence[Record]:
        """The past successes that are shown for `task`, best first."""
        return self.store.nearest(task.key, self.config.successful_topk, success=True)

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        return Guidance(cards=tuple(record.card() for record in self.shown(task)))

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        self.store.add(task, trajectory, outcome)
