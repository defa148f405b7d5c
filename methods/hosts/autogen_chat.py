"""What the hosts on Microsoft's AutoGen share: participants around an episode, an end, and errors that keep their type.

The library keeps a team's state between runs, therefore each task has a new one. It wraps an exception of a participant in a
RuntimeError of its own and loses its type, by which the harness classifies it: the participants keep it in the episode
instead, the chat ends, and `converse` raises it as it was. Participants are synchronous inside: one event loop a task, and
only one of them speaks at a time, so a model call may block it. The library is imported when the first task is played.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from autogen_agentchat.base import ChatAgent, TerminationCondition
    from autogen_agentchat.teams import SelectorGroupChat

ENVIRONMENT = "environment"


class ChatEpisode(Protocol):
    """One task as the participants share it. `error` is what a participant failed with; `over` ends the chat; `gate` keeps
    interrupts out of the library's code."""

    error: BaseException | None
    gate: InterruptGate

    @property
    def over(self) -> bool: ...


def converse(episode: ChatEpisode, task: str, team: Callable[[], SelectorGroupChat]) -> None:
    """Let a fresh team talk about `task` until the episode is over; raises what a participant failed with."""
    if not episode.over:
        with episode.gate, asyncio.Runner() as runner:
            runner.run(_chat(task, team))
    if episode.error is not None:
        raise episode.error


async def _chat(task: str, team: Callable[[], SelectorGroupChat]) -> None:
    await team().run(task=task)


class InterruptGate:
    """While it is open, SIGINT and SIGTERM have their effect only while a participant speaks, else when the next one does.

    Raised inside the library's own code an interrupt tears its message queue, and every task of the loop then complains on
    stderr. A model call, the only thing that takes long, is part of speaking and ends at once.
    """

    def __init__(self) -> None:
        self._speaking = False
        self._pending: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> InterruptGate:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):
                    self._handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._raise_pending()

    @contextmanager
    def speaking(self) -> Iterator[None]:
        self._speaking = True
        try:
            self._raise_pending()
            yield
        finally:
            self._speaking = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._pending.append(number)
        if self._speaking:
            self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending:
            number = self._pending.pop()
            self._handlers[number](number, None)


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
                with episode.gate.speaking():
                    text = "" if episode.over else speak()
            except BaseException as error:
                # an interrupt too ends the chat in good order, and is raised when the loop is closed
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
