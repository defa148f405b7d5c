"""Generative Agents in the form of the published comparison (METHODS.md 3.2): a model rates the nearest past successes.

In this form there is no recency, no importance and no reflection; the faithful memory stream is another method. The rating
calls carry whole trajectories, which is what makes the method dearer than `metagpt`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Call, Guidance, Member, MemoryServices, Message, Outcome, Task, Trajectory
from methods.base import MemoryMethod
from methods.text.embedders import check_embedder
from methods.trajectories import Record, TrajectoryStore

RATING_INSTRUCTION = (
    "You judge how much a past case helps with a task that is about to start. A case helps when its goal and the steps it took "
    "carry over to the task. Give a whole number from 1 (of no use) to 10 (the same problem), on one line of the form\n"
    "Score: <number>"
)


def parse_rating(text: str) -> int:
    """The first integer in `text`, 0 where there is none (METHODS.md 3.2)."""
    found = re.search(r"\d+", text)
    return int(found.group()[:9]) if found else 0


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
        replies = self.services.models.complete_many([self._rating(task, record) for record in candidates])
        ratings = [parse_rating(reply.text) for reply in replies]
        # stable: among equal ratings the nearer record stays first
        order = sorted(range(len(candidates)), key=lambda i: -ratings[i])
        kept = [candidates[i] for i in order[: self.config.successful_topk]]
        return Guidance(cards=tuple(record.card() for record in kept))

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        self.store.add(task, trajectory, outcome)

    def _rating(self, task: Task, record: Record) -> Call:
        case = f"Past case: {record.description}\n\nWhat was done:\n{record.trajectory}\n\nTask about to start: {task.key}"
        messages: tuple[Message, ...] = (
            {"role": "system", "content": RATING_INSTRUCTION},
            {"role": "user", "content": case},
        )
        return Call("memory.generative.rate", messages, key="memory", phase="retrieve", agent="memory")
