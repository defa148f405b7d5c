"""The two sides of a table's cell, kept apart: what a paper reported, and what runs measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from harness.report.compare import Comparison, Measure, obstacles
from harness.report.definition import ColumnSpec, RowSpec, TableSpec, find_reported, matches, run_selection
from harness.report.measure import Estimate, Run, estimate
from harness.report.reported import SCALES, Reported
from harness.report.rounding import displayed_mean, exact_mean, half_up
from harness.report.statistics import bootstrap


# --- reported ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ReportedCell:
    """A paper's number as displayed. `change` is computed from displayed numbers, as the papers do (SEPM-R39);
    `from_counts` is the same number computed from k of n; `tokens` is the total that belongs to it.
    """

    number: Reported | None = None
    value: str | None = None
    unit: str = ""
    change: str | None = None
    from_counts: str | None = None
    tokens: Reported | None = None
    tasks: int | None = None  # how many tasks the number is about, where it or the score beside it is a share of them

    @property
    def impossible(self) -> str:
        """Why the number is no count of its n; empty where it is one, or claims no such thing."""
        return self.number.count.explain() if self.number and self.number.count and not self.number.possible else ""


def reported_cell(
    spec: TableSpec, numbers: Sequence[Reported], row: RowSpec, column: ColumnSpec, deltas: str = "displayed"
) -> ReportedCell:
    """The paper's side of one cell; `deltas` says whether its change is of displayed numbers or of counts."""
    if row.combine:
        return _combined(spec, numbers, row, column)
    number = find_reported(numbers, row, column, column.metric)
    tokens = find_reported(numbers, row, column, "tokens") if column.tokens else None
    score = find_reported(numbers, row, column, "score")  # SEPM-R42: a total belongs to the score of the same run
    if number is None:
        return ReportedCell(tokens=tokens)
    before = find_reported(numbers, spec.row(row.baseline), column, column.metric) if row.baseline else None
    change = None if before is None else _change(number, before, column.change == "percent", deltas == "counts")
    return ReportedCell(number, number.value, number.unit, change, None, tokens, number.n or (score.n if score else None))


def _change(number: Reported, before: Reported, relative: bool, counts: bool) -> str:
    if relative:
        return f"{float(Fraction(number.value) / Fraction(before.value) - 1) * 100:+.1f}"
    if counts and None not in (number.k, before.k) and number.n and before.n:
        exact = Fraction(number.k or 0, number.n) - Fraction(before.k or 0, before.n)
        return half_up(exact * SCALES[number.unit], number.decimals)
    return str(Decimal(number.value) - Decimal(before.value))


def _combined(spec: TableSpec, numbers: Sequence[Reported], row: RowSpec, column: ColumnSpec) -> ReportedCell:
    parts = {name: find_reported(numbers, spec.row(name), column, column.metric) for name in row.combine}
    own = find_reported(numbers, row, column, "change")
    held = [(row.combine[name], part) for name, part in parts.items() if part is not None]
    if len(held) < len(parts):
        return ReportedCell(own, own.value if own else None, "pp")
    shown = sum((Decimal(str(factor)) * Decimal(part.value) for factor, part in held), Decimal(0))
    decimals = max(part.decimals for _, part in held)
    counts = None
    if all(part.k is not None and part.n for _, part in held):
        exact = sum(
            (Fraction(str(factor)) * Fraction(part.k or 0, part.n or 1) * SCALES[part.unit] for factor, part in held), Fraction(0)
        )
        counts = half_up(exact, decimals)
    tasks = {part.n for _, part in held}
    value = own.value if own else f"{shown:.{decimals}f}"
    return ReportedCell(own, value, "pp", None, counts, None, tasks.pop() if len(tasks) == 1 else None)


# --- measured ---------------------------------------------------------------------------------------------------------
@dataclass
class MeasuredCell:
    """What one run (of a combining row: one run a part) measured, in display units. `value` is None without a result.

    `shown` is the value as the papers display theirs; that of a combining row is the sum of its parts' displayed values
    (with deltas from counts: of the parts). `reported_n` is the number of tasks behind the paper's number beside it, where that
    is known.
    """

    runs: tuple[Run, ...]
    measure: Measure
    found: Estimate | None
    line: str
    shown: str | None = None
    reported_n: int | None = None
    comparison: Comparison | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def run(self) -> Run:
        return self.runs[0]

    @property
    def value(self) -> float | None:
        if self.found is None:
            return None
        return self.found.value * self.measure.scale * (self.found.n if self.measure.total else 1)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The 95 % interval: of the value, or of the mean a task where the value is a total."""
        if self.found is None or self.found.interval is None:
            return None
        return self.found.interval.low * self.measure.scale, self.found.interval.high * self.measure.scale

    @property
    def departures(self) -> list[str]:
        """Why the value cannot be set against the paper's."""
        found = [reason for run in self.runs for reason in run.departures()]
        if self.reported_n is not None:
            # the data at hand may be official and yet not all of it
            found += [f"the paper has {self.reported_n} tasks" for run in self.runs if run.total != self.reported_n]
        return list(dict.fromkeys(found))

    @property
    def infra_failures(self) -> int:
        return sum(len(run.infra_failures) for run in self.runs)

    @property
    def facts(self) -> str:
        """The footnote."""
        return "; ".join(self.fact_list)

    @property
    def fact_list(self) -> list[str]:
        """Which model, which tasks, and everything that a reader must know before comparing."""
        first = self.run
        tasks = [f"all {first.total} tasks"] if first.planned == first.total else []
        known = [first.labels["models_label"], f"seed {first.seed}", *tasks, *self.departures]
        caveats = [caveat for run in self.runs for caveat in run.caveats()]
        return list(dict.fromkeys([*known, *caveats, *self.remarks]))


def line_label(run: Run, variant: bool = True) -> str:
    """Which line of its row a run stands in: model set, seed, and what its configuration changes."""
    label = f"{run.labels['models_label']}, seed {run.seed}"
    if run.scripted and "scripted" not in label.lower():
        label += " (scripted)"
    return f"{label} [{run.labels['variant']}]" if variant and run.labels["variant"] else label


def measured_cells(
    spec: TableSpec, runs: Sequence[Run], row: RowSpec, column: ColumnSpec, measure: Measure, deltas: str = "displayed"
) -> list[MeasuredCell]:
    """One cell a run that fits; nothing is averaged over runs."""
    if row.combine:
        return _measured_combination(spec, runs, row, column, measure, deltas)
    return [_measured_cell(run, measure) for run in fitting_runs(spec, runs, row, column)]


def fitting_runs(spec: TableSpec, runs: Sequence[Run], row: RowSpec, column: ColumnSpec) -> list[Run]:
    """The runs of one cell; for a `rest` row those that no other row of the column takes."""
    found = [run for run in runs if matches(run, run_selection(row, column))]
    if row.rest:
        others = [run_selection(other, column) for other in spec.rows if not other.rest and not other.combine]
        found = [run for run in found if not any(matches(run, selection) for selection in others)]
    return found


def _measured_cell(run: Run, measure: Measure) -> MeasuredCell:
    values = list(measure.values(run).values())
    shown = displayed_mean(values, measure.scale, measure.decimals) if values else None
    return MeasuredCell((run,), measure, estimate(values, run.seed, "score"), line_label(run), shown)


def _measured_combination(
    spec: TableSpec, runs: Sequence[Run], row: RowSpec, column: ColumnSpec, measure: Measure, deltas: str
) -> list[MeasuredCell]:
    """Every choice of one run a part whose cells differ in the method only, summed task by task over the common tasks."""
    choices = [fitting_runs(spec, runs, spec.row(name), column) for name in row.combine]
    factors = list(row.combine.values())
    found = []
    for chosen in itertools.product(*choices):
        if any(obstacles(run, chosen[0]) for run in chosen[1:]):
            continue
        values = [measure.values(run) for run in chosen]
        common = [task for task in values[0] if all(task in other for other in values[1:])]
        sums = [math.fsum(factor * side[task] for factor, side in zip(factors, values, strict=True)) for task in common]
        interval = bootstrap(sums, chosen[0].seed, "combine")
        total = Estimate(math.fsum(sums) / len(sums), len(sums), None, interval) if sums else None
        parts = [(factor, [side[task] for task in common]) for factor, side in zip(factors, values, strict=True)]
        shown = _displayed_sum(parts, measure, deltas) if common else None
        cell = MeasuredCell(chosen, measure, total, line_label(chosen[0], variant=False), shown)
        cell.remarks.append(f"from the runs {', '.join(run.name for run in chosen)} on their {len(common)} common tasks")
        found.append(cell)
    return found


def _displayed_sum(parts: Sequence[tuple[float, list[float]]], measure: Measure, deltas: str) -> str:
    """The sum of factor × mean: of displayed means as the papers do, or from the exact ones."""
    scale = Fraction(repr(measure.scale))
    if deltas == "displayed":
        shown = [(Decimal(repr(factor)), displayed_mean(values, measure.scale, measure.decimals)) for factor, values in parts]
        return half_up(Fraction(sum((factor * Decimal(mean) for factor, mean in shown), Decimal(0))), measure.decimals)
    exact = sum((Fraction(repr(factor)) * exact_mean(values) * scale for factor, values in parts), Fraction(0))
    return half_up(exact, measure.decimals)


def group_lines(cells: Mapping[int, Sequence[MeasuredCell]]) -> list[tuple[str, dict[int, MeasuredCell]]]:
    """Cells of one row, column by column, as lines: one a model set, seed and variant, more where a column has several."""
    lines: dict[tuple[str, int], dict[int, MeasuredCell]] = {}
    for column, held in cells.items():
        seen: dict[str, int] = {}
        for cell in sorted(held, key=lambda one: (bool(one.run.scripted), one.line, [run.name for run in one.runs])):
            repeat = seen[cell.line] = seen.get(cell.line, -1) + 1
            lines.setdefault((cell.line, repeat), {})[column] = cell
    order = sorted(lines, key=lambda key: (any(bool(cell.run.scripted) for cell in lines[key].values()), key))
    return [(label, lines[label, repeat]) for label, repeat in order]
