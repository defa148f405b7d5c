"""Lists and numbers as models write them.

A model may answer anything at any length, so every expression here and in the methods works on one line and in linear time: no
two neighbouring repetitions can share a character.
"""

from __future__ import annotations

import re

DIGITS = 9  # of a number that are read: what a model means is never longer, and Python refuses to read thousands
_ITEM = re.compile(r"(?:\d+[.):]|[-*•])(.*)")
_INTEGER = re.compile(r"-?\d+")


def list_items(text: str, most: int) -> list[str]:
    """The items of a numbered or bulleted list, at most `most`, without repetitions."""
    matches = (_ITEM.match(line.strip()) for line in text.split("\n"))
    items = (match[1].strip() for match in matches if match)
    return list(dict.fromkeys(item for item in items if item))[:most]


def one_line(text: str, sentences: int | None = None) -> str:
    """The text on a single line, cut after that many sentences."""
    flat = " ".join(text.split())
    if sentences is None:
        return flat
    parts = re.split(r"(?<=[.!?])\s+", flat)
    return " ".join(parts[:sentences])


def integer(digits: str) -> int:
    """The number of a string of digits, with a minus before them or not, cut after nine digits."""
    return int(digits[: DIGITS + 1] if digits.startswith("-") else digits[:DIGITS])


def integers(text: str) -> list[int]:
    """All whole numbers in `text`, each cut after nine digits."""
    return [integer(found) for found in _INTEGER.findall(text)]
