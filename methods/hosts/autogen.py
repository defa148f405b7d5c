"""`host=autogen`: a solver, a grounding agent for when it is stuck, and the environment, on Microsoft's own AutoGen.

METHODS.md 2.1. The three participants are agents of one `SelectorGroupChat` whose speaker is chosen by a function, so that
choosing costs no model call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.contracts import Member, Models, Task, TaskSession, TeamMemory
from methods.hosts.actor import Table, propose
from methods.hosts.autogen_chat import ENVIRONMENT, InterruptGate, converse, episode_over, participant
from methods.ranges import check_range

if TYPE_CHECKING:
    from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage
    from autogen_agentchat.teams import SelectorGroupChat

SOLVER, GROUNDING = "solver", "grounding"

SOLVER_INSTRUCTION = (
    "You are the solver of a small team. You work on a task in an environment, one action at a time. Use what the team has "
    "learnt where it fits the task. Answer with the next action and nothing else."
)
GROUNDING_INSTRUCTION = (
    "You are the grounding agent of a small team. The solver keeps repeating an action that does not help. Look at what has "
    "been tried, think of how things work in everyday life, and choose a different next action that the environment "
    "understands. Answer with that action and nothing else."
)


@dataclass
class Episode:
    """One task as the participants share it."""

    table: Table
    rescue: bool
    executed: list[str] = field(default_factory=list)
    speaker: str = ""  # who made the standing proposal
    proposal: str = ""  # its raw text
    upstream: tuple[str, ...] = ()
    error: BaseException | None = None
    gate: InterruptGate = field(default_factory=InterruptGate)

    @property
    def session(self) -> TaskSession:
        return self.table.session

    @property
    def over(self) -> bool:
        return self.error is not None or self.session.done

    @property
    def stuck(self) -> bool:
        """HOST-AG R2: the standing action equals the last two executed ones."""
        action = self.session.normalise(self.proposal) or self.session.noop_action
        return len(self.executed) >= 2 and self.executed[-1] == self.executed[-2] == action

    def propose(self, member: Member, instruction: str) -> str:
        self.upstream = (SOLVER,) if member.name == GROUNDING else ()
        self.speaker = member.name
        self.proposal = propose(self.table, f"host.autogen.{member.name}", instruction, member)
        return self.proposal

    def execute(self) -> str:
        turn = self.session.act(self.speaker, self.proposal, upstream=self.upstream)
        self.executed.append(turn.action)
        return turn.result.observation

    def next_speaker(self, last: str) -> str:
        if last == SOLVER:
            return GROUNDING if self.rescue and self.stuck else ENVIRONMENT
        return ENVIRONMENT if last == GROUNDING else SOLVER


class AutoGen:
    """The default host of the comparison."""

    @dataclass
    class Config:
        """`rescue` asks the grounding agent when the solver proposes the same action a third time; `max_attempts` bounds the
        calls per action while the model answers nothing; `max_tokens` null: the endpoint's own cap."""

        name: str = "autogen"
        rescue: bool = True
        max_attempts: int = 3
        max_tokens: int | None = None
        show_choices: bool = False

        def __post_init__(self) -> None:
            check_range(self, "max_attempts", "max_tokens", least=1)

    name = "autogen"
    version = "1-A"

    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self._solver = Member(SOLVER, SOLVER)
        self._grounding = Member(GROUNDING, GROUNDING)

    def team(self, task: Task) -> Sequence[Member]:
        return (self._solver, self._grounding) if self.config.rescue else (self._solver,)

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        config = self.config
        table = Table(session, memory, models, config.max_attempts, config.max_tokens, show_choices=config.show_choices)
        episode = Episode(table, config.rescue)
        task = session.task.goal or session.task.task_id
        converse(episode, task, lambda: _team(episode, self._solver, self._grounding))


def _team(episode: Episode, solver: Member, grounding: Member) -> SelectorGroupChat:
    """A fresh group chat around `episode`."""
    from autogen_agentchat.teams import SelectorGroupChat

    def select(messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> str:
        return episode.next_speaker(messages[-1].source)

    return SelectorGroupChat(
        [
            participant(episode, SOLVER, "proposes the next action", lambda: episode.propose(solver, SOLVER_INSTRUCTION)),
            participant(
                episode,
                GROUNDING,
                "is asked when the solver is stuck",
                lambda: episode.propose(grounding, GROUNDING_INSTRUCTION),
            ),
            participant(episode, ENVIRONMENT, "executes the action", episode.execute),
        ],
        model_client=_no_model(),
        selector_func=select,
        allow_repeated_speaker=True,
        termination_condition=episode_over(episode),
    )


def _no_model() -> Any:
    """The chat's constructor wants a model client; with a selector function it is never called, and says so if it is."""
    from autogen_core.models import ChatCompletionClient, ModelInfo

    def refuse(self: object, *args: object, **kwargs: object) -> Any:
        raise AssertionError("the speaker is chosen by a function; the team has no model of its own")

    names = (
        "create",
        "create_stream",
        "close",
        "actual_usage",
        "total_usage",
        "count_tokens",
        "remaining_tokens",
        "capabilities",
    )
    info = ModelInfo(vision=False, function_calling=False, json_output=False, family="unknown", structured_output=False)
    body: dict[str, Any] = dict.fromkeys(names, refuse)
    body["model_info"] = property(lambda self: info)
    return type("NoModel", (ChatCompletionClient,), body)()
