"""The printed parts of a table's cell, and its record for CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from harness.report.cells import MeasuredCell, ReportedCell
from harness.report.definition import ColumnSpec, TableSpec
from harness.report.statistics import McNemar, Permutation
from harness.report.text import NOTHING, integer, number

# The printed parts of a column, in order; `reported` and `measured` always stand, the others where a row has them.
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "reported": "reported",
        "from_counts": "reported, from counts",
        "measured": "measured",
        "change": "measured Δ",
        "test": "McNemar p (Holm)",
        "tokens_reported": "tokens reported",
        "tokens_measured": "tokens measured",
    }
)
DEPARTS = "≠"


class PlaceLike(Protocol):
    """Both sides of a cell."""

    reported: ReportedCell
    measured: list[MeasuredCell]


def used_parts(column: ColumnSpec, places: Sequence[PlaceLike]) -> list[str]:
    """The parts of a column that any of its rows fills."""
    comparisons = [cell.comparison for place in places for cell in place.measured if cell.comparison is not None]
    used = {
        "reported": True,
        "from_counts": any(place.reported.from_counts is not None for place in places),
        "measured": True,
        "change": bool(comparisons),
        "test": any(one.test is not None for one in comparisons),
        "tokens_reported": any(place.reported.tokens is not None for place in places),
        "tokens_measured": column.tokens and any(place.measured for place in places),
    }
    return [part for part in LABELS if used[part]]


def part(
    name: str,
    column: ColumnSpec,
    reported: ReportedCell,
    cell: MeasuredCell | None,
    first: bool,
    mark: Callable[[str], str],
) -> str:
    """One printed part. Reported numbers stand in the first line of their row only."""
    if name in _REPORTED:
        return reported_part(name, column, reported) if first else ""
    return NOTHING if cell is None else _MEASURED[name](column, cell, mark)


def reported_part(name: str, column: ColumnSpec, reported: ReportedCell) -> str:
    """One printed part of the paper's side."""
    return _REPORTED[name](column, reported)


# --- reported ---------------------------------------------------------------------------------------------------------
def arrow(change: float, shown: str) -> str:
    """The paper's arrow, up for no change too: ↑26.12, ↓3.34."""
    return f"{'↓' if change < 0 else '↑'}{shown.lstrip('+-−')}"


def _reported(column: ColumnSpec, cell: ReportedCell) -> str:
    if cell.value is None:
        return NOTHING
    shown = cell.value.replace("-", "−") + (" M" if cell.unit == "million tokens" else "")
    if cell.change is not None:
        relative = column.change == "percent"
        shown += f" ({cell.change} %)".replace("-", "−") if relative else f" {arrow(float(cell.change), cell.change)}"
    return shown + (" (?)" if cell.impossible else "")


def _from_counts(_: ColumnSpec, cell: ReportedCell) -> str:
    return NOTHING if cell.from_counts is None else cell.from_counts.replace("-", "−")


def _tokens_reported(_: ColumnSpec, cell: ReportedCell) -> str:
    return NOTHING if cell.tokens is None else f"{cell.tokens.value} M"


_REPORTED: Mapping[str, Callable[[ColumnSpec, ReportedCell], str]] = MappingProxyType(
    {"reported": _reported, "from_counts": _from_counts, "tokens_reported": _tokens_reported}
)


# --- measured ---------------------------------------------------------------------------------------------------------
def _measured(_: ColumnSpec, cell: MeasuredCell, mark: Callable[[str], str]) -> str:
    """ "66.67 [20.77, 93.85] n=3 +1 infra scripted ≠ (a)"; the interval of a total is that of the mean a task."""
    shown = [NOTHING]
    if cell.found is not None:
        decimals = cell.measure.decimals
        bounds = NOTHING if cell.bounds is None else ", ".join(number(bound, decimals) for bound in cell.bounds)
        if cell.measure.total:
            mean = number(cell.found.value * cell.measure.scale, decimals)
            shown = [f"{cell.value:,.{decimals}f}", f"({mean} a task [{bounds}],", f"n={cell.found.n})"]
        else:
            shown = [(cell.shown or NOTHING).replace("-", "−"), f"[{bounds}]", f"n={cell.found.n}"]
    if cell.infra_failures:
        shown.append(f"+{cell.infra_failures} infra")
    if any(run.status != "finished" for run in cell.runs):
        shown.append("incomplete")
    if any(run.scripted for run in cell.runs):
        shown.append("scripted")
    if cell.departures:
        shown.append(DEPARTS)
    return " ".join([*shown, mark(cell.facts)])


def _change(column: ColumnSpec, cell: MeasuredCell, _: Callable[[str], str]) -> str:
    found = cell.comparison
    if found is None or found.change is None:
        return NOTHING
    if column.change == "percent":
        shown = f"{found.change:+.1f} %".replace("-", "−")
    else:
        decimals = cell.measure.decimals
        shown = arrow(float(found.shown or 0), found.shown or NOTHING)
        bounds = (found.interval.low, found.interval.high) if found.interval else ()
        shown += f" [{', '.join(number(bound, decimals) for bound in bounds) or NOTHING}]"
    return f"{shown} pairs={found.pairs}"


def _test(_: ColumnSpec, cell: MeasuredCell, mark: Callable[[str], str]) -> str:
    found = cell.comparison
    if found is None or found.test is None or found.holm is None:
        return NOTHING
    graded = " perm." if isinstance(found.test, Permutation) else ""
    return f"{found.test.p:.3f} ({found.holm:.3f}){graded}"


def _tokens_measured(_: ColumnSpec, cell: MeasuredCell, mark: Callable[[str], str]) -> str:
    usage = cell.run.usage
    if usage is None:
        return NOTHING
    return integer(usage.total_tokens) + (" (est.)" if usage.estimated_calls else "")


_MEASURED: Mapping[str, Callable[[ColumnSpec, MeasuredCell, Callable[[str], str]], str]] = MappingProxyType(
    {"measured": _measured, "change": _change, "test": _test, "tokens_measured": _tokens_measured}
)


# --- notes and records ------------------------------------------------------------------------------------------------
def baselines(spec: TableSpec) -> str:
    """The rows that others are compared with, as in “No added memory”."""
    return ", ".join(dict.fromkeys(f"“{spec.row(row.baseline).label}”" for row in spec.rows if row.baseline))


def source_of(deltas: str) -> str:
    """What changes are differences of."""
    return "counts" if deltas == "counts" else "the displayed numbers"


def legend(spec: TableSpec, grid: Sequence[Sequence[PlaceLike]], deltas: str) -> list[str]:
    """The signs that the table uses, explained."""
    places = [place for row in grid for place in row]
    cells = [cell for place in places for cell in place.measured]
    found = []
    if any(place.reported.change is not None for place in places):
        found.append(f"Changes beside reported numbers: from {source_of(deltas)}, against {baselines(spec)}.")
    if not cells:
        return [*found, "– nothing was measured."]
    found.append("Measured: mean with its 95 % interval (Wilson for 0/1 scores, else bootstrap); – nothing was measured.")
    if any(cell.found is not None and cell.found.interval is None for cell in cells):
        found.append("[–] fewer than two values, or all alike: no interval can be drawn from them.")
    if any(run.usage is not None and run.usage.estimated_calls for cell in cells for run in cell.runs):
        found.append("(est.) tokens counted here or estimated, for some calls or all; see the footnote.")
    if any(cell.infra_failures for cell in cells):
        found.append("+k infra: tasks lost to infrastructure failures, not in n.")
    if any(cell.departures for cell in cells):
        found.append(f"{DEPARTS} not comparable with the reported number, for the reasons in the footnote.")
    if any(cell.comparison is not None for cell in cells):
        found.append(
            "Measured Δ: against the measured baseline on the tasks that both have (paired bootstrap interval);"
            " p: exact McNemar test on success, in brackets after Holm's adjustment over all that have that baseline."
        )
    if any(cell.comparison and isinstance(cell.comparison.test, Permutation) for cell in cells):
        found.append("perm.: graded scores, tested by a paired permutation test instead.")
    return found


def record(column: ColumnSpec, reported: ReportedCell, cell: MeasuredCell | None) -> dict[str, Any]:
    """One line of the CSV: the reported side, then the measured side (all None without a run)."""
    number_ = reported.number
    return {
        "metric": column.metric,
        "reported": reported.value,
        "reported_unit": reported.unit or None,
        "reported_k": number_.k if number_ else None,
        "reported_n": number_.n if number_ else None,
        "reported_possible": number_.possible if number_ and number_.n else None,
        "reported_change": reported.change,
        "reported_from_counts": reported.from_counts,
        "reported_tokens_million": reported.tokens.value if reported.tokens else None,
        "reported_source": f"{number_.paper} {number_.arxiv_id} {number_.source}".replace("  ", " ") if number_ else None,
        **_measured_record(cell),
    }


def _measured_record(cell: MeasuredCell | None) -> dict[str, Any]:
    found = cell.found if cell else None
    bounds = cell.bounds if cell else None
    comparison = cell.comparison if cell else None
    interval = comparison.interval if comparison else None
    run = cell.run if cell else None
    return {
        "measured": cell.value if cell else None,
        "measured_unit": cell.measure.unit if cell else None,
        "low": bounds[0] if bounds else None,
        "high": bounds[1] if bounds else None,
        "interval": found.interval.method if found and found.interval else None,
        "k": found.k if found else None,
        "n": found.n if found else None,
        "planned": run.planned if run else None,
        "total": run.total if run else None,
        "agent_failures": sum(task.kind == "agent_failure" for task in run.tasks) if run else None,
        "infra_failures": cell.infra_failures if cell else None,
        "change": comparison.change if comparison else None,
        "change_low": interval.low if interval else None,
        "change_high": interval.high if interval else None,
        "pairs": comparison.pairs if comparison else None,
        "p_mcnemar": comparison.test.p if comparison and isinstance(comparison.test, McNemar) else None,
        "p_holm": comparison.holm if comparison else None,
        "baseline_run": comparison.baseline.name if comparison else None,
        "tokens": run.usage.total_tokens if run and run.usage else None,
        "models": run.labels["models"] if run else None,
        "models_label": run.labels["models_label"] if run else None,
        "seed": run.seed if run else None,
        "variant": run.labels["variant"] if run else None,
        "scripted": run.scripted if run else None,
        "constrain_actions": run.constrained if run else None,
        "status": run.status if run else None,
        "comparable_with_reported": not cell.departures if cell else None,
        "p_permutation": comparison.test.p if comparison and isinstance(comparison.test, Permutation) else None,
        "measured_displayed": cell.shown if cell else None,
        "change_displayed": comparison.displayed if comparison else None,
        "notes": cell.facts if cell else None,
        "run": " ".join(one.name for one in cell.runs) if cell else None,
    }
