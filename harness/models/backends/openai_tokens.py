"""Token counts of OpenAI models by their own tokenizer, from the copy inside litellm: never a download."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.contracts import Message

PER_MESSAGE, PER_PROMPT = 3, 3  # tokens that the chat format adds, by OpenAI's cookbook
_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def count_openai(model: str, messages: Sequence[Message], answer: str) -> tuple[int, int] | None:
    """(prompt, completion) tokens, or None where `model` is not OpenAI's or its tokenizer is not on this machine."""
    encoding = _encoding(model.rpartition("/")[2])
    if encoding is None:
        return None
    prompt = sum(PER_MESSAGE + _length(encoding, m["role"]) + _length(encoding, m["content"]) for m in messages)
    return prompt + PER_PROMPT, _length(encoding, answer)


def _length(encoding: Any, text: str) -> int:
    return len(encoding.encode(text, disallowed_special=()))


def _encoding(model: str) -> Any:
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    spec = importlib.util.find_spec("litellm")
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers" if spec is not None and spec.origin else Path()
    # tiktoken names its cached files by the sha1 of where they come from
    if not (folder / hashlib.sha1(_SOURCE.format(name).encode()).hexdigest()).is_file():
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)  # litellm does the same as soon as it counts tokens itself
    return tiktoken.get_encoding(name)
