"""Numbers and aligned columns as plain text. A number that was not measured is an en dash."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

NOTHING = "–"


def width(text: str) -> int:
    """Columns that `text` takes in a terminal."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def pad(text: str, to: int, right: bool = False) -> str:
    fill = " " * (to - width(text))
    return fill + text if right else text + fill


def columns(rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset(), gap: str = "  ") -> list[str]:
    """Rows of equal length as aligned lines; the columns in `right` are flush right."""
    held = list(rows)
    widths = [max(width(row[index]) for row in held) for index in range(len(held[0]))] if held else []
    return [gap.join(pad(cell, widths[i], i in right) for i, cell in enumerate(row)).rstrip() for row in held]


def integer(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def number(value: float | None, decimals: int = 2) -> str:
    return NOTHING if value is None else f"{value:.{decimals}f}".replace("-", "−")


def dollars(value: float | None) -> str:
    """Four decimals below a dollar, so that small runs do not read as free."""
    if value is None:
        return NOTHING
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}" if value >= 0.0001 else "<$0.0001"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
