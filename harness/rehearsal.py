"""A rehearsal: the task in play once more, in a fresh world, with guidance of the memory's choice and none of its hooks.

It belongs to the attempt that asks for it: its calls are rows of the same ledger (phase `validate`), its steps count against the
same limits, and its events carry the prefix `rehearsal_`. It has no result of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.contracts import Call, Guidance, LocalEmbedder, Member, Models, Outcome, Phase, Reply, Review, Task, Trajectory, Turn
from harness.limits import Limits
from harness.session import Log, RecordedSession, TaskMemory, hand_over

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.cell import Cell


@dataclass
class Stage:
    """The task in play: what a rehearsal needs to play it again. `session` is the one whose steps and choices count now."""

    cell: Cell
    limits: Limits
    log: Log
    task: Task
    seed: int
    session: RecordedSession
    models: Models | None = None

    def rehearse(self, guidance: Guidance) -> tuple[Trajectory, Outcome]:
        """Play and grade. Raises what playing raises."""
        assert self.models is not None  # the stream sets it before it calls the memory
        before, environment = self.session, self.cell.environment
        with environment.open(self.task, self.seed) as inner:
            silent: Any = _Silent()
            hand_over(inner, _Validating(self.models))
            self.session = RecordedSession(self.task, inner, silent, self.limits, self._log, environment.max_steps)
            try:
                self.cell.host.play(self.session, TaskMemory(silent, guidance), _Validating(self.models))
                return self.session.trajectory(), inner.outcome()
            finally:
                self.session = before

    def _log(self, kind: str, content: Mapping[str, Any]) -> None:
        self.log(f"rehearsal_{kind}", content)


class _Silent:
    """A memory that has nothing to add and nothing to learn."""

    def before_action(self, agent: Member, step: int) -> str:
        return ""

    def episode(self, agent: Member, trajectory: Trajectory) -> str:
        return trajectory.text()

    def review(self, agent: Member, step: int, text: str) -> Review:
        return Review(text)

    def after_action(self, turn: Turn) -> None:
        return None


class _Validating:
    """The task's models, every call in the phase `validate`."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def complete(self, call: Call) -> Reply:
        return self._models.complete(replace(call, phase="validate"))

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        return self._models.complete_many([replace(call, phase="validate") for call in calls])

    def embed(
        self, role: str, texts: Sequence[str], *, phase: Phase, agent: str | None = None, local: LocalEmbedder | None = None
    ) -> NDArray[np.float64]:
        return self._models.embed(role, texts, phase="validate", agent=agent, local=local)
