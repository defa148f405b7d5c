"""The estimate of a sweep: a line a cell, and what of it is known. An unknown figure is None, never 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.cell import Cell
from harness.compose import Point
from harness.contracts import Usage
from harness.errors import SetupError
from harness.models.prices import PriceBook
from harness.plan.prices import free, listed_prices, price_of
from harness.plan.rates import Rate, Sources
from harness.run import directory_of
from harness.store import manifest
from harness.store.view import RunView


@dataclass(frozen=True)
class Line:
    """One cell. `tasks` are those that are left of `wanted`; tokens are all that is billed, judges included.

    `usd` is (least, most), in dollars: the two differ where only a total of tokens is known, since output costs more than
    input. `hours` is the time of the stream by itself. Each is None where it is not known. `source` says where tokens and calls
    come from, `notes` what else must be known.
    """

    cell: str
    host: str
    method: str
    env: str
    models: str
    wanted: int | None
    tasks: int | None
    calls: float | None = None
    tokens: float | None = None
    usd: tuple[float, float] | None = None
    hours: float | None = None
    source: str = "unknown: no run and no reported number tells"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All cells, and the price file that was used."""

    lines: tuple[Line, ...]
    prices: str

    def total(self, name: str) -> float | None:
        """The sum of `tasks`, `calls`, `tokens` or `hours` over the cells where it is known; None where it is nowhere."""
        known = [value for line in self.lines if (value := getattr(line, name)) is not None]
        return math.fsum(known) if known else None

    @property
    def usd(self) -> tuple[float, float] | None:
        known = [line.usd for line in self.lines if line.usd is not None]
        return (math.fsum(low for low, _ in known), math.fsum(high for _, high in known)) if known else None

    def unknown(self, name: str) -> int:
        """For how many cells this figure is not known."""
        return sum(getattr(line, name) is None for line in self.lines)


def plan(points: Sequence[Point], roots: Sequence[Path]) -> Plan:
    """Estimate every point from the runs below `roots` and below its own root. Spends nothing, needs neither key nor data.

    Raises ConfigError for a configuration that is wrong.
    """
    cells = [Cell.build(*point) for point in points]
    return plan_cells(cells, roots)


def plan_cells(cells: Sequence[Cell], roots: Sequence[Path] = ()) -> Plan:
    sources = Sources([*roots, *(Path(cell.config.run.root) for cell in cells)])
    prices = PriceBook.load()
    return Plan(tuple(_line(cell, sources, prices) for cell in cells), prices.name)


def _line(cell: Cell, sources: Sources, prices: PriceBook) -> Line:
    config = cell.config
    directory = directory_of(cell)
    notes: list[str] = []
    wanted = _wanted(cell, sources, notes)
    identity, done, spent = _state(cell, directory, wanted, notes)
    left = None if wanted is None else max(0, wanted - done)
    line = Line(directory.name, *_place(cell), wanted, left)
    if left == 0:
        return replace(line, calls=0, tokens=0, usd=(0.0, 0.0), hours=0, source="finished")
    if done:
        notes.append(f"{done} of {wanted} tasks have a result")
    rate = sources.rate(config, identity)
    if rate is None or left is None:
        return replace(line, usd=(0.0, 0.0) if free(cell, prices) else None, notes=tuple(notes))
    usd = _dollars(cell, rate, left, prices, spent, notes)
    return replace(
        line,
        calls=None if rate.calls is None else rate.calls * left,
        tokens=rate.tokens * left,
        usd=usd,
        hours=None if rate.seconds is None else rate.seconds * left / 3600,
        source=rate.source,
        notes=tuple(notes),
    )


def _place(cell: Cell) -> tuple[str, str, str, str]:
    choices = cell.config.choices
    return choices["host"], choices["method"], choices["env"], choices["models"]


def _wanted(cell: Cell, sources: Sources, notes: list[str]) -> int | None:
    """How many tasks are asked for; where the data is not here, as many as the papers' scores are about."""
    try:
        return len(cell.tasks)
    except SetupError as error:
        told = sources.reported_tasks(cell.environment.name)
        asked = cell.config.run.tasks
        notes.append(
            f"its data is not here ({error.message.rstrip('.')})" + ("" if told is None else f"; {told} tasks as reported")
        )
        return min(asked, told) if asked and told else asked or told


def _state(cell: Cell, directory: Path, wanted: int | None, notes: list[str]) -> tuple[str | None, int, float]:
    """The identity, how many of the wanted tasks have a result, and the dollars that the stream has spent."""
    try:
        identity = cell.identity
    except SetupError:
        identity = None
    found = manifest.read(directory)
    if found is None:
        return identity, 0, 0.0
    if identity is not None and found["identity"] != identity:
        notes.append(f"{directory.name} holds another cell and would be refused (memarena diff)")
        return identity, 0, 0.0
    view = RunView(directory)
    done = sum(wanted is None or row.position < wanted for row in view.tasks())
    return found["identity"], done, math.fsum(attempt["cost_usd"] or 0.0 for attempt in view.attempts())


def _dollars(cell: Cell, rate: Rate, tasks: int, prices: PriceBook, spent: float, notes: list[str]) -> tuple[float, float] | None:
    if free(cell, prices):
        return (0.0, 0.0)
    if rate.by_key is None:
        listed = listed_prices(cell, prices)
        known = [price for price in listed if price is not None]
        if len(known) < len(listed):
            notes.append(_unpriced(cell, prices))
            return None
        least, most = min(price.input for price in known), max(price.output for price in known)
        notes.append("only a total of tokens is known: cost from all input to all output")
        return _capped(cell, (rate.tokens * tasks * least / 1e6, rate.tokens * tasks * most / 1e6), spent, notes)
    total = 0.0
    for key, use in rate.by_key.items():
        price = price_of(cell, prices, key)
        if price is None:
            notes.append(_unpriced(cell, prices))
            return None
        all_of_it = use.times(tasks)
        total += price.cost(Usage(round(all_of_it.input), round(all_of_it.output), round(all_of_it.cached)))
    return _capped(cell, (total, total), spent, notes)


def _unpriced(cell: Cell, prices: PriceBook) -> str:
    models = sorted({endpoint.model for endpoint in cell.config.models.endpoints.values() if prices.find(endpoint.model) is None})
    return f"no price is known for {', '.join(models)}"


def _capped(cell: Cell, usd: tuple[float, float], spent: float, notes: list[str]) -> tuple[float, float]:
    """A limit of the stream bounds what it can still spend."""
    limit = cell.config.run.limits.stream.usd
    if limit is None or usd[1] <= limit - spent:
        return usd
    notes.append(f"run.limits.stream.usd={limit:g} stops it before its end")
    left = max(0.0, limit - spent)
    return min(usd[0], left), left


def as_data(found: Plan) -> dict[str, Any]:
    """For a program: the lines as they are, and the sums of what is known with the number of cells where it is not."""
    names = ("tasks", "calls", "tokens", "hours")
    total: dict[str, Any] = {name: found.total(name) for name in names}
    total |= {"usd": found.usd, "unknown": {name: found.unknown(name) for name in (*names, "usd")}}
    return {"prices": found.prices, "cells": [asdict(line) for line in found.lines], "total": total}
