"""Typed graders of KramaBench (ENVIRONMENTS.md): pure functions from an answer and a task to a score in [0, 1].

Numbers are compared with a relative tolerance of 1e-6, numbers of approximate lists within 1 %; a gold is taken for what it is
where its declared type contradicts it (two tasks are mistyped, see `notes`). All 104 golds score 1, also when given as text.
"""

from __future__ import annotations

import ast
import json
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

EXACT, APPROXIMATE = 1e-6, 0.01
# words that a paraphrase may add or drop
_FILLERS = frozenset(
    {"a", "an", "and", "are", "at", "be", "by", "for", "had", "has", "have", "in", "is", "it", "its", "of", "on", "that", "the",
     "this", "to", "was", "were", "with"}
)  # fmt: skip

_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_CURRENCY = "$€£¥"


def numbers(value: Any) -> tuple[float, ...]:
    """What `value` may mean as a number: none, one, or (for a percentage) two readings."""
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, int | float):
        return (float(value),) if math.isfinite(value) else ()
    text = str(value).strip().strip("'\"").strip(_CURRENCY).strip()
    percent = text.endswith("%")
    found = _NUMBER.fullmatch(text.removesuffix("%").strip().replace(" ", ""))
    if not found:
        return ()
    number = float(found.group().replace(",", ""))
    if not math.isfinite(number):
        return ()
    return (number, number / 100) if percent else (number,)


def words(value: Any) -> str:
    """A text as it is compared: lower-case, blanks collapsed, without quotes, brackets and punctuation at its ends."""
    return " ".join(str(value).casefold().split()).strip(string.punctuation + string.whitespace)


def items(value: Any) -> list[Any]:
    """The elements of an answer that is meant as a list: a list, a Python or JSON literal, or text with commas or lines."""
    if isinstance(value, list | tuple | set):
        return list(value)
    text = str(value).strip()
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        return list(parsed) if isinstance(parsed, list | tuple | set) else [parsed]
    parts = re.split(r"\n|;|,(?!\d{3}\b)", text.strip("[](){}"))
    return [part.strip().strip("'\"").removeprefix("- ") for part in parts if part.strip()]


def _close(given: Any, wanted: Any, tolerance: float) -> bool:
    """Whether two values are the same number within `tolerance` (relative), or else the same text."""
    for target in numbers(wanted)[:1]:
        return any(math.isclose(number, target, rel_tol=tolerance, abs_tol=1e-12) for number in numbers(given))
    return words(given) == words(wanted)


def _numeric_exact(given: Any, wanted: Any) -> float:
    return float(_close(given, wanted, EXACT))


def _numeric_approximate(given: Any, wanted: Any) -> float:
    """1 / (1 + RAE), RAE being the relative absolute error of the best reading."""
    (target, *_), readings = numbers(wanted), numbers(given)
    errors = [abs(number - target) / abs(target) if target else float(number != 0) for number in readings]
    return max((1.0 if error <= EXACT else 1.0 / (1.0 + error) for error in errors), default=0.0)


def _string_exact(given: Any, wanted: Any) -> float:
    return float(_close(given, wanted, EXACT))


def _string_approximate(given: Any, wanted: Any) -> float:
    """The same words and figures, whatever their order, fillers aside. A freer paraphrase needs the judge (`grader=judge`)."""

    def content(value: Any) -> list[str]:
        return sorted(word for word in re.findall(r"[^\W_]+(?:\.\d+)?", words(value)) if word not in _FILLERS)

    return float(words(given) == words(wanted) or (content(given) == content(wanted) != []))


def _matches(given: Sequence[Any], wanted: Sequence[Any], tolerance: float) -> int:
    """How many elements can be paired off, each used once."""
    left = list(given)
    count = 0
    for target in wanted:
        for index, candidate in enumerate(left):
            if _close(candidate, target, tolerance):
                del left[index]
                count += 1
                break
    return count


def _list_exact(given: Any, wanted: Any) -> float:
    ours, golds = items(given), items(wanted)
    return float(len(ours) == len(golds) and _matches(ours, golds, EXACT) == len(golds))


def _list_approximate(given: Any, wanted: Any) -> float:
    """F1 over elements, numbers within 1 %."""
    ours, golds = items(given), items(wanted)
    hits = _matches(ours, golds, APPROXIMATE)
    return 2 * hits / (len(ours) + len(golds)) if ours and golds else 0.0


def grader_of(answer_type: str, gold: Any) -> Callable[[Any, Any], float]:
    """The grader for a gold: by its declared type, unless the gold itself is something else."""
    if isinstance(gold, list):
        return _list_approximate if answer_type == "list_approximate" else _list_exact
    if answer_type.startswith("numeric"):
        if not numbers(gold):
            return _string_exact
        return _numeric_approximate if answer_type == "numeric_approximate" else _numeric_exact
    return _string_approximate if answer_type == "string_approximate" else _string_exact


def grade(answer: Any, task: Mapping[str, Any], grader: str = "typed") -> float:
    """The score of `answer` for a task record (`answer`, `answer_type`, perhaps `accepted_answers`), in [0, 1].

    `grader` is `typed`; the binary judge needs a model and lives in the session (`envs.kramabench.session`).
    """
    if grader != "typed":
        raise ValueError(f"{grader!r} is no pure grader; there is: typed")
    golds = [task["answer"], *(task.get("accepted_answers") or [])]
    return max(grader_of(str(task["answer_type"]), gold)(answer, gold) for gold in golds)
