"""`memarena check-reported`: whether each number that a paper states as a share of n tasks can be one at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.report import definition
from harness.report.reported import Reported, files, load
from harness.report.text import columns, plural


def check(tables: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A record for each reported number of `tables`: files of results/reported/, with or without .csv, or tables of
    conf/table/, which name their files; none: all.

    `possible` is None where the number claims to be no count. Raises UserError for an unknown name.
    """
    names = [file for name in tables for file in _files(name)] or files()
    return [_record(name, number) for name in names for number in load(name)]


def _files(name: str) -> list[str]:
    if name in definition.names():
        return definition.define(name).reported
    return [name if name.endswith(".csv") else f"{name}.csv"]


def _record(name: str, number: Reported) -> dict[str, Any]:
    count = number.count
    return {
        "file": name,
        "paper": number.paper,
        "source": number.source,
        "cell": " ".join(filter(None, (number.host, number.method, number.variant, number.model, number.env, number.split))),
        "metric": number.metric,
        "value": number.value,
        "unit": number.unit,
        "n": number.n,
        "ks": list(count.ks) if count else [],
        "possible": count.possible if count else None,
        "explanation": count.explain() if count else f"no count: {number.note or 'the paper states none'}",
    }


def render(records: Sequence[Mapping[str, Any]], everything: bool = False) -> str:
    """A line a file, then the impossible numbers (`everything`: all numbers with what they can be)."""
    rows: list[tuple[str, ...]] = [("reported numbers", "all", "shares of n", "possible", "impossible")]
    for name in dict.fromkeys(record["file"] for record in records):
        held = [record for record in records if record["file"] == name]
        shares = [record for record in held if record["possible"] is not None]
        good = sum(record["possible"] for record in shares)
        rows.append((Path(name).stem, str(len(held)), str(len(shares)), str(good), str(len(shares) - good)))
    bad = [record for record in records if record["possible"] is False]
    shown = list(records) if everything else bad
    lines = [
        f"{_mark(record)} {Path(record['file']).stem}: {record['cell']}, {record['metric']}: {record['explanation']}"
        for record in shown
    ]
    verdict = f"{plural(len(bad), 'reported number')} cannot be a count." if bad else "Every reported share can be a count."
    return "\n".join([*columns(rows, right=frozenset({1, 2, 3, 4})), "", *lines, *([""] if lines else []), verdict])


def _mark(record: Mapping[str, Any]) -> str:
    return {True: "   ", False: "(?)", None: "  –"}[record["possible"]]
