"""A table for a terminal and for a page: the same cells as the wide form in fewer columns, with what all runs share said once.

Nothing that a reader needs to trust a number is left out: n, interval, the mark ≠ with its reason, failures beside n.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from harness.report.cell_text import DEPARTS, PlaceLike, arrow, baselines, reported_part, source_of, used_parts
from harness.report.cells import MeasuredCell, group_lines
from harness.report.definition import ColumnSpec, RowSpec, TableSpec
from harness.report.render import Head, Sheet, latex_width, markdown_width
from harness.report.statistics import McNemar, Permutation
from harness.report.text import NOTHING, number, plural

# A sheet is not made wider than this if its columns can stand below each other instead.
WIDTH = 120
SHORT: Mapping[str, str] = MappingProxyType(
    {
        "reported": "reported",
        "from_counts": "reported (counts)",
        "measured": "measured",
        "change": "measured Δ",
        "test": "p (Holm)",
        "tokens_reported": "tokens rep.",
        "tokens_measured": "tokens meas.",
    }
)
# Facts that the cell says already: by its sign ~, by n, and by n=3/134.
SAID_BY_CELL = ("tokens of ", "all ", "incomplete: ")


@dataclass(frozen=True)
class Line:
    """One printed line: its row, the cells by column, and whether it is the row's first."""

    row: RowSpec
    places: Sequence[PlaceLike]
    cells: Mapping[int, MeasuredCell]
    first: bool


@dataclass(frozen=True)
class Compact:
    """A table's sheets for a terminal, those for a page, and the notes below either."""

    sheets: tuple[Sheet, ...]
    pages: tuple[Sheet, ...]
    notes: tuple[str, ...]


def compact(spec: TableSpec, columns: Sequence[ColumnSpec], grid: Sequence[Sequence[PlaceLike]], deltas: str) -> Compact:
    """The compact form of a table; `deltas` says what its changes are differences of."""
    lines, hidden = _lines(spec, grid)
    shown = [cell for line in lines for cell in line.cells.values()]
    marks = _Marks(shown, _alike(lines))
    labels = {with_label(cell) for cell in shown}
    writer = _Writer(spec, columns, lines, marks, len(labels) > 1)
    sheets, pages = writer.sheets(markdown_width), writer.sheets(latex_width)  # these use the letters that the notes explain
    notes = [*spec.notes, *_legend(spec, columns, lines, deltas), *marks.notes()]
    if hidden:
        notes.append(f"{plural(hidden, 'line')} of runs with scripted answers left out: --wide shows them, or --models.")
    flat = tuple(" ".join(note.split()) for note in notes)
    return Compact(tuple(sheets), tuple(pages), flat)


def _lines(spec: TableSpec, grid: Sequence[Sequence[PlaceLike]]) -> tuple[list[Line], int]:
    """All lines, without those of scripted runs where any other run is there; and how many were left out."""
    cells = [cell for places in grid for place in places for cell in place.measured]
    only = any(not is_scripted(cell) for cell in cells)
    found, hidden = [], 0
    for row, places in zip(spec.rows, grid, strict=True):
        held = group_lines({index: place.measured for index, place in enumerate(places)})
        kept = [by_column for _, by_column in held if not (only and any(map(is_scripted, by_column.values())))]
        hidden += len(held) - len(kept)
        if row.rest and not kept:
            continue
        found += [Line(row, places, by_column, number == 0) for number, by_column in enumerate(kept or [{}])]
    return found, hidden


def is_scripted(cell: MeasuredCell) -> bool:
    return any(run.scripted for run in cell.runs)


def with_label(cell: MeasuredCell) -> str:
    """ "gpt-5-mini s0": the model set's name and the seed, and in brackets what the configuration changes."""
    run = cell.run
    label = f"{run.labels['models']} s{run.seed}"
    if run.order != "official" and run.order not in run.labels["variant"]:
        label += f" {run.order}"
    if run.scripted and "scripted" not in label:
        label += " (scripted)"
    return label + (f" [{run.labels['variant']}]" if run.labels["variant"] and len(cell.runs) == 1 else "")


class _Marks:
    """What every run shares is said once; the rest of each cell's facts gets a letter, in the order of first use."""

    def __init__(self, cells: Sequence[MeasuredCell], alike: frozenset[int]) -> None:
        self.alike = alike
        held = [self._told(cell) for cell in cells]
        self.shared = [fact for fact in held[0] if all(fact in other for other in held)] if held else []
        self.texts: list[str] = []

    def letter(self, cell: MeasuredCell) -> str:
        text = "; ".join(fact for fact in self._told(cell) if fact not in self.shared)
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f" ({letter(self.texts.index(text))})"

    def _told(self, cell: MeasuredCell) -> list[str]:
        names = [f"run {run.name}" for run in cell.runs] if id(cell) in self.alike else []
        return [*names, *(fact for fact in cell.fact_list if not fact.startswith(SAID_BY_CELL))]

    def notes(self) -> list[str]:
        shared = [f"All measured: {'; '.join(self.shared)}."] if self.shared else []
        return shared + [f"({letter(index)}) {text}." for index, text in enumerate(self.texts)]


def _alike(lines: Sequence[Line]) -> frozenset[int]:
    """Cells (by id) that stand in one row and column under the same label: only their runs' names tell them apart."""
    held: dict[tuple[int, int, str], list[int]] = {}
    for line in lines:
        for index, cell in line.cells.items():
            held.setdefault((id(line.row), index, with_label(cell)), []).append(id(cell))
    return frozenset(cell for cells in held.values() if len(cells) > 1 for cell in cells)


def letter(index: int) -> str:
    """a … z, aa, ab, …"""
    more, last = divmod(index, 26)
    return (letter(more - 1) if more else "") + string.ascii_lowercase[last]


class _Writer:
    """Writes sheets of chosen columns."""

    def __init__(
        self, spec: TableSpec, columns: Sequence[ColumnSpec], lines: Sequence[Line], marks: _Marks, name_models: bool
    ) -> None:
        self.spec, self.columns, self.lines, self.marks, self.name_models = spec, columns, lines, marks, name_models
        self.used = [
            _without_empty(used_parts(column, [line.places[index] for line in lines]), index, lines)
            for index, column in enumerate(columns)
        ]

    def sheets(self, width: Callable[[Sheet], int]) -> list[Sheet]:
        """As many columns beside each other as the width holds, at least one."""
        found: list[Sheet] = []
        held: list[int] = []
        for index in range(len(self.columns)):
            wider = self.sheet([*held, index])
            if held and width(wider) > WIDTH:
                held = [index]
                found.append(self.sheet(held))
            else:
                held.append(index)
                found[-1:] = [wider]
        return found

    def sheet(self, indices: Sequence[int]) -> Sheet:
        title = self.columns[indices[0]].label if len(indices) == 1 else ""
        named = self.name_models and any(index in line.cells for line in self.lines for index in indices)
        heads = [Head("", self.spec.head[0])] if self.spec.head[0] else []
        heads += [Head("", self.spec.head[1]), *([Head("", "with")] if named else [])]
        heads += [Head("" if title else self.columns[index].label, SHORT[part]) for index in indices for part in self.used[index]]
        kept = [line for line in self.lines if line.first or any(index in line.cells for index in indices)]
        lines = tuple(self._line(line, indices, named) for line in kept)
        blocks = tuple(line.row.group for line in kept)
        return Sheet(title, tuple(heads), lines, blocks, self._best(kept, indices, len(heads)), bool(self.spec.head[0]))

    def _line(self, line: Line, indices: Sequence[int], named: bool) -> tuple[str, ...]:
        head = [line.row.group] if self.spec.head[0] else []
        head.append(line.row.label if line.first else "")
        if named:
            held = [line.cells[index] for index in indices if index in line.cells]
            head.append(with_label(held[0]) if held else NOTHING)
        values = [self._part(part, line, index) for index in indices for part in self.used[index]]
        return tuple(" ".join(cell.split()) for cell in (*head, *values))

    def _part(self, part: str, line: Line, index: int) -> str:
        if part not in _PARTS:
            return reported_part(part, self.columns[index], line.places[index].reported) if line.first else ""
        cell = line.cells.get(index)
        if cell is None:
            return NOTHING
        return _PARTS[part](self.columns[index], cell) + (self.marks.letter(cell) if part == "measured" else "")

    def _best(self, lines: Sequence[Line], indices: Sequence[int], width: int) -> frozenset[tuple[int, int]]:
        """Places of the highest score of a block and column: of the reported ones, and of the measured ones of one model."""
        found: set[tuple[int, int]] = set()
        place = width - sum(len(self.used[index]) for index in indices)
        for index in indices:
            for offset, part in enumerate(self.used[index]):
                if part in ("reported", "measured") and self.columns[index].bold:
                    found |= {(line, place + offset) for line in _highest(lines, index, part)}
            place += len(self.used[index])
        return frozenset(found)


def _without_empty(parts: Sequence[str], index: int, lines: Sequence[Line]) -> list[str]:
    """Tokens beside nothing measured say nothing here; `memarena table tokens` has them."""
    measured = any(index in line.cells for line in lines)
    return [part for part in parts if measured or part != "tokens_reported"]


def _highest(lines: Sequence[Line], index: int, part: str) -> list[int]:
    families: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for place, line in enumerate(lines):
        cell = line.cells.get(index)
        value = line.places[index].reported.value if part == "reported" else cell.shown if cell else None
        if value is None or line.row.combine or (part == "reported" and not line.first):
            continue
        model = with_label(cell) if part == "measured" and cell else ""
        families.setdefault((line.row.group, model), []).append((float(value), place))
    return [
        place
        for values in families.values()
        if len(values) > 1
        for value, place in values
        if value == max(values)[0] and value > min(values)[0]
    ]


# --- the measured parts -----------------------------------------------------------------------------------------------
def _bounds(low: float, high: float, decimals: int = 1) -> str:
    return f"[{number(low, decimals)}, {number(high, decimals)}]"


def _measured(_: ColumnSpec, cell: MeasuredCell) -> str:
    """ "66.67 [20.8, 93.9] n=3 +1 infra scripted ≠"; n=3/134 where tasks are still to be played."""
    shown = [NOTHING]
    if cell.found is not None:
        bounds = _bounds(*cell.bounds, 0 if cell.measure.total else 1) if cell.bounds else f"[{NOTHING}]"
        total = f"{tokens(cell.value or 0)} in all," if cell.measure.total else ""
        planned = "" if all(run.status == "finished" for run in cell.runs) else f"/{cell.run.planned}"
        mean = number(cell.found.value, 0) + " a task" if cell.measure.total else (cell.shown or NOTHING).replace("-", "−")
        shown = [*([total] if total else []), mean, bounds, f"n={cell.found.n}{planned}"]
    if cell.infra_failures:
        shown.append(f"+{cell.infra_failures} infra")
    if is_scripted(cell):
        shown.append("scripted")
    return " ".join([*shown, *([DEPARTS] if cell.departures else [])])


def _change(column: ColumnSpec, cell: MeasuredCell) -> str:
    found = cell.comparison
    if found is None or found.change is None:
        return NOTHING
    pairs = "" if cell.found and cell.found.n == found.pairs else f" ({found.pairs} pairs)"
    if column.change == "percent":
        return f"{found.change:+.1f} %".replace("-", "−") + pairs
    bounds = _bounds(found.interval.low, found.interval.high) if found.interval else f"[{NOTHING}]"
    return f"{arrow(float(found.shown or 0), found.shown or NOTHING)} {bounds}{pairs}"


def _test(_: ColumnSpec, cell: MeasuredCell) -> str:
    found = cell.comparison
    if found is None or found.holm is None:
        return NOTHING
    return f"{found.holm:.3f}" if found.holm >= 0.001 else "<0.001"


def tokens(value: float) -> str:
    """18,625 as 18.6 k and 5,200,000 as 5.20 M."""
    if value < 1_000:
        return f"{value:.0f}"
    return f"{value / 1e6:.2f} M" if value >= 1e6 else f"{value / 1e3:.1f} k"


def _tokens_measured(_: ColumnSpec, cell: MeasuredCell) -> str:
    usage = cell.run.usage
    return NOTHING if usage is None else tokens(usage.total_tokens) + (" ~" if usage.estimated_calls else "")


_PARTS: Mapping[str, Callable[[ColumnSpec, MeasuredCell], str]] = MappingProxyType(
    {"measured": _measured, "change": _change, "test": _test, "tokens_measured": _tokens_measured}
)


# --- notes ------------------------------------------------------------------------------------------------------------
def _legend(spec: TableSpec, columns: Sequence[ColumnSpec], lines: Sequence[Line], deltas: str) -> list[str]:
    cells = [cell for line in lines for cell in line.cells.values()]
    found = []
    if any(place.reported.change is not None for line in lines for place in line.places):
        found.append(f"arrows beside reported numbers: from {source_of(deltas)}, against {baselines(spec)}")
    if not cells:
        return [*_sentence([*found, f"{NOTHING} nothing was measured"]), *_impossible(columns, lines)]
    found.append("measured: mean [95 % interval] n")
    if any(cell.found is not None and cell.found.interval is None for cell in cells):
        found.append(f"[{NOTHING}] too few values, or all alike: no interval")
    if any(cell.infra_failures for cell in cells):
        found.append("+k infra: lost to infrastructure, not in n")
    if any(cell.comparison is not None for cell in cells):
        tests = {type(cell.comparison.test) for cell in cells if cell.comparison and cell.comparison.test}
        names = [name for kind, name in ((McNemar, "exact McNemar"), (Permutation, "paired permutation")) if kind in tests]
        after = f"; p: {' or '.join(names)} after Holm" if names else ""
        found.append(f"measured Δ: paired, to the measured baseline{after}")
    if any(cell.departures for cell in cells):
        found.append(f"{DEPARTS} not comparable with the reported number, see below")
    if any(run.usage and run.usage.estimated_calls for cell in cells for run in cell.runs):
        found.append("~ tokens not all stated by the provider")
    return [*_sentence(found), *_impossible(columns, lines)]


def _sentence(parts: Sequence[str]) -> list[str]:
    text = "; ".join(parts)
    return [f"{text[0].upper()}{text[1:]}."] if text else []


def _impossible(columns: Sequence[ColumnSpec], lines: Sequence[Line]) -> list[str]:
    return [
        f"(?) {line.row.label}, {column.label}: {place.reported.impossible}."
        for line in lines
        if line.first
        for column, place in zip(columns, line.places, strict=True)
        if place.reported.impossible
    ]
