"""DyLAN's arithmetic (METHODS.md 2.3, 2.4): consensus, rankings, peer ratings, importance, and the choice of a team. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from methods.text.lists import integer, integers

# possessive, and begun at the first digit only: linear in the text
_ORDER = re.compile(r"(?<!\d)\d++(?:\s*+>\s*+\d++)++")
_RATINGS = re.compile(r"\[\[([-\d,\s]*)\]\][\s.]*$")
_PAIR = re.compile(r"\[\s*(\d+)\s*,\s*(\d+)\s*\]")
HIGHEST_RATING = 5


# --- the grid form (2.3) ----------------------------------------------------------------------------------------------
def layer_consensus(answers: Sequence[str], height: int) -> str | None:
    """The answer that a layer of `height` nodes agrees on, given the answers so far of those that count; None without one.

    Two answers agree if they are equal; of more, the most frequent must come floor(2/3 height) times. Ties go to the earlier.
    """
    if len(answers) < 2:
        return None
    answer, count = _most_frequent(answers)
    needed = 2 if len(answers) == 2 else max(2, 2 * height // 3)
    return answer if count >= needed else None


def parse_order(text: str, height: int) -> tuple[int, ...] | None:
    """A ranking "2 > 1 > 3" as 0-based places, best first; None unless it names each of `height` answers once (HOST-DY R4)."""
    for found in _ORDER.findall(text):
        order = tuple(place - 1 for place in integers(found))
        if sorted(order) == list(range(height)):
            return order
    return None


# --- the original form (2.4) ------------------------------------------------------------------------------------------
def early_consensus(answers: Sequence[str], size: int) -> str | None:
    """The answer given more than floor(2/3 size) times, `size` being the number of agents of the round; else None."""
    if not answers:
        return None
    answer, count = _most_frequent(answers)
    return answer if count > 2 * size // 3 else None


def most_frequent(answers: Sequence[str]) -> str:
    """The most frequent answer; of equally frequent ones the earliest."""
    return _most_frequent(answers)[0]


def _most_frequent(answers: Sequence[str]) -> tuple[str, int]:
    counts = Counter(answers)
    best = max(counts.values())
    return next((answer, best) for answer in answers if counts[answer] == best)


def parse_ratings(text: str, expected: int) -> tuple[int, ...] | None:
    """The ratings in the `[[…]]` that ends a reply; None unless there are exactly `expected`."""
    found = _RATINGS.search(text)
    ratings = tuple(integers(found[1])) if found else ()
    return ratings if found and len(ratings) == expected else None


def without_ratings(text: str) -> str:
    """A reply without the `[[…]]` of numbers that ends it. Brackets anywhere else (code has them) stay."""
    return _RATINGS.sub("", text).rstrip()


def edge_weights(ratings: Sequence[int] | None, upstream: int) -> tuple[float, ...]:
    """Weights of the edges from `upstream` agents, summing to 1: rating / 5, within [0, 1], normalised.

    Uniform where the ratings are missing, of the wrong number, or all zero.
    """
    if not upstream:
        return ()
    if ratings is not None and len(ratings) == upstream:
        clipped = [min(max(rating / HIGHEST_RATING, 0.0), 1.0) for rating in ratings]
        if total := sum(clipped):
            return tuple(value / total for value in clipped)
    return (1.0 / upstream,) * upstream


def parse_best_two(text: str, size: int) -> tuple[int, int] | None:
    """The listwise ranker's `[a, b]` (1-based, different, at most `size`) as 0-based places; None where there is none."""
    for a, b in _PAIR.findall(text):
        first, second = integer(a) - 1, integer(b) - 1
        if first != second and min(first, second) >= 0 and max(first, second) < size:
            return first, second
    return None


def last_layer_importance(answers: Sequence[str | None], result: str) -> tuple[float, ...]:
    """Importance in the last round with active agents: 1 / (number that gave the result) for those, 0 for others.

    `answers` has one entry an agent, None for an inactive one. Where no active agent gave the result (the public code
    divides by zero) all active agents share it.
    """
    agreeing = [answer is not None and answer == result for answer in answers]
    if not any(agreeing):
        agreeing = [answer is not None for answer in answers]
    share = 1.0 / sum(agreeing) if any(agreeing) else 0.0
    return tuple(share if agrees else 0.0 for agrees in agreeing)


def backward(last: Sequence[float], weights: Sequence[Sequence[Sequence[float]]]) -> list[tuple[float, ...]]:
    """Importance of every agent in every round, first round first: I(i) = Σ_j w(i→j) I(j).

    `last` is the last round's, `weights[k][i][j]` the weight of the edge from agent i in round k to agent j in round k + 1; an
    inactive agent has rows and columns of zeros.
    """
    layers = [tuple(last)]
    for matrix in reversed(weights):
        later = layers[0]
        layers.insert(0, tuple(sum(w * value for w, value in zip(row, later, strict=True)) for row in matrix))
    return layers


def totals(layers: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Importance of each agent over all rounds."""
    return tuple(sum(column) for column in zip(*layers, strict=True))


def best_team(importances: Sequence[Sequence[float]], keep: int) -> tuple[int, ...]:
    """Team optimisation: the `keep` agents with the highest mean importance over tasks, in their own order.

    `importances` has one row a task, one column an agent. Of equally important agents the earlier is kept.
    """
    sums = totals(importances)
    best = sorted(range(len(sums)), key=lambda agent: (-round(sums[agent], 9), agent))[:keep]
    return tuple(sorted(best))
