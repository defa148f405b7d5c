"""The tables of a stream's SQLite file, and the rows that the harness writes there.

`task` and `ledger` together with the memory's own tables are the *record* of the run: they are written in one transaction
when a task ends. `attempt` and `timing` stand beside it (what was tried, how long it took) and differ between two runs of
the same cell; `run` is bookkeeping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from harness.models.ledger import LedgerRow

SCHEMA_VERSION = 1

TaskKind = Literal["scored", "agent_failure"]
AttemptKind = Literal["committed", "infra_failure", "aborted", "stopped"]

# Tables that are not part of the record (see `harness.store.canonical`).
BESIDE_THE_RECORD = frozenset({"run", "attempt", "timing"})


@dataclass(frozen=True)
class TaskRow:
    """The result of one task. `score` is in [0, 1]; `steps` counts environment steps; `late` says that the task was played
    after later ones, because its earlier attempts had failed for reasons of infrastructure.
    """

    position: int
    task_index: int
    task_id: str
    family: str
    task_group: str | None
    seed: int
    kind: TaskKind
    score: float
    success: bool
    status: str
    steps: int
    feedback: str
    metrics: Mapping[str, Any]
    error: str | None
    late: bool


@dataclass(frozen=True)
class Spending:
    """What an attempt cost. `calls` counts ledger rows, `answered` those that carry usage (and count against limits);
    `cost_usd` is None as soon as one answered call has no known price; `steps` are environment steps, `seconds` wall time (0
    for an attempt whose process died: nobody measured it).
    """

    calls: int
    answered: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    steps: int
    seconds: float


_TYPES = {"int": "INTEGER", "bool": "INTEGER", "float": "REAL"}


def _columns(row: type) -> str:
    """SQL column definitions of a row dataclass, so that table and type cannot drift apart."""
    parts = []
    for field in fields(row):
        base = str(field.type).split("|")[0].strip()
        nullable = "None" in str(field.type)
        parts.append(f"{field.name} {_TYPES.get(base, 'TEXT')}{'' if nullable else ' NOT NULL'}")
    return ", ".join(parts)


def statements() -> tuple[str, ...]:
    """The CREATE statements of a new stream file."""
    return (
        "CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        f"CREATE TABLE task ({_columns(TaskRow)}, PRIMARY KEY (position))",
        f"CREATE TABLE ledger (id INTEGER PRIMARY KEY, {_columns(LedgerRow)})",
        "CREATE INDEX ledger_digest ON ledger (digest, ok)",
        f"CREATE TABLE attempt (position INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, error TEXT,"
        f" {_columns(Spending)}, PRIMARY KEY (position, number))",
        "CREATE TABLE timing (position INTEGER PRIMARY KEY, seconds REAL NOT NULL, cpu_seconds REAL NOT NULL)",
    )


def insert_statement(table: str, row: type) -> str:
    """A named-parameter INSERT for a row dataclass."""
    names = [field.name for field in fields(row)]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"
