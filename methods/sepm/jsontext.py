"""Reading the JSON that models write: fenced, with words around it, or not JSON at all."""

from __future__ import annotations

import json
import re
from typing import Any

LONGEST = 200_000  # characters; an answer beyond this is no plan but a runaway model
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Malformed(ValueError):
    """A model's answer that cannot be used; the message is what the model is told."""


def decode(text: str, at: int = 0) -> tuple[Any, int]:
    """The JSON value at `at` and where it ends; half a character (a lone surrogate, which no file can hold) becomes U+FFFD.

    Raises ValueError or RecursionError.
    """
    found, end = json.JSONDecoder().raw_decode(text, at)
    return _whole(found), end


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def parse_object(text: str) -> dict[str, Any]:
    """The first JSON object in `text`. Raises Malformed."""
    if not text.strip():
        raise Malformed("the answer is empty")
    if len(text) > LONGEST:
        raise Malformed(f"the answer has {len(text)} characters")
    at, tries = text.find("{"), 0
    while at >= 0 and tries < 20:
        try:
            found, _ = decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        at, tries = text.find("{", at + 1), tries + 1
    raise Malformed("the answer holds no JSON object")


def parse_unit(text: str) -> float | None:
    """The `score` of the JSON object in `text`, else the first number, clamped to [0, 1]; None where there is none."""
    try:
        given = parse_object(text)
    except Malformed:
        given = {}
    if "score" in given:
        text = words(given["score"])
    found = _NUMBER.search(text)
    return None if found is None else min(1.0, max(0.0, float(found[0])))


def words(value: Any, limit: int = 400) -> str:
    """A model's string on one line, cut to `limit` characters; empty for anything that is no string or number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())[:limit]


def word_list(value: Any, limit: int = 20, each: int = 120) -> tuple[str, ...]:
    """A model's list of strings, each on one line, without empty ones and repeats."""
    if not isinstance(value, list):
        return ()
    return tuple(dict.fromkeys(text for item in value[:limit] if (text := words(item, each))))
