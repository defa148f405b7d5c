"""The reading side of a run directory, for reports: never takes the lock, never writes, may look at a run in progress."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.store import manifest
from harness.store.schema import TaskRow

# Columns of the ledger that usage may be grouped by.
USAGE_GROUPS = ("role", "agent", "phase", "key", "model", "kind", "task_id", "position", "endpoint")


@dataclass(frozen=True)
class UsageRow:
    """Tokens of one group of ledger rows. `cost_usd` is None as soon as one successful row has no known price."""

    group: tuple[Any, ...]
    calls: int
    failed_calls: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    estimated_calls: int
    cost_usd: float | None

    @property
    def total_tokens(self) -> int:
        """TOK-R1: input plus output; cached and reasoning tokens are parts of these (TOK-R2, TOK-R3)."""
        return self.input_tokens + self.output_tokens


class RunView:
    """A run as it stands on disk. `directory` holds manifest.json and stream.sqlite."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not (directory / "manifest.json").is_file():
            raise UserError(f"{directory} is not a run (no manifest.json).", "`memarena list` shows the runs there are.")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """See harness.store.manifest for the fields."""
        loaded = manifest.read(self.directory)
        assert loaded is not None  # __init__ has seen the file
        return loaded

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        path = self.directory / "stream.sqlite"
        if not path.exists():
            return []
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
                db.row_factory = sqlite3.Row
                return db.execute(sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise UserError(f"{path} is damaged: {error}.", "Restore it, or remove the run's directory.") from error

    def tasks(self) -> list[TaskRow]:
        """The committed results by position."""
        found = []
        for row in self._rows("SELECT * FROM task ORDER BY position"):
            values = {key: row[key] for key in row.keys()}  # noqa: SIM118 - sqlite3.Row is not a mapping
            values.update(success=bool(row["success"]), late=bool(row["late"]), metrics=self._metrics(row["metrics"]))
            found.append(TaskRow(**values))
        return found

    def _metrics(self, text: str) -> dict[str, Any]:
        try:
            return dict(json.loads(text))
        except (ValueError, TypeError) as error:
            raise UserError(f"{self.directory / 'stream.sqlite'} is damaged: a result's metrics are not JSON.") from error

    def usage(self, *by: str, method_only: bool = False) -> list[UsageRow]:
        """Ledger totals grouped by columns of USAGE_GROUPS (none: one row in all).

        `method_only` leaves out the benchmark's own judge (TOK-R5) and embedding calls (TOK-R6), as the headline total does.
        """
        for column in by:
            if column not in USAGE_GROUPS:
                raise UserError(f"Usage cannot be grouped by {column!r}.", f"Use one of: {', '.join(USAGE_GROUPS)}.")
        columns = "".join(f"{column}, " for column in by)
        where = "WHERE key != 'eval_judge' AND kind = 'chat'" if method_only else ""
        group = f"GROUP BY {', '.join(by)} ORDER BY {', '.join(by)}" if by else ""
        rows = self._rows(
            f"SELECT {columns} count(*), sum(NOT ok), sum(input_tokens), sum(cached_input_tokens), sum(output_tokens),"
            " sum(reasoning_tokens), sum(usage_source IS 'estimate' OR usage_source IS 'tokenizer'),"
            f" CASE WHEN sum(ok AND cost_usd IS NULL) = 0 THEN coalesce(sum(cost_usd), 0) END FROM ledger {where} {group}"
        )
        width = len(by)
        found = []
        for values in map(tuple, rows):
            calls, failed, inp, cached, out, reasoning, estimated, cost = values[width:]
            if calls:
                found.append(UsageRow(values[:width], calls, failed, inp, cached, out, reasoning, estimated, cost))
        return found

    def attempts(self) -> list[dict[str, Any]]:
        """All attempts: position, number, kind (committed, infra_failure, aborted, stopped), error, and
        the fields of `harness.store.schema.Spending`."""
        return [dict(row) for row in self._rows("SELECT * FROM attempt ORDER BY position, number")]

    def infra_failures(self) -> list[int]:
        """Positions whose last attempt failed for reasons of infrastructure and that have no result."""
        rows = self._rows(
            "SELECT position, kind FROM attempt a WHERE number = (SELECT max(number) FROM attempt WHERE position = a.position)"
            " AND position NOT IN (SELECT position FROM task)"
        )
        return sorted(row["position"] for row in rows if row["kind"] == "infra_failure")

    def seconds(self) -> float | None:
        """Wall time of the committed tasks in seconds, as measured by the runs that played them; None without a task."""
        rows = self._rows("SELECT sum(seconds) AS total FROM timing")
        return rows[0]["total"] if rows else None

    def seconds_by_position(self) -> dict[int, float]:
        """Wall time of each committed task in seconds."""
        return {row["position"]: row["seconds"] for row in self._rows("SELECT position, seconds FROM timing")}

    def calls(self) -> list[dict[str, Any]]:
        """The ledger, a row an attempt at a call, in the order in which they were made; the fields of LedgerRow."""
        return [{key: row[key] for key in row.keys() if key != "id"} for row in self._rows("SELECT * FROM ledger ORDER BY id")]  # noqa: SIM118 - sqlite3.Row is not a mapping

    @property
    def status(self) -> str:
        """finished (all tasks that were asked for have a result), incomplete otherwise."""
        return "finished" if len(self.tasks()) >= self.manifest["tasks"]["n"] else "incomplete"


def find_runs(root: Path) -> Iterator[RunView]:
    """All runs below `root`, by path."""
    for path in sorted(root.glob("**/manifest.json")):
        if path.is_file():
            yield RunView(path.parent)
