"""AutoGen's model client over our gateway, for what the library itself asks a model (METHODS.md 2.2: the selector).

Every call is a row of the usage ledger like any other; the client's own sums (`actual_usage`, `total_usage`) are what the
gateway reported, and tests hold them against the ledger. The library's message usage leaves these calls out (TOK-R10).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

from harness.contracts import Call, Message, Models, Usage
from methods.hosts.autogen_chat import ChatEpisode

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient, LLMMessage

SELECTOR = "selector"
ROLE = "host.autogen_selector.selector"
CHARACTERS_PER_TOKEN = 4
CONTEXT_WINDOW = 128_000  # what `remaining_tokens` counts down from; the gateway alone knows and checks the endpoint's own


def to_messages(messages: Sequence[LLMMessage]) -> tuple[Message, ...]:
    """The library's messages as ours; roles by the kind of message, content that is no text as its text form."""
    from autogen_core.models import AssistantMessage, SystemMessage

    found: list[Message] = []
    for message in messages:
        content = message.content if isinstance(message.content, str) else str(message.content)
        if isinstance(message, SystemMessage):
            found.append({"role": "system", "content": content})
        else:
            found.append({"role": "assistant" if isinstance(message, AssistantMessage) else "user", "content": content})
    return tuple(found)


def gateway_client(episode: ChatEpisode, models: Models, fallback: str) -> ChatCompletionClient:
    """A client whose calls carry the role `host.autogen_selector.selector`.

    An error of the gateway ends the episode (`episode.error`) and the client answers `fallback`, a valid name, so that the
    chat comes to its end in good order; `converse` then raises the error as it was.
    """
    from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

    class GatewayClient(ChatCompletionClient):
        def __init__(self) -> None:
            self._last, self._total = Usage(), Usage()

        async def create(self, messages: Sequence[LLMMessage], **kwargs: Any) -> CreateResult:
            text = fallback
            self._last = Usage()
            if not episode.over:
                try:
                    reply = models.complete(Call(ROLE, to_messages(messages), "actor", "plan", SELECTOR))
                except Exception as error:
                    episode.error = error
                else:
                    text, self._last = reply.text, reply.usage
                    self._total = Usage(self._total.input + reply.usage.input, self._total.output + reply.usage.output)
            return CreateResult(finish_reason="stop", content=text, usage=self.actual_usage(), cached=False)

        async def create_stream(self, messages: Sequence[LLMMessage], **kwargs: Any) -> AsyncGenerator[str | CreateResult, None]:
            result = await self.create(messages, **kwargs)
            yield str(result.content)
            yield result

        async def close(self) -> None:
            return None

        def actual_usage(self) -> RequestUsage:
            """The last call's."""
            return RequestUsage(prompt_tokens=self._last.input, completion_tokens=self._last.output)

        def total_usage(self) -> RequestUsage:
            """All calls' of this client."""
            return RequestUsage(prompt_tokens=self._total.input, completion_tokens=self._total.output)

        def count_tokens(self, messages: Sequence[LLMMessage], **kwargs: Any) -> int:
            """An estimate, rounded up."""
            return -(-sum(len(message["content"]) for message in to_messages(messages)) // CHARACTERS_PER_TOKEN)

        def remaining_tokens(self, messages: Sequence[LLMMessage], **kwargs: Any) -> int:
            return CONTEXT_WINDOW - self.count_tokens(messages)

        @property
        def capabilities(self) -> ModelInfo:
            return self.model_info

        @property
        def model_info(self) -> ModelInfo:
            """`unknown` makes the selector's prompt a user message."""
            return ModelInfo(vision=False, function_calling=False, json_output=False, family="unknown", structured_output=False)

    return GatewayClient()
