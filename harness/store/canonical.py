"""The record of a run in one canonical text, to compare two runs byte for byte.

It holds results, ledger and the memory's own tables. Left out is what a clock measured and what was tried in vain: the
tables `timing` and `attempt`, and the ledger's latency.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from harness.store.schema import BESIDE_THE_RECORD


def lines(directory: Path) -> Iterator[str]:
    """One JSON line a row, tables in name order, rows in key order; blobs as hexadecimal."""
    path = directory / "stream.sqlite"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        for table in names:
            if table in BESIDE_THE_RECORD or table.startswith("sqlite_"):
                continue
            cursor = db.execute(f'SELECT * FROM "{table}"')
            columns = [item[0] for item in cursor.description]
            kept = [i for i, column in enumerate(columns) if (table, column) != ("ledger", "latency_s")]
            rows = [[_plain(row[i]) for i in kept] for row in cursor]
            for row in sorted(rows, key=lambda values: [(value is None, str(type(value)), value) for value in values]):
                yield json.dumps([table, dict(zip((columns[i] for i in kept), row, strict=True))], ensure_ascii=True)


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def digest(directory: Path) -> str:
    """sha256 over the canonical lines."""
    total = hashlib.sha256()
    for line in lines(directory):
        total.update(line.encode() + b"\n")
    return total.hexdigest()
