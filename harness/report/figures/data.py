"""The numbers behind a figure: marks in panels, each with its value, interval and where it comes from."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path

from harness.report.cells import MeasuredCell
from harness.report.compact import is_scripted, with_label
from harness.report.compare import Measure
from harness.report.definition import ColumnSpec, RowSpec
from harness.report.figures.definition import FigureSpec, define_figure
from harness.report.measure import Run
from harness.report.rounding import half_up
from harness.report.statistics import blocks
from harness.report.tables import Collected, Place, collect
from harness.report.text import plural

REPORTED = "reported"
# More panels than these do not fit beside each other; `--models` chooses.
MOST_PANELS = 3


@dataclass(frozen=True)
class Mark:
    """One bar, point or block of a curve. `panel` is reported, or what was measured with; `series` is the row.

    `x` is a category's place, tokens in millions or a stream position; `value`, `low` and `high` are in display units;
    `shown` is the value as printed. `n` counts tasks, `runs` names what the value comes from.
    """

    panel: str
    series: str
    category: str
    x: float | None
    value: float
    shown: str
    low: float | None = None
    high: float | None = None
    n: int | None = None
    runs: str = ""
    comparable: bool | None = None


@dataclass(frozen=True)
class FigureData:
    """What is drawn. `panels` are in order, `series` in the order of the table's rows; `notes` belong into the caption."""

    name: str
    spec: FigureSpec
    panels: tuple[str, ...]
    series: tuple[str, ...]
    categories: tuple[str, ...]
    marks: tuple[Mark, ...]
    notes: tuple[str, ...]
    missing: str = ""

    def of(self, panel: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.panel == panel]

    def to_csv(self) -> str:
        """A line a mark."""
        out = io.StringIO()
        writer = csv.DictWriter(out, ["figure", *(field.name for field in fields(Mark))], lineterminator="\n")
        writer.writeheader()
        for mark in self.marks:
            writer.writerow({"figure": self.name, **{key: "" if value is None else value for key, value in asdict(mark).items()}})
        return out.getvalue()


def figure_data(figure: str, root: Path, *, env: str | None = None, models: str | None = None) -> FigureData:
    """The figure named `figure` (or the YAML at that path) over the runs below `root`. Raises UserError for unknown names."""
    spec = define_figure(figure)
    held = collect(spec.table, root, env=env, models=models, compared=False)
    chosen = [index for index, column in enumerate(held.columns) if not spec.columns or column.label in spec.columns]
    rows = [(row, places) for row, places in zip(held.spec.rows, held.grid, strict=True) if not row.combine]
    measured = _measured_panels(held, chosen)
    marks = list(_KINDS[spec.kind](spec, held, rows, chosen, measured[:MOST_PANELS]))
    drawn = {mark.panel for mark in marks}
    panels = [panel for panel in (REPORTED, *measured[:MOST_PANELS]) if panel in drawn]
    notes = [*(held.spec.notes if REPORTED in drawn else []), *spec.notes, *_told(held, chosen, drawn), *held.problems]
    if len(measured) > MOST_PANELS:
        notes.append(f"{plural(len(measured) - MOST_PANELS, 'more model set')} or seeds are not drawn: choose with --models.")
    notes += _repeated(held, chosen, drawn)
    series = tuple(dict.fromkeys(row.label for row, _ in rows if any(mark.series == row.label for mark in marks)))
    categories = tuple(dict.fromkeys(mark.category for mark in marks))
    missing = "" if any(panel != REPORTED for panel in panels) else _missing(spec, held, chosen)
    return FigureData(Path(figure).stem, spec, tuple(panels), series, categories, tuple(marks), tuple(notes), missing)


Rows = Sequence[tuple[RowSpec, Sequence[Place]]]


def _measured_panels(held: Collected, chosen: Sequence[int]) -> list[str]:
    """A panel a model set, seed and variant, those with most cells first; scripted ones only where there is no other."""
    cells = [cell for places in held.grid for index in chosen for cell in places[index].measured if cell.found]
    real = [cell for cell in cells if not is_scripted(cell)]
    counted = Counter(with_label(cell) for cell in real or cells)
    return sorted(counted, key=lambda label: (-counted[label], label))


def _cell(place: Place, panel: str) -> MeasuredCell | None:
    """The cell of a panel; of several runs the first by name."""
    fitting = [cell for cell in place.measured if cell.found and with_label(cell) == panel]
    return min(fitting, key=lambda cell: cell.run.name, default=None)


def _told(held: Collected, chosen: Sequence[int], panels: Iterable[str]) -> list[str]:
    """Why what is drawn as measured cannot be set against what is drawn as reported."""
    cells = [cell for places in held.grid for index in chosen for cell in places[index].measured if with_label(cell) in panels]
    facts = dict.fromkeys(fact for cell in cells for fact in cell.departures)
    failures = sum(cell.infra_failures for cell in cells)
    lost = [f"{plural(failures, 'infrastructure failure')} not in n."] if failures else []
    return [*([f"Measured is not comparable with reported: {'; '.join(facts)}."] if facts else []), *lost]


def _repeated(held: Collected, chosen: Sequence[int], panels: Iterable[str]) -> list[str]:
    """A panel draws one run a cell; where there are more, that is said."""
    cells = [
        sum(cell.found is not None and with_label(cell) == panel for cell in places[index].measured)
        for panel in panels
        for places in held.grid
        for index in chosen
    ]
    repeated = sum(count > 1 for count in cells)
    return [f"{plural(repeated, 'cell')} with several such runs: the first by name is drawn."] if repeated else []


def _missing(spec: FigureSpec, held: Collected, chosen: Sequence[int]) -> str:
    """Why there is no measured panel."""
    labels = [held.columns[index].label for index in chosen]
    there = [held.columns[index].label for index in chosen if any(places[index].measured for places in held.grid)]
    if spec.mean and there:
        return f"nothing measured: the mean takes {', '.join(labels)}; there is {', '.join(there)}"
    return "nothing measured"


# --- bars -------------------------------------------------------------------------------------------------------------
def _bars(spec: FigureSpec, held: Collected, rows: Rows, chosen: Sequence[int], panels: Sequence[str]) -> Iterable[Mark]:
    if spec.mean:
        yield from _means(held, rows, chosen, panels)
        return
    for index in chosen:
        column = held.columns[index]
        for row, places in rows:
            category = " ".join(filter(None, (row.group, column.label)))
            if reported := _reported(places[index], row, category):
                yield reported
            for panel in panels:
                if (cell := _cell(places[index], panel)) is not None:
                    yield _measured(cell, panel, row, category)


def _reported(place: Place, row: RowSpec, category: str, x: float | None = None) -> Mark | None:
    number = place.reported.number
    if number is None:
        return None
    return Mark(REPORTED, row.label, category, x, number.number, number.value, n=number.n, runs=f"{number.paper} {number.source}")


def _measured(cell: MeasuredCell, panel: str, row: RowSpec, category: str, x: float | None = None) -> Mark:
    assert cell.found is not None and cell.value is not None  # `_cell` took none without
    low, high = cell.bounds or (None, None)
    names = " ".join(run.name for run in cell.runs)
    shown = cell.shown or ""
    return Mark(panel, row.label, category, x, cell.value, shown, low, high, cell.found.n, names, not cell.departures)


def _means(held: Collected, rows: Rows, chosen: Sequence[int], panels: Sequence[str]) -> Iterable[Mark]:
    """SEPM-R41: unweighted means of displayed scores, only where every column has one."""
    for row, places in rows:
        numbers = [places[index].reported.number for index in chosen]
        values = [number.value for number in numbers if number is not None]
        if len(values) == len(chosen):
            sources = " ".join(dict.fromkeys(f"{number.paper} {number.source}" for number in numbers if number))
            shown = _mean(values)
            yield Mark(REPORTED, row.label, row.group, None, float(shown), shown, runs=sources)
        for panel in panels:
            cells = [cell for index in chosen if (cell := _cell(places[index], panel)) is not None]
            if len(cells) == len(chosen):
                yield _measured_mean(cells, panel, row)


def _mean(values: Sequence[str]) -> str:
    decimals = max(len(value.partition(".")[2]) for value in values)
    return half_up(sum(map(Fraction, values), Fraction(0)) / len(values), decimals)


def _measured_mean(cells: Sequence[MeasuredCell], panel: str, row: RowSpec) -> Mark:
    """With the interval that follows from those of its independent parts (MOVER; Zou and Donner 2008)."""
    shown = _mean([cell.shown or "0" for cell in cells])
    value = float(shown)
    low = high = None
    if all(cell.bounds for cell in cells):
        held = [(cell.value or 0.0, *(cell.bounds or (0.0, 0.0))) for cell in cells]
        low = value - math.sqrt(sum((mean - below) ** 2 for mean, below, _ in held)) / len(held)
        high = value + math.sqrt(sum((above - mean) ** 2 for mean, _, above in held)) / len(held)
    tasks = sum(cell.found.n for cell in cells if cell.found)
    names = " ".join(run.name for cell in cells for run in cell.runs)
    return Mark(panel, row.label, row.group, None, value, shown, low, high, tasks, names, not any(c.departures for c in cells))


# --- scatter ----------------------------------------------------------------------------------------------------------
def _scatter(spec: FigureSpec, held: Collected, rows: Rows, chosen: Sequence[int], panels: Sequence[str]) -> Iterable[Mark]:
    labels = [column.label for column in held.columns]
    across, up = labels.index(spec.x), labels.index(spec.y)
    for row, places in rows:
        number = places[across].reported.number
        mark = _reported(places[up], row, row.group, number.number if number else None)
        if mark and number:
            yield mark
        for panel in panels:
            x, y = _cell(places[across], panel), _cell(places[up], panel)
            if x and y and x.value is not None:
                yield _measured(y, panel, row, row.group, _in_millions(x.value, x.measure))


def _in_millions(value: float, measure: Measure) -> float:
    return value / 1e6 if measure.unit == "tokens" else value


# --- curves -----------------------------------------------------------------------------------------------------------
def _curves(spec: FigureSpec, held: Collected, rows: Rows, chosen: Sequence[int], panels: Sequence[str]) -> Iterable[Mark]:
    for panel in panels:
        for index in chosen:
            for row, places in rows:
                if (cell := _cell(places[index], panel)) is not None:
                    category = " ".join(filter(None, (row.group, held.columns[index].label)))
                    yield from _curve(cell.run, cell, held.columns[index], panel, row, category)


def _curve(run: Run, cell: MeasuredCell, column: ColumnSpec, panel: str, row: RowSpec, category: str) -> Iterable[Mark]:
    scale, decimals = cell.measure.scale, cell.measure.decimals
    for block in blocks(list(cell.measure.values(run).values()), run.seed, column.label):
        interval = block.interval
        yield Mark(
            panel,
            row.label,
            category,
            (block.first + block.last) / 2 + 1,
            block.mean * scale,
            half_up(Fraction(repr(block.mean * scale)), decimals),
            interval.low * scale if interval else None,
            interval.high * scale if interval else None,
            block.n,
            run.name,
            not cell.departures,
        )


_KINDS = {"bars": _bars, "scatter": _scatter, "curves": _curves}
