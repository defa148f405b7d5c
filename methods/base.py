"""Defaults for a memory method: every hook does nothing. A method overrides the hooks it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.contracts import Guidance, Member, MemoryServices, Outcome, Review, Task, Trajectory, Turn


class MemoryMethod:
    """Implements `harness.contracts.Memory`. Subclasses set `Config`, `name` and `version`."""

    Config: ClassVar[type]
    name: ClassVar[str]
    version: ClassVar[str]

    def __init__(self, config: Any, services: MemoryServices) -> None:
        self.config = config
        self.services = services

    def open(self) -> None:
        return None

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        return Guidance()

    def before_action(self, agent: Member, step: int) -> str:
        return ""

    def review(self, agent: Member, step: int, text: str) -> Review:
        return Review(text)

    def episode(self, agent: Member, trajectory: Trajectory) -> str:
        return trajectory.text()

    def after_action(self, turn: Turn) -> None:
        return None

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        return None
