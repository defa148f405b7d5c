"""`method=chatdev`: ChatDev's memory within a task, a summary of what has happened so far (METHODS.md 3.5). Nothing across
tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Call, Guidance, Member, MemoryServices, Message, Task, Trajectory
from methods.base import MemoryMethod
from methods.ranges import check_range
from methods.text.lists import one_line

INSTRUCTION = (
    "You keep the minutes of a team of agents that works on a task. Summarise what has been done and seen so far in a few "
    "sentences, "
    "with everything that is still needed: where things are, what is done, what is left. Nothing else."
)


class ChatDev(MemoryMethod):
    """Every so many prompts the episode up to there is replaced by its summary; later steps are shown as they are."""

    @dataclass
    class Config:
        """A summary is written for every `every`-th prompt of a task, whichever agent it is for."""

        name: str = "chatdev"
        every: int = 10

        def __post_init__(self) -> None:
            check_range(self, "every", least=1)

    name = "chatdev"
    version = "1-A"

    def __init__(self, config: Config, services: MemoryServices) -> None:
        super().__init__(config, services)
        self._start()

    def _start(self) -> None:
        self._prompts, self._summary, self._covered = 0, "", 0

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        self._start()
        return Guidance()

    def episode(self, agent: Member, trajectory: Trajectory) -> str:
        self._prompts += 1
        if self._prompts % self.config.every == 0 and len(trajectory.turns) > self._covered:
            summary = self._summarised(self._shortened(trajectory))
            if summary:
                self._summary, self._covered = summary, len(trajectory.turns)
        return self._shortened(trajectory)

    def _shortened(self, trajectory: Trajectory) -> str:
        if not self._covered:
            return trajectory.text()
        start = f"{trajectory.initial_observation}\n[The first {self._covered} steps: {self._summary}]"
        return Trajectory(start, trajectory.turns[self._covered :]).text()

    def _summarised(self, episode: str) -> str:
        messages: tuple[Message, ...] = (
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": episode},
        )
        reply = self.services.models.complete(Call("memory.chatdev.summarise", messages, "memory", "write", "memory"))
        return one_line(reply.text)
