"""Generative Agents in the form of the published comparison (METHODS.md 3.2): a model rates the nearest past successes.

In this form there is no recency, no importance and no reflection; the faithful memory stream is another method. The rating
calls carry whole trajectories, which is what makes the method dearer than `metagpt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Guidance, Member, MemoryServices, Outcome, Task, Trajectory
from methods.base import MemoryMethod
from methods.rating import best_rated
from methods.text.embedders import check_embedder
from methods.trajectories import TrajectoryStore


class Generative(MemoryMethod):
    """Retrieve twice as many successes as are shown, have each rated, keep the best."""

    @dataclass
    class Config:
        """`successful_topk` past successes are shown, out of twice as many that are rated; failures are never shown."""

        name: str = "generative"
        successful_topk: int = 1
        embedder: str = "hash256"

        def __post_init__(self) -> None:
            check_embedder(self.embedder)
            if self.successful_topk < 0:
                raise ValueError("successful_topk must be 0 or more")

    name = "generative"
    version = "1-A"

    def __init__(self, config: Config, services: MemoryServices) -> None:
        super().__init__(config, services)
        self.store = TrajectoryStore(services, config.embedder, "memory.generative.embed")

    def open(self) -> None:
        self.store.open()

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        candidates = self.store.nearest(task.key, 2 * self.config.successful_topk, success=True)
        kept = best_rated(self.services.models, "memory.generative.rate", task, candidates, self.config.successful_topk)
        return Guidance(cards=tuple(record.card() for record in kept))

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        self.store.add(task, trajectory, outcome)
