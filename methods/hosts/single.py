"""One agent, no team: the smallest host there is. The floor for what an orchestration costs (`make bench`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Member, Models, Task, TaskSession, TeamMemory
from methods.hosts.actor import Table, propose
from methods.ranges import check_range

INSTRUCTION = "You solve a task in an environment, one action at a time. Answer with the next action and nothing else."


class SingleAgent:
    """Ask, act, until the environment is done."""

    @dataclass
    class Config:
        """`max_attempts` bounds the calls per action while the model answers nothing; `max_tokens` null: the endpoint's."""

        name: str = "single"
        max_attempts: int = 3
        max_tokens: int | None = None
        show_choices: bool = False

        def __post_init__(self) -> None:
            check_range(self, "max_attempts", "max_tokens", least=1)

    name = "single"
    version = "1-A"

    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self._agent = Member("agent", "solver")

    def team(self, task: Task) -> Sequence[Member]:
        return (self._agent,)

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        config = self.config
        table = Table(session, memory, models, config.max_attempts, config.max_tokens, show_choices=config.show_choices)
        while not session.done:
            text = propose(table, "host.single.agent", INSTRUCTION, self._agent)
            session.act(self._agent.name, text)
