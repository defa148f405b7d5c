"""Tasks, steps and calls as three tables over all exported runs. Columns are added at the end, never renamed or removed.

An unknown value is empty in CSV and null in Parquet; a score of an infrastructure failure is one: there is none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from harness.archive.recorded import committed_attempts
from harness.errors import SetupError
from harness.models.ledger import LedgerRow
from harness.report.measure import Run
from harness.store.events import read_events

Row = Mapping[str, Any]
BATCH = 5000  # rows that Parquet groups: a row of calls has about 300 bytes

_RUN = {"run": str, "host": str, "method": str, "env": str, "models": str, "variant": str, "run_seed": int}
_USAGE = {
    "calls": int, "input_tokens": int, "cached_input_tokens": int, "output_tokens": int, "reasoning_tokens": int,
    "cost_usd": float,
}  # fmt: skip
TASKS: Mapping[str, type] = {
    **_RUN, "position": int, "task_index": int, "task_id": str, "family": str, "task_group": str, "task_seed": int,
    "kind": str, "score": float, "success": bool, "status": str, "steps": int, "late": bool, "error": str, "feedback": str,
    "metrics": str, **_USAGE, "seconds": float, "attempts": int,
}  # fmt: skip
STEPS: Mapping[str, type] = {
    "run": str, "position": int, "task_id": str, "step": int, "agent": str, "action": str, "observation": str, "reward": float,
    "done": bool, "error": str,
}  # fmt: skip
_KINDS = {"int": int, "float": float, "bool": bool}
CALLS: Mapping[str, type] = {
    "run": str,
    **{item.name: _KINDS.get(str(item.type).split("|")[0].strip(), str) for item in fields(LedgerRow)},
}


class Writer(Protocol):
    def write(self, row: Row) -> None: ...


def write_tables(runs: Sequence[Run], folder: Path, format: str) -> dict[str, int]:
    """`tasks`, `steps` and `calls` in `folder`; the names of the files and their numbers of rows."""
    counts = {}
    for name, columns, rows in (("tasks", TASKS, _tasks), ("steps", STEPS, _steps), ("calls", CALLS, _calls)):
        file, count = f"{name}.{format}", 0
        with _open(folder / file, columns, format) as table:
            for run in runs:
                for row in rows(run):
                    table.write(row)
                    count += 1
        counts[file] = count
    return counts


# --- rows ---------------------------------------------------------------------------------------------------------------
def _tasks(run: Run) -> Iterator[Row]:
    usage = {row.group[0]: row for row in run.view.usage("position", method_only=True)}
    attempts: dict[int, int] = {}
    for attempt in run.view.attempts():
        attempts[attempt["position"]] = attempts.get(attempt["position"], 0) + 1
    seconds, labels = run.view.seconds_by_position(), _labels(run)
    for task in run.tasks:
        used = usage.get(task.position)
        yield {
            **labels,
            **{name: getattr(task, name) for name in TASKS if hasattr(task, name)},
            "task_seed": task.seed,
            "metrics": json.dumps(dict(task.metrics), sort_keys=True, ensure_ascii=False),
            **({name: getattr(used, name) for name in _USAGE} if used else dict.fromkeys(_USAGE, 0)),
            "seconds": seconds.get(task.position),
            "attempts": attempts.get(task.position),
        }
    ids = _failed_ids(run)
    for position in run.infra_failures:
        known = {"position": position, "task_id": ids.get(position), "attempts": attempts.get(position)}
        yield {**labels, **known, "kind": "infra_failure"}


def _labels(run: Run) -> dict[str, Any]:
    return {
        "run": run.name,
        **{key: run.labels[key] for key in ("host", "method", "env", "models", "variant")},
        "run_seed": run.seed,
    }


def _failed_ids(run: Run) -> dict[int, str]:
    """The tasks of attempts, which the table of attempts knows by position only."""
    if not run.infra_failures:
        return {}
    events = read_events(run.view.directory / "events.jsonl")
    return {event["position"]: event["task_id"] for event in events if event["event"] == "attempt_start"}


def _steps(run: Run) -> Iterator[Row]:
    for position, events in committed_attempts(run.view):
        for event in events:
            if event["event"] == "step":
                yield {"run": run.name, "position": position, "task_id": events[-1]["task_id"], **event}


def _calls(run: Run) -> Iterator[Row]:
    for row in run.view.calls():
        yield {"run": run.name, **row}


# --- files --------------------------------------------------------------------------------------------------------------
@contextmanager
def _open(path: Path, columns: Mapping[str, type], format: str) -> Iterator[Writer]:
    if format == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            yield _Csv(file, columns)
        return
    table = _Parquet(path, columns)
    try:
        yield table
    finally:
        table.close()


def _typed(row: Row, columns: Mapping[str, type]) -> list[Any]:
    """The row's values in order; SQLite knows no truth values, and a whole number may stand for a score."""
    return [None if (value := row.get(name)) is None else kind(value) for name, kind in columns.items()]


class _Csv:
    def __init__(self, file: Any, columns: Mapping[str, type]) -> None:
        self._columns, self._writer = columns, csv.writer(file, lineterminator="\n")
        self._writer.writerow(columns)

    def write(self, row: Row) -> None:
        values = _typed(row, self._columns)
        self._writer.writerow(str(value).lower() if isinstance(value, bool) else value for value in values)


class _Parquet:
    def __init__(self, path: Path, columns: Mapping[str, type]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise SetupError("Parquet needs the package pyarrow.", "pip install pyarrow, or use --format csv.") from error
        kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
        self._arrow, self._columns = pyarrow, columns
        self._schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[list[Any]] = []

    def write(self, row: Row) -> None:
        self._rows.append(_typed(row, self._columns))
        if len(self._rows) >= BATCH:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = [list(column) for column in zip(*self._rows, strict=True)]
            self._writer.write_table(self._arrow.table(columns, schema=self._schema))
            self._rows = []
