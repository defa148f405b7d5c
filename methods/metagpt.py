"""MetaGPT in the form of the published comparison (METHODS.md 3.3): past successes by similarity, no model call.

Within a task every agent sees the whole shared trajectory, which the host's prompt has in any case; across tasks the nearest
successful trajectories are shown. The faithful publish/subscribe pool is another method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Guidance, Member, MemoryServices, Outcome, Task, Trajectory
from methods.base import MemoryMethod
from methods.text.embedders import check_embedder
from methods.trajectories import TrajectoryStore


class MetaGPT(MemoryMethod):
    """Nearest successes, straight from the store."""

    @dataclass
    class Config:
        """`successful_topk` past successes are shown; failures are stored and never shown."""

        name: str = "metagpt"
        successful_topk: int = 1
        embedder: str = "hash256"

        def __post_init__(self) -> None:
            check_embedder(self.embedder)
            if self.successful_topk < 0:
                raise ValueError("successful_topk must be 0 or more")

    name = "metagpt"
    version = "1-A"

    def __init__(self, config: Config, services: MemoryServices) -> None:
        super().__init__(config, services)
        self.store = TrajectoryStore(services, config.embedder, "memory.metagpt.embed")

    def open(self) -> None:
        self.store.open()

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        found = self.store.nearest(task.key, self.config.successful_topk, success=True)
        return Guidance(cards=tuple(record.card() for record in found))

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        self.store.add(task, trajectory, outcome)
