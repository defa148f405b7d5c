"""What comes in from a model is checked here, once: text that can be stored and sent on, and counts that can be counts.

A server may send anything. Lone surrogates cannot be written to a file or a database, NUL ends a text for many readers, and
a count may be negative, no number, or larger than any database integer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from harness.contracts import Call, Usage
from harness.models.backends.base import Answer
from harness.models.tokens import estimate_messages, estimate_text

LARGEST_COUNT = 10**9  # tokens of one call; no model comes near it
LONGEST_LINE = 300
_UNSPEAKABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def clean(text: str) -> str:
    """`text` with what cannot be stored (lone surrogates, NUL) replaced by U+FFFD."""
    return _UNSPEAKABLE.sub(_REPLACEMENT, text)


def one_line(text: str) -> str:
    """The first line of `text` that says something, cleaned and of at most 300 characters; a traceback is left out."""
    before, _, _ = clean(text).partition("Traceback (most recent call last)")
    found = next((line.strip() for line in before.splitlines() if line.strip()), "")
    return found[:LONGEST_LINE]


def count(value: Any) -> int | None:
    """`value` if it can be a number of tokens, else None."""
    sane = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT
    return value if sane else None


def believable(usage: Usage) -> tuple[Usage | None, str]:
    """`usage` as far as it can be true, and a note where it is not.

    None where input or output are no counts. Cached tokens that are not part of the input, or reasoning tokens that are not
    part of the output (TOK-R2, R3), are taken for not stated.
    """
    if count(usage.input) is None or count(usage.output) is None:
        return None, _disbelief(usage)
    cached, reasoning = count(usage.cached_input) or 0, count(usage.reasoning) or 0
    cached, reasoning = cached if cached <= usage.input else 0, reasoning if reasoning <= usage.output else 0
    found = replace(usage, cached_input=cached, reasoning=reasoning)
    return (usage, "") if found == usage else (found, _disbelief(usage))


def _disbelief(usage: Usage) -> str:
    return f"not believed: {one_line(repr(usage))}"


def take_in(answer: Answer, call: Call, *, constrained: bool) -> Answer:
    """`answer` as the rest of the harness may see it.

    A constrained answer is one of the environment's own texts and stays as it is. Counts that cannot be counts are replaced by
    an estimate, and the answer's note says so.
    """
    text = answer.text if constrained else clean(answer.text)
    finish = None if answer.finish_reason is None else one_line(str(answer.finish_reason))
    answer = replace(answer, text=text, model=one_line(str(answer.model)), finish_reason=finish)
    usage, note = believable(answer.usage)
    if usage is not None and all(count(n) is not None for n in answer.raw_usage.values()):
        return replace(answer, usage=usage, note=answer.note or note)
    estimated = Usage(estimate_messages(call.messages), estimate_text(text), source="estimate")
    return replace(answer, usage=estimated, raw_usage={}, note=answer.note or note or _disbelief(answer.usage))
