"""Lists as models write them."""

from __future__ import annotations

import re

_ITEM = re.compile(r"^\s*(?:\d+[.):]|[-*•])\s*(.+?)\s*$", re.MULTILINE)


def list_items(text: str, most: int) -> list[str]:
    """The items of a numbered or bulleted list, at most `most`, without repetitions."""
    return list(dict.fromkeys(item for item in _ITEM.findall(text) if item))[:most]


def one_line(text: str, sentences: int | None = None) -> str:
    """The text on a single line, cut after that many sentences."""
    flat = " ".join(text.split())
    if sentences is None:
        return flat
    parts = re.split(r"(?<=[.!?])\s+", flat)
    return " ".join(parts[:sentences])
