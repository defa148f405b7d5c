"""The only way to a model: calls, replies, their usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ModelKey = Literal["planner", "actor", "memory", "judge", "reflector", "optimizer", "eval_judge"]
Phase = Literal["retrieve", "plan", "act", "align", "write", "validate", "judge"]
UsageSource = Literal["provider", "tokenizer", "estimate"]

MODEL_KEYS: tuple[ModelKey, ...] = ("planner", "actor", "memory", "judge", "reflector", "optimizer", "eval_judge")


class Message(TypedDict):
    """A chat message in the OpenAI form."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. `cached_input` is part of `input` (TOK-R3), `reasoning` is part of `output` (TOK-R2)."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0
    source: UsageSource = "provider"


@dataclass(frozen=True)
class Reply:
    """A model's answer. `text` may be empty: the caller decides what that means. `model` is what the endpoint said it ran."""

    text: str
    usage: Usage
    model: str
    finish_reason: str | None = None


@dataclass(frozen=True)
class Call:
    """One request for a completion.

    `role` is a dotted purpose (`host.autogen.solver`, `memory.generative.rate`, `env.judge`); `key` names the endpoint by
    function, which the model configuration maps to a model. `choices` are the admissible answers, where they are known:
    a back-end with a grammar is held to them if `run.constrain_actions` is on, other back-ends ignore them. `schema` is
    a JSON schema for the answer. None means: the endpoint's configured value.
    """

    role: str
    messages: tuple[Message, ...]
    key: ModelKey
    phase: Phase
    agent: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    schema: Mapping[str, Any] | None = None


class LocalEmbedder(Protocol):
    """Turns texts into vectors in this process, deterministically and at no price. `name` is what the ledger calls its model."""

    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One L2-normalised vector a text (zeros where a text holds nothing), shape (len(texts), dimensions)."""

    def count(self, texts: Sequence[str]) -> int:
        """Tokens of `texts` by the embedder's own tokenizer."""


class Models(Protocol):
    """The only way to a model. Every call and every retry is a row of the usage ledger."""

    def complete(self, call: Call) -> Reply:
        """Answer one call. Raises ContextOverflow, ContentRefused, ProviderError, LimitExceeded, ReplayMiss."""

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        """Answer independent calls, concurrently where the endpoint allows; ledger rows stand in the order of `calls`."""

    def embed(
        self, role: str, texts: Sequence[str], *, phase: Phase, agent: str | None = None, local: LocalEmbedder | None = None
    ) -> NDArray[np.float64]:
        """Vectors of `texts`, shape (len(texts), dimensions): by `local` in this process, else by the endpoint of key `embed`.

        The rows have the kind `embedding` and are no part of the headline total (TOK-R6). Local ones cost nothing and count
        against no limit. Raises what `complete` raises, and ConfigError where the model set has no endpoint for embeddings.
        """
