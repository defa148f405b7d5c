"""Texts that repeat each other, written once; and the page's chunks, compressed.

A team's prompts differ from one call to the next by a few lines, so a text is stored as what it shares with an earlier one of
its kind at both ends, counted in lines, and what is new. Lines, not characters: Python and JavaScript count those differently.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from harness.archive.secrets import Redactor, holds_secret

LEVEL = 9
MOST_LINES = 200_000  # lines that are remembered
# lines at the start and at the end that are as in the text before, and what lies between (None: nothing, not an empty line)
Shared = tuple[int, int, str | None]


class Repeats:
    """Encodes the texts of a chunk in the order in which the page meets them."""

    def __init__(self) -> None:
        self._last: dict[str, list[str]] = {}

    def encode(self, kind: str, text: str) -> str | Shared:
        """`text` in relation to the text before of this `kind`; as it is where nothing is shared."""
        lines, before = text.split("\n"), self._last.get(kind)
        self._last[kind] = lines
        if before is None:
            return text
        most = min(len(lines), len(before))
        start = next((n for n in range(most) if lines[n] != before[n]), most)
        most -= start
        end = next((n for n in range(most) if lines[-1 - n] != before[-1 - n]), most)
        if not start and not end:
            return text
        middle = lines[start : len(lines) - end]
        return start, end, "\n".join(middle) if middle else None


class Mask:
    """Takes secrets and the folders of this machine out of texts that repeat each other: a line is looked at once."""

    def __init__(self, redactor: Redactor) -> None:
        self._masked = redactor.masked
        self._of_several_lines = redactor.of_several_lines
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        # secrets that have more than one line
        if "PRIVATE KEY" in text or any(secret in text for secret in self._of_several_lines):
            return self._masked(text)
        return "\n".join(map(self._line, text.split("\n")))

    def tree(self, value: Any) -> Any:
        """Plain data with every text in it masked, keys included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {
                self(str(key)): f"[removed: {key}]" if holds_secret(str(key), item) else self.tree(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        return value

    def _line(self, line: str) -> str:
        found = self._known.get(line)
        if found is None:
            if len(self._known) >= MOST_LINES:
                self._known.clear()
            found = self._known[line] = self._masked(line)
        return found


def compressed(value: Any) -> str:
    """JSON in zlib's format (what DecompressionStream calls "deflate") in base64; a lone surrogate stays an escape."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), LEVEL)).decode("ascii")


def inline(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
