"""What the gateway asks of a back-end, and how a back-end says that an attempt failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from harness.contracts import Call, Problem, TaskInfo, Usage
from harness.models.config import EndpointConfig


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt at one call.

    `parameters` are those to send (temperature, top_p, stop, seed, and `max_tokens` under the endpoint's own name), without
    the ones that the endpoint rejects. `constrained` asks for an answer out of `call.choices`. `timeout_s` bounds the whole
    attempt. `step` is the number of environment steps made so far; `digest` identifies the request.
    """

    call: Call
    parameters: Mapping[str, Any]
    constrained: bool
    timeout_s: float
    step: int
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a back-end brought back. `raw_usage` holds the provider's own totals (`input`, `output`), where it gave any.

    A `refused` answer is one that the content filter stopped, an `unusable` one (with the reason) holds nothing that could be
    handed on; their usage was billed all the same (TOK-R4). `note` is kept in the transcript.
    """

    text: str
    usage: Usage
    model: str
    finish_reason: str | None = None
    raw_usage: Mapping[str, int] = field(default_factory=dict)
    refused: bool = False
    unusable: str = ""
    note: str = ""


class UnsupportedParameter(Exception):
    """The endpoint rejects `parameter`; `instead` is the name that it wants, where it said so."""

    def __init__(self, parameter: str, instead: str | None = None) -> None:
        super().__init__(f"unsupported parameter: {parameter}")
        self.parameter, self.instead = parameter, instead


class Backend(Protocol):
    """One endpoint's way to its model. Constructed cheaply: nothing is imported, opened or spent before `complete`.

    `complete` raises RateLimited, ProviderTimeout, ProviderError (`status` None: no connection), ContextOverflow,
    ContentRefused, ModelSetupError, or UnsupportedParameter; it makes no retries of its own. It is called from several
    threads if the endpoint's `max_concurrency` is above 1 and `concurrent` is true.
    """

    scripted: ClassVar[bool]  # a test double: every description and table says so
    constrains: ClassVar[bool]  # can hold an answer to `choices`
    concurrent: ClassVar[bool]

    def __init__(self, name: str, config: EndpointConfig, seed: int) -> None: ...

    def check(self) -> list[Problem]:
        """What is missing before a call can be made. Cheap; imports no model library and spends nothing."""

    def describe(self) -> dict[str, Any]:
        """Versions and digests for the manifest; never a key."""

    def start_task(self, info: TaskInfo) -> None:
        """A new task begins (only scripted and embedded back-ends care)."""

    def complete(self, request: Request) -> Answer: ...

    def embed(self, request: Request) -> Answer:
        """Vectors of the request's messages, as `harness.models.vectors.encode_vectors` writes them. Raises as `complete` does,
        and ModelSetupError where the back-end has no embeddings."""

    def close(self) -> None:
        """Release what `complete` opened."""
