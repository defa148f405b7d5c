"""The line of JSON in which an agent says what it is about to do (METHODS.md 4.2, "observing the local goal, plan and state")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from methods.sepm.conditions import Condition, parse_conditions
from methods.sepm.jsontext import decode, word_list, words

KEYS = frozenset({"node", "goal", "plan", "claims"})
DEFAULT_CONFIDENCE = 0.5  # of a claim that names none: below the threshold, so it does not qualify
MAX_CLAIMS, MAX_STEPS = 10, 50
_START = re.compile(r"^\s*(?:#+|//+|--)?\s*(?=\{)")
_LOOKS_LIKE = re.compile(r'^\s*(?:#+|//+|--)?\s*\{\s*"?(?:node|goal|claims|plan)"?\s*:')


@dataclass(frozen=True)
class Header:
    """What an agent declared; None is "not observed". `plan` is (id → action, edges)."""

    node: str | None = None
    goal: str | None = None
    plan: tuple[Mapping[str, str], frozenset[tuple[str, str]]] | None = None
    claims: tuple[tuple[Condition, float], ...] = field(default=())


def split(text: str) -> tuple[Header | None, str, bool]:
    """(header, the reply without it, whether something that looked like a header could not be read).

    Only the first JSON object with the header's keys counts, at the beginning of a line; it may stand in a comment.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        start = _START.match(line)
        if start is None:
            continue
        found, rest = _decode(line[start.end() :])
        if found is not None:
            return _read(found), "\n".join([*lines[:number], *([rest] if rest else []), *lines[number + 1 :]]).strip("\n"), False
        if _LOOKS_LIKE.match(line):
            return None, "\n".join([*lines[:number], *lines[number + 1 :]]).strip("\n"), True
    return None, text, False


def _decode(text: str) -> tuple[dict[str, Any] | None, str]:
    try:
        found, end = decode(text)
    except (ValueError, RecursionError):
        return None, ""
    if not isinstance(found, dict) or not found or not found.keys() <= KEYS or not found.keys() & {"node", "goal"}:
        return None, ""
    return found, text[end:].strip()


def _read(given: Mapping[str, Any]) -> Header:
    claims = []
    raw = given.get("claims")
    for item in raw[:MAX_CLAIMS] if isinstance(raw, list) else []:
        for condition in parse_conditions([item]):
            confidence = item.get("confidence")
            usable = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
            claims.append((condition, float(confidence) if usable else DEFAULT_CONFIDENCE))
    return Header(
        node=words(given.get("node"), 40) or None,
        goal=" ".join(words(given.get("goal"), 300).split()[:40]) or None,
        plan=_read_plan(given.get("plan")),
        claims=tuple(claims),
    )


def _read_plan(given: Any) -> tuple[Mapping[str, str], frozenset[tuple[str, str]]] | None:
    if not isinstance(given, list) or not given:
        return None
    actions: dict[str, str] = {}
    edges: set[tuple[str, str]] = set()
    for item in given[:MAX_STEPS]:
        if not isinstance(item, dict):
            return None
        node_id, action = words(item.get("id"), 40), words(item.get("action"), 200)
        if not node_id or not action:
            return None
        actions[node_id] = action
        edges |= {(u, node_id) for u in word_list(item.get("after"))}
    return actions, frozenset(edges)
