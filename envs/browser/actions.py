"""From a model's answer to one BrowserGym call. Pure functions."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection
from itertools import pairwise

_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n?(.*?)```", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])([a-z_]+)\(")
_QUOTES = ('"""', "'''", '"', "'")
_LONGEST_NONSENSE = 200  # characters of an answer without a call that go into the episode
_EFFORT = 2_000_000  # characters that are looked at for the ends of calls: an answer of openings alone would take its square


class _Effort:
    """What is left of the characters that may be looked at for one answer."""

    def __init__(self) -> None:
        self.left = _EFFORT


def normalise(text: str, names: Collection[str]) -> str:
    """The call in a model's answer: that of the last code fence with one, else that of the last line with one.

    `names` are the known actions. Several calls that stand together stay together: BrowserGym refuses them, as it does in the
    published runs. Where there is no call at all, the last line remains, whose error tells the agents what is wrong.
    Idempotent; "" where nothing is left.
    """
    stripped, effort = text.strip(), _Effort()
    for fence in reversed(_FENCE.findall(stripped)):
        if found := _calls(fence, names, effort):
            return "\n".join(call for call, _, _ in found)
    found = _calls(stripped, names, effort)
    if found:
        return "\n".join(call for call, _, _ in _last_line(stripped, found))
    lines = [line.strip() for line in stripped.splitlines() if line.strip(" `")]
    return lines[-1][:_LONGEST_NONSENSE].strip() if lines else ""


def _last_line(text: str, found: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The calls of the last line with one; all, where there is nothing but calls."""
    between = [text[: found[0][1]], *(text[a[2] : b[1]] for a, b in pairwise(found)), text[found[-1][2] :]]
    if not "".join(between).strip():
        return found
    first = len(found) - 1
    while first and "\n" not in between[first]:
        first -= 1
    return found[first:]


def _calls(text: str, names: Collection[str], effort: _Effort) -> list[tuple[str, int, int]]:
    """Calls of known actions with literal arguments, in order: source, start, end."""
    found, at = [], 0
    while effort.left > 0 and (match := _NAME.search(text, at)) is not None:
        stop = min(len(text), match.end() + effort.left)
        end = _closing(text, match.end(), stop) if match[1] in names else 0
        effort.left -= (end or stop) - match.end() if match[1] in names else 0
        if end and _literal(text[match.start() : end]):
            found.append((text[match.start() : end], match.start(), end))
            at = end
        else:
            at = match.end()
    return found


def _closing(text: str, at: int, stop: int) -> int:
    """The place after the bracket that closes the one before `at`; 0 where there is none before `stop`."""
    depth = 1
    while at < stop:
        if quote := next((mark for mark in _QUOTES if text.startswith(mark, at)), ""):
            at = _after_string(text, at + len(quote), quote, stop)
            if not at:
                return 0
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
        if not depth:
            return at
    return 0


def _after_string(text: str, at: int, quote: str, stop: int) -> int:
    while at < stop:
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return 0


def _literal(source: str) -> bool:
    """Whether `source` is a call whose arguments are literals: what BrowserGym's parser can read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model's doubtful escapes are no concern of the user's
            tree = ast.parse(source, mode="eval").body
        if not isinstance(tree, ast.Call):
            return False
        for part in [*tree.args, *(keyword.value for keyword in tree.keywords)]:
            ast.literal_eval(part)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
