"""How a memory stream ranks its records (Park et al. 2023; METHODS.md 3.2), and how a model's ratings are read. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from methods.text.lists import integer, integers

Numbers = NDArray[np.float64]

DECAY = 0.995  # per logical hour, which is one task
LOWEST, HIGHEST = 1, 10
DIGITS = 9

# possessive: what one repetition has taken is not tried again by the next
_SCORED = re.compile(r"\W{0,50}(\d++)\s*+[:.)=-]\s*+(\d+)")
_BRACKETS = re.compile(r"\[([\d,\s]*)\]")
_SEPARATOR = r"(?:\s*+,\s*+(?:and\s++)?|\s++(?:and\s++)?)#?"
_EVIDENCE = re.compile(rf"(?:because of|based on|evidence:?)?[\s#]*\d++(?:{_SEPARATOR}\d++)*+,?\s*", re.IGNORECASE)
LONGEST_EVIDENCE = 300  # characters between the brackets


@dataclass(frozen=True)
class Weights:
    """What the three components count for; all 1 in the paper."""

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0


def recency(now: int, last_access: Numbers) -> Numbers:
    """DECAY to the power of the tasks since the last access: 1 for a record used just now, the less the older."""
    return np.power(DECAY, now - last_access)


def min_max(values: Numbers) -> Numbers:
    """The values scaled to [0, 1] over the candidates; 0.5 for all where they are equal."""
    low, high = values.min(), values.max()
    return np.full(len(values), 0.5) if high == low else (values - low) / (high - low)


def score(now: int, last_access: Numbers, importance: Numbers, relevance: Numbers, weights: Weights) -> Numbers:
    """The weighted sum of the three normalised components, one number a candidate."""
    parts = (
        weights.recency * min_max(recency(now, last_access)),
        weights.importance * min_max(importance),
        weights.relevance * min_max(relevance),
    )
    total: Numbers = np.round(parts[0] + parts[1] + parts[2], DIGITS)
    return total


def parse_importances(text: str, count: int) -> list[int]:
    """The importance of `count` records from lines "n: score", or from a list of exactly so many numbers; clamped to 1..10.

    A record without a score counts as mundane (1).
    """
    found = {integer(match[1]): integer(match[2]) for line in text.split("\n") if (match := _SCORED.match(line))}
    if not found:
        for inside in _BRACKETS.findall(text):
            numbers = integers(inside)
            if len(numbers) == count:
                found = dict(enumerate(numbers, 1))
    if not found and count == 1 and (single := re.search(r"\d+", text)):
        found = {1: integer(single.group())}
    return [min(max(found.get(place, LOWEST), LOWEST), HIGHEST) for place in range(1, count + 1)]


def parse_insight(item: str, shown: Sequence[int]) -> tuple[str, list[int]]:
    """An insight and the ids of the records that it cites as "(because of 1, 5)", its numbers being places in `shown`."""
    closed = item.rstrip().removesuffix(".").rstrip()
    insight, bracket, cited = closed.removesuffix(")").rpartition("(")
    if not (closed.endswith(")") and bracket) or len(cited) > LONGEST_EVIDENCE or _EVIDENCE.fullmatch(cited) is None:
        return item, []
    return insight.rstrip(), [shown[place - 1] for place in integers(cited) if 1 <= place <= len(shown)]
