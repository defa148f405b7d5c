"""The papers' own numbers: tidy CSV files in results/reported/, and whether each can be a count at all.

Values are kept as the text that the paper displays, since "0.50" and "0.500" claim different things. `n` is filled only
where the number claims to be a share of a known n; then `k` is the one count that rounds to it, empty if there is none.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from harness.errors import SetupError, UserError
from harness.registry import did_you_mean

# What the whole is worth in each unit that may be a share.
SCALES: Mapping[str, int] = {"%": 100, "fraction": 1}


def reported_dir(package: Path | None = None) -> Path:
    """results/reported in a checkout, harness/_reported in an installed wheel. `package` is the harness package's folder."""
    here = package or Path(__file__).resolve().parent.parent
    for candidate in (here / "_reported", here.parent / "results" / "reported"):
        if candidate.is_dir():
            return candidate
    raise SetupError(f"The papers' numbers are missing: no results/reported beside {here}.", "Reinstall memarena.")


@dataclass(frozen=True)
class Reported:
    """One number of a paper. `value` is the displayed text, `unit` %, fraction, pp, points, million tokens, x or min."""

    paper: str
    arxiv_id: str
    source: str
    host: str
    method: str
    variant: str
    model: str
    env: str
    split: str
    metric: str
    value: str
    unit: str
    k: int | None
    n: int | None
    note: str

    @property
    def number(self) -> float:
        return float(self.value)

    @property
    def decimals(self) -> int:
        """Digits after the point, as displayed."""
        return len(self.value.partition(".")[2])

    @property
    def count(self) -> Count | None:
        """The check of this number as a count; None where it does not claim to be one."""
        return None if self.n is None else possible_count(self.value, self.n, SCALES[self.unit])

    @property
    def possible(self) -> bool:
        """False only where the number claims to be k of n and no k gives it."""
        return self.count is None or self.count.possible


@dataclass(frozen=True)
class Count:
    """Which k of n display as a value: all of them, and the neighbours where there is none."""

    value: str
    n: int
    scale: int
    ks: tuple[int, ...]

    @property
    def possible(self) -> bool:
        return bool(self.ks)

    def explain(self) -> str:
        """One line for a footnote: the count it is, or the counts on both sides of it."""
        if self.ks:
            return f"{self.value} is {' or '.join(map(str, self.ks))} of {self.n}"
        decimals = len(self.value.partition(".")[2])
        below = math.floor(Fraction(self.value) * self.n / self.scale)
        beside = [k for k in (below, below + 1) if 0 <= k <= self.n]
        near = " and ".join(f"{k} gives {displayed(k, self.n, decimals, self.scale)}" for k in beside)
        return f"{self.value} is not a possible count of {self.n}: {near}"


def possible_count(value: str, n: int, scale: int = 100) -> Count:
    """The counts k of `n` that round to the displayed `value` (`scale` 100 for a percentage, 1 for a fraction).

    Exact arithmetic; a tie counts as rounding either way.
    """
    half = Fraction(1, 2 * 10 ** len(value.partition(".")[2]))
    middle = Fraction(value)
    first = max(0, math.ceil((middle - half) * n / scale))
    last = min(n, math.floor((middle + half) * n / scale))
    return Count(value, n, scale, tuple(range(first, last + 1)))


def displayed(k: int, n: int, decimals: int = 2, scale: int = 100) -> str:
    """`k` of `n` as the papers display it (SEPM-R39): rounded half up from the exact fraction."""
    digits = math.floor(Fraction(k * scale * 10**decimals, n) + Fraction(1, 2))
    whole, rest = divmod(digits, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}" if decimals else str(whole)


def files() -> list[str]:
    """The names of the CSV files there are."""
    return sorted(path.name for path in reported_dir().glob("*.csv"))


def load(name: str) -> tuple[Reported, ...]:
    """The numbers of one CSV file of `reported_dir()`, in its order."""
    path = reported_dir() / name
    if not path.is_file():
        raise UserError(f"No reported numbers named {name!r}.", did_you_mean(name, files()))
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(_parse(row, f"{name}:{line}") for line, row in enumerate(csv.DictReader(file), start=2))


def _parse(row: Mapping[str, str], where: str) -> Reported:
    names = [field.name for field in fields(Reported)]
    if list(row) != names:
        raise UserError(f"{where}: the columns are not {', '.join(names)}.")
    values: dict[str, Any] = dict(row)
    try:
        Fraction(values["value"])
        values["k"], values["n"] = (int(values[key]) if values[key] else None for key in ("k", "n"))
    except ValueError as error:
        raise UserError(f"{where}: {error}.") from error
    if values["n"] is not None and values["unit"] not in SCALES:
        raise UserError(f"{where}: {values['unit']!r} is not a share of {values['n']}.", f"Units of shares: {', '.join(SCALES)}.")
    return Reported(**values)


def impossible(numbers: tuple[Reported, ...]) -> list[Reported]:
    """Those that claim to be a share of a known n and are none."""
    return [number for number in numbers if not number.possible]
