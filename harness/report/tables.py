"""`memarena table`: a paper's table with what was measured beside it.

A reported number stands in a column named reported, a measured one in a column named measured, and neither ever takes the
other's place. Every run that fits a cell has a line of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.registry import did_you_mean
from harness.report import cell_text as text
from harness.report.cells import MeasuredCell, ReportedCell, fitting_runs, group_lines, measured_cells, reported_cell
from harness.report.compact import compact, letter
from harness.report.compare import adjust, choose_baseline, compare, measure_named
from harness.report.definition import ColumnSpec, RowSpec, TableSpec, define, select_columns
from harness.report.measure import Run
from harness.report.render import Head, Table
from harness.store.view import find_runs

__all__ = ["Collected", "Place", "Table", "build", "collect"]


@dataclass
class Place:
    """One cell of the definition's grid, both sides."""

    reported: ReportedCell
    measured: list[MeasuredCell]


def build(table: str, root: Path, *, env: str | None = None, models: str | None = None, deltas: str = "displayed") -> Table:
    """The table named `table` (or the YAML at that path) over the runs below `root`.

    `env` keeps the columns of one environment, `models` the runs of one model set (its name or its label). `deltas` says what
    changes are differences of: displayed numbers, as in the papers, or counts before rounding.
    """
    held = collect(table, root, env=env, models=models, deltas=deltas)
    return _table(Path(table).stem, held, deltas)


@dataclass(frozen=True)
class Collected:
    """The cells of a table before any is printed: a row of the definition a line of `grid`, a column a place of it."""

    spec: TableSpec
    columns: Sequence[ColumnSpec]
    grid: Sequence[Sequence[Place]]
    problems: Sequence[str]


def collect(
    table: str,
    root: Path,
    *,
    env: str | None = None,
    models: str | None = None,
    deltas: str = "displayed",
    compared: bool = True,
) -> Collected:
    """What `build` prints, as cells; without comparisons, which take their time, if not `compared`.

    Raises UserError for unknown names.
    """
    spec = define(table)
    columns = select_columns(spec, env)
    runs, problems = _read(root)
    if models is not None:
        sets = sorted({run.labels["models"] for run in runs})
        runs = [run for run in runs if models in (run.labels["models"], run.labels["models_label"])]
        problems += (
            [] if runs else [f"No run below {root} has the model set {models!r}. {did_you_mean(models, sets) if sets else ''}"]
        )
    grid = _grid(spec, columns, runs, deltas)
    problems += _without_a_row(columns, grid, runs)
    for index, column in enumerate(columns if compared else []):
        _compare(spec, column, [place[index] for place in grid], runs, deltas)
    return Collected(spec, columns, grid, problems)


def _read(root: Path) -> tuple[list[Run], list[str]]:
    """The runs that can be read, by name, and a line for each that cannot."""
    runs, problems = [], []
    for view in find_runs(root):
        try:
            run = Run(view)
            _ = run.tasks, run.infra_failures
            runs.append(run)
        except (UserError, ValueError, AssertionError, OSError, sqlite3.Error) as error:
            problems.append(f"Left out, unreadable: {view.directory} ({error}).")
    return sorted(runs, key=lambda run: (run.name, str(run.view.directory))), problems


def _grid(spec: TableSpec, columns: Sequence[ColumnSpec], runs: Sequence[Run], deltas: str) -> list[list[Place]]:
    numbers = spec.numbers()
    measures = [measure_named(column.measure) for column in columns]
    grid = []
    for row in spec.rows:
        places = []
        for column, measure in zip(columns, measures, strict=True):
            reported = reported_cell(spec, numbers, row, column, deltas)
            cells = measured_cells(spec, runs, row, column, measure, deltas)
            for cell in cells:
                cell.reported_n = reported.tasks
            places.append(Place(reported, cells))
        grid.append(places)
    return grid


def _without_a_row(columns: Sequence[ColumnSpec], grid: Sequence[Sequence[Place]], runs: Sequence[Run]) -> list[str]:
    """A line that counts the runs in these columns' environments which no row asks for: they must not vanish silently."""
    placed = {id(cell.run) for places in grid for place in places for cell in place.measured}
    environments = {column.select.get("env") for column in columns}
    methods = sorted({run.labels["method"] for run in runs if id(run) not in placed and run.labels["env"] in environments})
    if not methods:
        return []
    return [f"There are runs that fit no row here ({', '.join(methods)}); docs/reports.md tells how to make a table of your own."]


def _compare(spec: TableSpec, column: ColumnSpec, places: Sequence[Place], runs: Sequence[Run], deltas: str) -> None:
    """Fill in the comparisons of one column; Holm's family are the cells with the same baseline run."""
    families: dict[int, list[MeasuredCell]] = {}
    for row, place in zip(spec.rows, places, strict=True):
        if row.baseline is None:
            continue
        candidates = fitting_runs(spec, runs, spec.row(row.baseline), column)
        for cell in place.measured:
            baseline, remark = choose_baseline(cell.run, candidates)
            cell.remarks += [remark] if remark else []
            if baseline is not None and cell.found is not None:
                cell.comparison = compare(cell.run, baseline, cell.measure, column.change == "percent", deltas)
                families.setdefault(id(baseline), []).append(cell)
    for family in families.values():
        adjusted = adjust([cell.comparison for cell in family if cell.comparison is not None])
        for cell, comparison in zip(family, adjusted, strict=True):
            cell.comparison = comparison


class _Footnotes:
    """Letters for texts, in the order of first use; the same text keeps its letter."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, note: str) -> str:
        if note not in self.texts:
            self.texts.append(note)
        return f"({letter(self.texts.index(note))})"

    def lines(self) -> list[str]:
        return [f"({letter(index)}) {note}." for index, note in enumerate(self.texts)]


def _table(name: str, held: Collected, deltas: str) -> Table:
    spec, columns, grid = held.spec, held.columns, held.grid
    footnotes = _Footnotes()
    used = [text.used_parts(column, [places[index] for places in grid]) for index, column in enumerate(columns)]
    any_group = bool(spec.head[0])
    heads = [Head("", spec.head[0])] if any_group else []
    heads += [Head("", spec.head[1]), Head("", "measured with")]
    heads += [Head(column.label, text.LABELS[part]) for column, parts in zip(columns, used, strict=True) for part in parts]
    lines, blocks, records = [], [], []
    for row, places in zip(spec.rows, grid, strict=True):
        found = group_lines({index: place.measured for index, place in enumerate(places)})
        if row.rest and not found:
            continue
        for number, (label, cells) in enumerate(found or [("–", {})]):
            first = number == 0
            lines.append(
                (
                    *((row.group if first else "",) if any_group else ()),
                    row.label if first else "",
                    label,
                    *(
                        text.part(part, columns[index], place.reported, cells.get(index), first, footnotes.mark)
                        for index, place in enumerate(places)
                        for part in used[index]
                    ),
                )
            )
            blocks.append(row.group)
        records += _records(name, row, columns, places)
    notes = [*spec.notes, *text.legend(spec, grid, deltas), *footnotes.lines(), *_impossible(spec, columns, grid), *held.problems]
    flat = tuple(tuple(_one_line(cell) for cell in line) for line in lines)
    brief = compact(spec, columns, grid, deltas)
    ending = tuple(map(_one_line, held.problems))
    told = tuple(map(_one_line, notes))
    return Table(
        name,
        spec.title,
        tuple(heads),
        flat,
        tuple(blocks),
        told,
        tuple(records),
        brief.sheets,
        brief.pages,
        (*brief.notes, *ending),
    )


def _one_line(cell: str) -> str:
    """Labels and error messages come from outside: a line break in one must not break the table."""
    return " ".join(cell.split())


def _impossible(spec: TableSpec, columns: Sequence[ColumnSpec], grid: Sequence[Sequence[Place]]) -> list[str]:
    """A note for every reported number that cannot be a count."""
    return [
        f"(?) {row.label}, {column.label}: {place.reported.impossible}."
        for row, places in zip(spec.rows, grid, strict=True)
        for column, place in zip(columns, places, strict=True)
        if place.reported.impossible
    ]


def _records(name: str, row: RowSpec, columns: Sequence[ColumnSpec], places: Sequence[Place]) -> list[dict[str, Any]]:
    head = {"table": name, "group": row.group, "row": row.label}
    return [
        {**head, "column": column.label, **text.record(column, place.reported, cell)}
        for column, place in zip(columns, places, strict=True)
        for cell in _or_none(place.measured)
    ]


def _or_none(cells: Sequence[MeasuredCell]) -> Sequence[MeasuredCell | None]:
    """The cells; one None where there are none, so that a reported number keeps its record."""
    return cells or [None]
