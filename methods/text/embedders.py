"""The embedders by name, and the way a memory method embeds: through `Models.embed`, so that every call is in the ledger.

`hash256` (feature hashing, no model), `wordllama` (static word-piece vectors in the package of that name, a semantic default
that needs no network), `minilm` (all-MiniLM-L6-v2 on sentence-transformers, an extra) and `litellm` (the endpoint of model key
`embed`). The name is a key of the method's configuration and with that part of the cell's identity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.contracts import LocalEmbedder, Models, Phase
from harness.errors import ConfigError
from methods.text import hash256

HASH256, WORDLLAMA, MINILM, LITELLM = "hash256", "wordllama", "minilm", "litellm"
EMBEDDERS = (HASH256, WORDLLAMA, MINILM, LITELLM)

Matrix = NDArray[np.float64]


class Hash256:
    """SEPM's text representation as an embedder (METHODS.md 1.6)."""

    name = HASH256

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.stack([hash256.embed(text) for text in texts]) if texts else np.zeros((0, hash256.DIMENSIONS))

    def count(self, texts: Sequence[str]) -> int:
        return sum(len(hash256.tokens(text)) for text in texts)


class Embedder:
    """What a method embeds with. `role` is the ledger's; construction loads the embedder's weights (SetupError without them)."""

    def __init__(self, name: str, models: Models, role: str) -> None:
        self.name, self.role = name, role
        self._models = models
        self._local = local_embedder(name)

    def __call__(self, texts: Sequence[str], phase: Phase) -> Matrix:
        """One row a text, L2-normalised (a zero row stays zero), shape (len(texts), dimensions)."""
        vectors = self._models.embed(self.role, list(texts), phase=phase, agent="memory", local=self._local)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Matrix = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        return unit

    def one(self, text: str, phase: Phase) -> NDArray[np.float64]:
        """The vector of one text, shape (dimensions,)."""
        row: NDArray[np.float64] = self([text], phase)[0]
        return row


def check_embedder(name: str) -> None:
    """Raise ValueError for an unknown name; for the `__post_init__` of a method's configuration."""
    if name not in EMBEDDERS:
        raise ValueError(f"embedder is {name!r}; there are {', '.join(EMBEDDERS)}")


def local_embedder(name: str) -> LocalEmbedder | None:
    """The embedder of that name that works in this process; None for the remote one. Raises SetupError, ConfigError."""
    if name == HASH256:
        return Hash256()
    if name == WORDLLAMA:
        from methods.text.wordllama import WordLlama

        return WordLlama()
    if name == MINILM:
        from methods.text.minilm import MiniLM

        return MiniLM()
    if name == LITELLM:
        return None
    raise ConfigError(f"There is no embedder '{name}'.", f"There are {', '.join(EMBEDDERS)}.")
