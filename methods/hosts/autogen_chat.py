"""What the hosts on Microsoft's AutoGen share: participants around an episode, an end, and errors that keep their type.

The library keeps a team's state between runs, therefore each task has a new one. It wraps an exception of a participant in a
RuntimeError of its own and loses its type, by which the harness classifies it: the participants keep it in the episode
instead, the chat ends, and `converse` raises it as it was. Participants are synchronous inside: one event loop a task, and
only one of them speaks at a time, so a model call may block it. The library is imported when the first task is played.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from autogen_agentchat.base import ChatAgent, TerminationCondition
    from autogen_agentchat.teams import SelectorGroupChat

ENVIRONMENT = "environment"


class ChatEpisode(Protocol):
    """One task as the participants share it. `error` is what a participant failed with; `over` ends the chat."""

    error: BaseException | None

    @property
    def over(self) -> bool: ...


def converse(episode: ChatEpisode, task: str, team: Callable[[], SelectorGroupChat]) -> None:
    """Let a fresh team talk about `task` until the episode is over; raises what a participant failed with."""
    if not episode.over:
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(_report)
            runner.run(_chat(episode, task, team))
    if episode.error is not None:
        raise episode.error


async def _chat(episode: ChatEpisode, task: str, team: Callable[[], SelectorGroupChat]) -> None:
    await team().run(task=task)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An interrupt is raised out of the loop; that a task of the library was cut off by it is no news."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


def participant(episode: ChatEpisode, name: str, description: str, speak: Callable[[], str]) -> ChatAgent:
    """An agent of the chat that speaks by calling `speak`; once the episode is over it says nothing more."""
    from autogen_agentchat.agents import BaseChatAgent
    from autogen_agentchat.base import Response
    from autogen_agentchat.messages import BaseChatMessage, TextMessage
    from autogen_core import CancellationToken

    class Participant(BaseChatAgent):
        @property
        def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
            return (TextMessage,)

        async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
            text = ""
            try:
                text = "" if episode.over else speak()
            except Exception as error:
                episode.error = error
            return Response(chat_message=TextMessage(content=text, source=self.name))

        async def on_reset(self, cancellation_token: CancellationToken) -> None:
            return None

    return Participant(name, description)


def episode_over(episode: ChatEpisode) -> TerminationCondition:
    """Ends the chat when the environment is done, the host gives up or a participant has failed."""
    from autogen_agentchat.base import TerminatedException, TerminationCondition
    from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, StopMessage

    class EpisodeOver(TerminationCondition):
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
            return StopMessage(content="the episode has ended", source=ENVIRONMENT)

        async def reset(self) -> None:
            self._ended = False

    return EpisodeOver()
