"""`host=autogen`: a solver, a grounding agent for when it is stuck, and the environment, on Microsoft's own AutoGen.

METHODS.md 2.1. The three participants are agents of one `SelectorGroupChat` whose speaker is chosen by a function, so that
choosing costs no model call. The team of this library keeps its state between runs, therefore each task has a new one. The
library wraps an exception of a participant in a RuntimeError of its own and loses its type: the participants keep it in
the episode instead, the chat ends, and `play` raises it as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.contracts import Member, Models, Task, TaskSession, TeamMemory
from methods.hosts.actor import propose

if TYPE_CHECKING:
    from autogen_agentchat.base import TerminationCondition
    from autogen_agentchat.teams import SelectorGroupChat

SOLVER, GROUNDING, ENVIRONMENT = "solver", "grounding", "environment"

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

    session: TaskSession
    memory: TeamMemory
    models: Models
    config: AutoGen.Config
    executed: list[str] = field(default_factory=list)
    speaker: str = ""  # who made the standing proposal
    proposal: str = ""  # its raw text
    upstream: tuple[str, ...] = ()
    error: BaseException | None = None

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
        self.proposal = propose(
            f"host.autogen.{member.name}",
            instruction,
            member,
            self.session,
            self.memory,
            self.models,
            max_attempts=self.config.max_attempts,
            max_tokens=self.config.max_tokens,
            show_choices=self.config.show_choices,
        )
        return self.proposal

    def execute(self) -> str:
        turn = self.session.act(self.speaker, self.proposal, upstream=self.upstream)
        self.executed.append(turn.action)
        return turn.result.observation

    def next_speaker(self, last: str) -> str:
        if last == SOLVER:
            return GROUNDING if self.config.rescue and self.stuck else ENVIRONMENT
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
            if self.max_attempts < 1:
                raise ValueError("max_attempts must be 1 or more")

    name = "autogen"
    version = "1-A"

    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self._solver = Member(SOLVER, SOLVER)
        self._grounding = Member(GROUNDING, GROUNDING)

    def team(self, task: Task) -> Sequence[Member]:
        return (self._solver, self._grounding) if self.config.rescue else (self._solver,)

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        episode = Episode(session, memory, models, self.config)
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(_report)
            runner.run(self._chat(episode))
        if episode.error is not None:
            raise episode.error

    async def _chat(self, episode: Episode) -> None:
        if episode.over:
            return
        team = _team(episode, self._solver, self._grounding)
        await team.run(task=episode.session.task.goal or episode.session.task.task_id)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An interrupt is raised out of the loop; that a task of the library was cut off by it is no news."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


def _team(episode: Episode, solver: Member, grounding: Member) -> SelectorGroupChat:
    """A fresh group chat around `episode`."""
    from autogen_agentchat.agents import BaseChatAgent
    from autogen_agentchat.base import Response
    from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
    from autogen_agentchat.teams import SelectorGroupChat
    from autogen_core import CancellationToken

    class Participant(BaseChatAgent):
        """Speaks by calling `speak`; an error ends the episode instead of vanishing in the library's runtime."""

        def __init__(self, name: str, description: str, speak: Any) -> None:
            super().__init__(name, description)
            self._speak = speak

        @property
        def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
            return (TextMessage,)

        async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
            try:
                text = self._speak()
            except Exception as error:
                episode.error = error
                text = ""
            return Response(chat_message=TextMessage(content=text, source=self.name))

        async def on_reset(self, cancellation_token: CancellationToken) -> None:
            return None

    def select(messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> str:
        return episode.next_speaker(messages[-1].source)

    return SelectorGroupChat(
        [
            Participant(SOLVER, "proposes the next action", lambda: episode.propose(solver, SOLVER_INSTRUCTION)),
            Participant(
                GROUNDING, "is asked when the solver is stuck", lambda: episode.propose(grounding, GROUNDING_INSTRUCTION)
            ),
            Participant(ENVIRONMENT, "executes the action", episode.execute),
        ],
        model_client=_no_model(),
        selector_func=select,
        allow_repeated_speaker=True,
        termination_condition=_episode_over(episode),
    )


def _episode_over(episode: Episode) -> TerminationCondition:
    from autogen_agentchat.base import TerminatedException, TerminationCondition
    from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, StopMessage

    class EpisodeOver(TerminationCondition):
        """Ends the chat when the environment is done or a participant failed."""

        def __init__(self) -> None:
            self._ended = False

        @property
        def terminated(self) -> bool:
            return self._ended

        async def __call__(self, messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> StopMessage | None:
            if self._ended:
                raise TerminatedException("the episode has ended")
            if not episode.over:
                return None
            self._ended = True
            return StopMessage(content="the episode has ended", source="environment")

        async def reset(self) -> None:
            self._ended = False

    return EpisodeOver()


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
