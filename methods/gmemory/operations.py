"""Operations on insights as a model writes them, and what they come to for the rules it was shown. Pure (METHODS.md 3.4)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from methods.text.lists import integer

Kind = Literal["ADD", "EDIT", "REMOVE", "AGREE"]

MOST_LINES = 4
NEW_SCORE = 2
AGREE_CREDIT, REMOVE_CREDIT, REMOVE_CREDIT_WHEN_FULL = 1, -1, -3

# possessive: what one repetition has taken is not tried again by the next
_LINE = re.compile(r"\W{0,50}(ADD|EDIT|REMOVE|AGREE)\s*+(\d++)?\s*+:(.*)")
_RESERVED = re.compile(r"\b(?:ADD|AGREE|EDIT)\b")


@dataclass(frozen=True)
class Operation:
    """A line of a model's answer; `number` is the 1-based place in the list that it was shown, where it gave one."""

    kind: Kind
    number: int | None
    text: str


@dataclass(frozen=True)
class Change:
    """What an operation comes to: `place` is the 0-based place of a shown rule (None: a new one), `text` the new wording where
    there is one, `credit` what the rule's score changes by (a new rule: its score)."""

    place: int | None
    text: str | None
    credit: int
    kind: Kind


def parse_operations(text: str) -> list[Operation]:
    """The first four operations of an answer. A line counts if its text ends with a period and does not itself contain one of the
    words ADD, AGREE, EDIT (then two operations ran together)."""
    found: list[Operation] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        rule = match[3].strip() if match else ""
        if match is None or not rule.endswith(".") or _RESERVED.search(rule):
            continue
        kind: Kind = match[1]  # type: ignore[assignment]
        found.append(Operation(kind, integer(match[2]) if match[2] else None, rule))
    return found[:MOST_LINES]


def resolve(operations: Sequence[Operation], rules: Sequence[str], *, max_rules: int, agree_missing: str) -> list[Change]:
    """The changes that `operations` mean for the shown `rules`, in order.

    A new rule that is (part of) a shown one, or the other way round, changes nothing; an edit to such a wording is an agreement
    with that rule. A removal weighs more when `max_rules` or more are shown. An operation whose rule is not found is ignored;
    `agree_missing` "last" gives an AGREE the last rule instead, as the published code does by indexing with -1.
    """
    changes: list[Change] = []
    removal = REMOVE_CREDIT_WHEN_FULL if len(rules) >= max_rules else REMOVE_CREDIT
    for operation in operations:
        same, numbered = _same(operation.text, rules), _numbered(operation, rules)
        if operation.kind == "ADD":
            if same is None:
                changes.append(Change(None, operation.text, NEW_SCORE, "ADD"))
        elif operation.kind == "EDIT":
            if same is not None:
                changes.append(Change(same, None, AGREE_CREDIT, "AGREE"))
            elif numbered is not None:
                changes.append(Change(numbered, operation.text, AGREE_CREDIT, "EDIT"))
        else:
            place = same if same is not None else numbered
            if operation.kind == "AGREE" and agree_missing == "last" and same is None:
                place = len(rules) - 1 if rules else None
            if place is not None:
                credit = AGREE_CREDIT if operation.kind == "AGREE" else removal
                changes.append(Change(place, None, credit, operation.kind))
    return changes


def merge_cap(count: int, rule: str) -> int:
    """How many rules a batch of `count` may be merged into: "third" max(1, ceil(count / 3)); "published" (count // 3) // 3, which
    divides twice and is 0 for up to 8 rules."""
    return (count // 3) // 3 if rule == "published" else max(1, math.ceil(count / 3))


def credit(success: bool) -> int:
    """What a rule that was shown gets when the task is over (backward)."""
    return 1 if success else -2


def _same(text: str, rules: Sequence[str]) -> int | None:
    """The place of a rule that contains `text` or is contained in it, upper and lower case being the same."""
    wanted = text.lower().rstrip(". ")
    for place, rule in enumerate(rules):
        known = rule.lower().rstrip(". ")
        if wanted in known or known in wanted:
            return place
    return None


def _numbered(operation: Operation, rules: Sequence[str]) -> int | None:
    number = operation.number
    return number - 1 if number is not None and 1 <= number <= len(rules) else None
