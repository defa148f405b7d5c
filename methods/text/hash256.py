"""`hash256`: the text representation f of the SEPM paper (B.1), 256-dimensional signed BLAKE2b feature hashing.

No model, no download, the same on every machine (SEPM-R11).
"""

from __future__ import annotations

import hashlib
import re

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 256
Vector = NDArray[np.float64]

# runs of word characters, a Han character being a token of its own
_TOKEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W\u3400-\u9fff\uf900-\ufaff]+")


def tokens(text: str) -> list[str]:
    """The lower-cased tokens of `text` in order."""
    return _TOKEN.findall(text.lower())


def slot(token: str) -> tuple[int, int]:
    """Index in 0..255 and sign (+1 or -1) of a token: the first four bytes of its 8-byte BLAKE2b digest, big-endian,
    modulo 256; the sign is + where the lowest bit of the fifth byte is set."""
    digest = hashlib.blake2b(token.encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "big") % DIMENSIONS, 1 if digest[4] & 1 else -1


def embed(text: str) -> Vector:
    """The L2-normalised vector of `text`, shape (256,); the zero vector for a text without tokens."""
    vector = np.zeros(DIMENSIONS)
    for token in tokens(text):
        index, sign = slot(token)
        vector[index] += sign
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm else vector


def cosine(a: Vector, b: Vector) -> float:
    """Cosine in [-1, 1]; 0 where one of the vectors is zero."""
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / norms, -1.0, 1.0)) if norms else 0.0


def bounded_similarity(a: Vector, b: Vector) -> float:
    """(cosine + 1) / 2 in [0, 1] (AMB-7)."""
    return (cosine(a, b) + 1.0) / 2.0
