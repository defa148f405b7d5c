"""Episodes filed under a summary that a model writes: `voyager`, and `memorybank`, which also forgets (METHODS.md 3.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Call, Member, Message, Outcome, Task, Trajectory
from methods.successes import PastSuccesses, SuccessConfig
from methods.text.lists import one_line

SENTENCES = 6
STABILITY, LEAST_RETENTION = 5.0, 0.3  # of the forgetting curve: steps, share

INSTRUCTION = (
    f"You file what a team of agents did in a task so that it is found again for similar tasks. Summarise goal, approach and "
    f"result in "
    f"at most {SENTENCES} sentences on a single line. Nothing else."
)


@dataclass
class SummaryConfig(SuccessConfig):
    """As for metagpt."""

    name: str = "voyager"
    embedder: str = "wordllama"


class Voyager(PastSuccesses):
    """One summary call at the end of a task takes the place of the key; the nearest successes are shown."""

    Config: ClassVar[type] = SummaryConfig
    name = "voyager"
    version = "1-A"

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
