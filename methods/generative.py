"""Generative Agents in the form of the published comparison (METHODS.md 3.2): a model rates the nearest past successes.

In this form there is no recency, no importance and no reflection; the faithful memory stream is another method. The rating
calls carry whole trajectories, which is what makes the method dearer than `metagpt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Task
from methods.rating import best_rated
from methods.successes import PastSuccesses, SuccessConfig
from methods.trajectories import Record


class Generative(PastSuccesses):
    """Retrieve twice as many successes as are shown, have each rated, keep the best."""

    @dataclass
    class Config(SuccessConfig):
        """`successful_topk` past successes are shown, out of twice as many that are rated; failures are never shown."""

        name: str = "generative"

    name = "generative"
    version = "1-A"

    def shown(self, task: Task) -> Sequence[Record]:
        keep = self.config.successful_topk
        return best_rated(
            self.services.models, "memory.generative.rate", task, self.store.nearest(task.key, 2 * keep, success=True), keep
        )
