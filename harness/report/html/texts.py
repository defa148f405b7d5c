"""Texts that repeat each other, written once; and the page's chunks, compressed.

A team's prompts differ from one call to the next by a few lines, so a text is stored as what it shares with an earlier one of
its kind at both ends, counted in lines, and what is new. Lines, not characters: Python and JavaScript count those differently.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

LEVEL = 9
Shared = tuple[int, int, str]  # lines at the start and at the end that are as in the text before, and what lies between


class Repeats:
    """Encodes the texts of a chunk in the order in which the page meets them. `masked` is applied to what is written."""

    def __init__(self, masked: Callable[[str], str]) -> None:
        self._last: dict[str, list[str]] = {}
        self._masked = masked

    def encode(self, kind: str, text: str) -> str | Shared:
        """`text` in relation to the text before of this `kind`; as it is where nothing is shared."""
        lines, before = text.split("\n"), self._last.get(kind)
        self._last[kind] = lines
        if before is None:
            return self._masked(text)
        most = min(len(lines), len(before))
        start = next((n for n in range(most) if lines[n] != before[n]), most)
        most -= start
        end = next((n for n in range(most) if lines[-1 - n] != before[-1 - n]), most)
        if not start and not end:
            return self._masked(text)
        return start, end, self._masked("\n".join(lines[start : len(lines) - end]))


def compressed(value: Any) -> str:
    """JSON in zlib's format (what DecompressionStream calls "deflate") in base64; a lone surrogate stays an escape."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), LEVEL)).decode("ascii")


def inline(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
