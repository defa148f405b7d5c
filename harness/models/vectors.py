"""Vectors as text, so that an embedding call records and replays like any answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEXTS_PER_CALL = 256  # providers bound the inputs of one request


def encode_vectors(vectors: Sequence[Sequence[float]]) -> str:
    """Vectors as text: their dimension, and 32-bit floats in base64. What providers send has no more digits than that."""
    import numpy as np

    array = np.asarray(vectors, dtype="<f4")
    return json.dumps({"dimensions": int(array.shape[1]), "f4": base64.b64encode(array.tobytes()).decode()})


def decode_vectors(text: str) -> NDArray[np.float64]:
    """The vectors in a text of `encode_vectors`, shape (n, dimensions)."""
    import numpy as np

    content = json.loads(text)
    flat = np.frombuffer(base64.b64decode(content["f4"]), dtype="<f4").astype(np.float64)
    return flat.reshape(-1, content["dimensions"])
