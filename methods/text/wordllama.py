"""`wordllama`: static word-piece vectors, averaged (MODELS.md). 256 dimensions, thousands of texts a second, no network.

The package's own loader reaches for the network and imports more than is needed; the weights and the tokenizer lie inside it as
plain files, which are read here directly. The package itself is never imported.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import SetupError

Weights = NDArray[Any]  # 16- or 32-bit floats

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FIX = "pip install --no-deps wordllama==0.4.0.post1"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_DTYPES = (("F16", "<f2"), ("F32", "<f4"))


class WordLlama:
    """The mean of the vectors of a text's word pieces, L2-normalised; zeros for a text without any."""

    name = "wordllama"

    def __init__(self) -> None:
        self._weights, self._tokenizer = _load()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        out = np.zeros((len(texts), self._weights.shape[1]))
        for row, encoding in enumerate(self._tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            if encoding.ids:
                mean = self._weights[encoding.ids].astype(np.float64).mean(axis=0)
                norm = float(np.linalg.norm(mean))
                out[row] = mean / norm if norm else 0.0
        # the digits that the weights carry: the rest depends on the processor's order of summing
        return np.round(out, 6)

    def count(self, texts: Sequence[str]) -> int:
        return sum(len(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False))


def _load() -> tuple[Weights, Tokenizer]:
    """The weights, shape (word pieces, 256), and the tokenizer. Raises SetupError where the package is missing or has changed."""
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise SetupError("The embedder 'wordllama' needs the package wordllama, which is not installed.", FIX)
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise SetupError("The embedder 'wordllama' needs the package tokenizers.", "pip install tokenizers") from error
    root = Path(found.origin).parent
    try:
        weights = _read_safetensors(root / WEIGHTS)
        return weights, Tokenizer.from_file(str(root / TOKENIZER))
    except (OSError, KeyError, ValueError, struct.error) as error:
        raise SetupError(f"The package wordllama in {root} holds no weights that can be read: {error}.", FIX) from error


def _read_safetensors(path: Path) -> Weights:
    """The one tensor of a safetensors file: 8 bytes little-endian header length, JSON header, raw data."""
    with path.open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start = file.tell()
        (tensor,) = (entry for name, entry in header.items() if name != "__metadata__")
        first, last = tensor["data_offsets"]
        file.seek(start + first)
        data = file.read(last - first)
    array: Weights = np.frombuffer(data, dtype=np.dtype(dict(_DTYPES)[tensor["dtype"]])).reshape(tensor["shape"])
    return array
