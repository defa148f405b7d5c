"""A plan as text: a line a cell, the sums, and where every figure comes from."""

from __future__ import annotations

from collections.abc import Mapping

from harness.plan.estimate import Line, Plan
from harness.report.text import NOTHING, columns, dollars, integer, plural

_HEAD = ("", "cell", "tasks", "calls", "tokens", "cost", "hours")


def render(found: Plan) -> str:
    """The table, then the sources by number: measured on n tasks, reported, or unknown."""
    marks: dict[tuple[str, ...], int] = {}
    rows = [_HEAD, *(_row(line, _mark(marks, (line.source, *line.notes))) for line in found.lines)]
    if len(found.lines) > 1:
        rows.append(_total(found))
    lines = columns(rows, right=frozenset(range(2, len(_HEAD))))
    lines += ["", *(f"({mark}) {'; '.join(parts)}" for parts, mark in marks.items())]
    lines.append(f"Prices: conf/prices/{found.prices}.yaml. {NOTHING}: not known, and in no sum. Tokens are all that is billed.")
    lines += [f"Not known for {plural(count, 'cell')}: {name}." for name, count in _unknown(found).items() if count]
    if found.unknown("tokens"):
        lines.append("A pilot measures what is not known: the same command as `memarena run`, with run.tasks=3.")
    return "\n".join(lines)


def _mark(marks: dict[tuple[str, ...], int], parts: tuple[str, ...]) -> str:
    return f"({marks.setdefault(parts, len(marks) + 1)})"


def _row(line: Line, mark: str) -> tuple[str, ...]:
    return (mark, line.cell, integer(line.tasks), _whole(line.calls), _whole(line.tokens), money(line.usd), _hours(line.hours))


def _total(found: Plan) -> tuple[str, ...]:
    calls, tokens, tasks = (_whole(found.total(name)) for name in ("calls", "tokens", "tasks"))
    return ("", "all that is known", tasks, calls, tokens, money(found.usd), _hours(found.total("hours")))


def _unknown(found: Plan) -> Mapping[str, int]:
    return {
        name: found.unknown(key) for key, name in (("tasks", "tasks"), ("tokens", "tokens"), ("usd", "cost"), ("hours", "hours"))
    }


def _whole(value: float | None) -> str:
    return integer(None if value is None else round(value))


def _hours(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}" if value >= 0.05 or value == 0 else "<0.1"


def money(usd: tuple[float, float] | None) -> str:
    """One figure, or from the least to the most."""
    if usd is None:
        return NOTHING
    low, high = (dollars(value) for value in usd)
    return low if low == high else f"{low} to {high}"
