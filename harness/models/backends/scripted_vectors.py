"""Vectors of a scripted embedding model: hashed words, so that texts with the same words are near each other. No model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

DIMENSIONS = 64


def hashed_vectors(texts: Sequence[str]) -> list[list[float]]:
    """One unit vector a text (zeros for a text without words)."""
    return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    values = [0.0] * DIMENSIONS
    for word in text.lower().split():
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=2).digest()
        values[digest[0] % DIMENSIONS] += 1.0 if digest[1] & 1 else -1.0
    norm = math.sqrt(sum(value * value for value in values))
    return [value / norm for value in values] if norm else values
