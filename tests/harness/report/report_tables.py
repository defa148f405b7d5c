"""What the tests of tables share: a small table, and readers of what was built."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.report.tables import Table

Write = Callable[..., Path]
SMALL = """
title: Small & simple
head: [Host, Method]
reported: [sepm_table1.csv]
columns:
  - {label: ALFWorld, select: {env: alfworld}}
rows:
  - {id: none, group: AutoGen, label: No added memory, select: {host: autogen, method: none}}
  - {group: AutoGen, label: SEPM, select: {host: autogen, method: sepm}, baseline: none}
  - {group: DyLAN, label: SEPM, select: {host: dylan, method: sepm}}
notes: ["100 % data_driven."]
"""
DEMO: dict[str, Any] = {
    "environment__provenance": {"source": "generated"},
    "environment__max_steps": 10,
    "tasks__total": 134,
    "models__constrain_actions": True,
}


def rows_of(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def cells_of(table: Table) -> dict[tuple[str, str], str]:
    """(group and label of the row, flat heading) → text, of the first line of each row."""
    names = [head.label for head in table.heads].index("measured with")
    found: dict[tuple[str, str], str] = {}
    for line in table.lines:
        row = " ".join(line[:names])
        for head, cell in zip(table.heads, line, strict=True):
            found[row, head.flat] = cell
    return found
