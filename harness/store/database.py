"""The stream's SQLite file: one transaction a task, and nothing of an abandoned attempt but its tokens.

Only one process plays a stream: the lock file is held by `flock`, which the kernel releases however the process ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.contracts import Task
from harness.errors import MemArenaError, RunBusyError, StorageError
from harness.models.ledger import IN_PROCESS, LedgerRow
from harness.store.events import EventLog, read_events
from harness.store.schema import SCHEMA_VERSION, AttemptKind, TaskRow, insert_statement, statements

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM}
_STORAGE_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


@dataclass(frozen=True)
class Spending:
    """What an attempt cost. `cost_usd` is None as soon as one successful call has no known price."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


_SUMS = "count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), sum(cost_usd)"
_BILLED = f"id > ? AND endpoint != '{IN_PROCESS}'"  # what is computed in this process is no spending


def storage_error(error: BaseException) -> StorageError | None:
    """`error` as a StorageError if the disk is to blame, else None."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        if code is None or code & 0xFF not in _STORAGE_CODES:
            return None
    elif not isinstance(error, OSError) or error.errno not in _DISK_ERRORS:
        return None
    return StorageError(f"Cannot write the run: {error}.", "Free some space; then the same command continues where it stopped.")


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if (better := storage_error(error)) is not None:
            raise better from error
        raise


class Store:
    """The writing side of a run directory. Use as a context manager; implements `harness.models.ledger.LedgerSink`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with _disk():
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = self._acquire()
            try:
                self.events = EventLog(directory / "events.jsonl")
                self.db = self._connect()
            except BaseException:
                os.close(self._lock)
                raise
        self._mutex = threading.RLock()
        self._open_attempt: tuple[int, int] | None = None
        self._insert_ledger = insert_statement("ledger", LedgerRow)
        self._ledger_names = tuple(field.name for field in fields(LedgerRow))

    # --- opening ------------------------------------------------------------------------------------------------------
    def _acquire(self) -> int:
        lock = os.open(self.directory / "stream.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise RunBusyError(
                f"Another process is playing {self.directory}.", "Wait for it, or give this run another run.name."
            ) from None
        return lock

    def _connect(self) -> sqlite3.Connection:
        # autocommit mode: transactions are opened and closed here and nowhere else
        db = sqlite3.connect(self.directory / "stream.sqlite", isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone():
            db.execute("BEGIN IMMEDIATE")
            for statement in statements():
                db.execute(statement)
            db.execute("INSERT INTO run VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
            db.execute("COMMIT")
        version = int(db.execute("SELECT value FROM run WHERE key = 'schema_version'").fetchone()[0])
        if version != SCHEMA_VERSION:
            db.close()
            raise MemArenaError(
                f"{self.directory} was written with schema {version}, this version reads {SCHEMA_VERSION}.",
                "Use the version that wrote it, or another run.name.",
            )
        return db

    def close(self) -> None:
        if self.db.in_transaction:
            self._guard(False)
            self.db.execute("ROLLBACK")
        self.db.close()
        self.events.close()
        os.close(self._lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # --- bookkeeping --------------------------------------------------------------------------------------------------
    def get(self, key: str) -> str | None:
        row = self.db.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        with _disk():
            self.db.execute("INSERT INTO run VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value))

    def finished_positions(self) -> frozenset[int]:
        return frozenset(row[0] for row in self.db.execute("SELECT position FROM task"))

    def usage_estimated(self) -> bool:
        """TOK-R7: whether an answered call has counts that the provider did not state."""
        found = self.db.execute("SELECT 1 FROM ledger WHERE kind = 'chat' AND ok AND usage_source != 'provider' LIMIT 1")
        return found.fetchone() is not None

    def spent(self) -> tuple[int, int, float]:
        """Calls, tokens and dollars of all attempts so far, abandoned ones included: they were paid for."""
        row = self.db.execute(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_usd), 0)"
            " FROM attempt"
        ).fetchone()
        return int(row[0]), int(row[1]), float(row[2])

    def recover(self) -> int:
        """Account for an attempt that a killed process left behind; return how many there were.

        Everything after the offset of the last commit belongs to an attempt that never committed.
        """
        found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
        for event in read_events(self.events.path, int(self.get("events_offset") or 0)):
            if event["event"] == "attempt_start":
                found[event["position"], event["attempt"]] = []
            elif event["event"] == "model_call" and found and event["endpoint"] != IN_PROCESS:
                found[next(reversed(found))].append(event)
        for (position, number), calls in found.items():
            costs = [call["cost_usd"] for call in calls]
            with _disk():
                self.events.append("attempt_aborted", {"position": position, "attempt": number, "calls": len(calls)})
                self._begin()
                spending = Spending(
                    len(calls),
                    sum(call["input_tokens"] for call in calls),
                    sum(call["output_tokens"] for call in calls),
                    None if not costs or None in costs else sum(costs),
                )
                self._insert_attempt(position, number, "aborted", "the process died", spending)
                self._commit()
        return len(found)

    # --- one attempt --------------------------------------------------------------------------------------------------
    def begin(self, position: int, task: Task) -> int:
        """Open the transaction of an attempt; return its 1-based number."""
        with _disk():
            number = 1 + int(self.db.execute("SELECT count(*) FROM attempt WHERE position = ?", (position,)).fetchone()[0])
            self.events.append("attempt_start", {"position": position, "attempt": number, "task_id": task.task_id})
            self._begin()
            self._open_attempt = position, number
            self._first_ledger_id = int(self.db.execute("SELECT coalesce(max(id), 0) FROM ledger").fetchone()[0])
            self._guard(True)
        return number

    def spending(self) -> Spending:
        """The sums of the ledger rows of the open attempt."""
        row = self.db.execute(f"SELECT {_SUMS} FROM ledger WHERE {_BILLED}", (self._first_ledger_id,)).fetchone()
        unknown = self.db.execute(
            f"SELECT 1 FROM ledger WHERE {_BILLED} AND ok AND cost_usd IS NULL LIMIT 1", (self._first_ledger_id,)
        ).fetchone()
        return Spending(int(row[0]), int(row[1]), int(row[2]), None if unknown or row[3] is None else float(row[3]))

    def commit(self, row: TaskRow, seconds: float, cpu_seconds: float) -> None:
        """Commit the open attempt: result, ledger rows and memory tables become visible together."""
        assert self._open_attempt is not None
        with _disk():
            self.events.append("task_end", {**asdict(row), "seconds": round(seconds, 3)})
            self.events.sync()
            values = {**asdict(row), "metrics": json.dumps(dict(row.metrics), sort_keys=True)}
            self.db.execute(insert_statement("task", TaskRow), values)
            self.db.execute("INSERT INTO timing VALUES (?, ?, ?)", (row.position, seconds, cpu_seconds))
            self._insert_attempt(*self._open_attempt, "committed", row.error, self.spending())
            self._guard(False)
            self._commit()
        self._open_attempt = None

    def abandon(self, kind: AttemptKind, error: str) -> None:
        """Roll the open attempt back and keep only what it cost."""
        assert self._open_attempt is not None
        position, number = self._open_attempt
        self._open_attempt = None
        self._guard(False)
        if not self.db.in_transaction:
            # SQLite rolls back by itself on a full disk; what the attempt cost stands in the event log, and `recover` reads it
            return
        spending = self.spending()
        with _disk():
            self.db.execute("ROLLBACK")
            self.events.append("attempt_abandoned", {"position": position, "attempt": number, "kind": kind, "error": error})
            self._begin()
            self._insert_attempt(position, number, kind, error, spending)
            self._commit()

    # --- LedgerSink ---------------------------------------------------------------------------------------------------
    def write(self, row: LedgerRow, transcript: Mapping[str, Any]) -> None:
        with self._mutex, _disk():
            values = {name: getattr(row, name) for name in self._ledger_names}
            self.events.append("model_call", {**values, **transcript})
            self.db.execute(self._insert_ledger, values)

    def occurrences(self, digest: str) -> int:
        with self._mutex:
            return int(self.db.execute("SELECT count(*) FROM ledger WHERE digest = ? AND ok", (digest,)).fetchone()[0])

    # --- transactions -------------------------------------------------------------------------------------------------
    def _guard(self, on: bool) -> None:
        """While an attempt is open nobody but the store may end its transaction: a memory's `commit()` fails loudly."""

        def authorize(action: int, *_: object) -> int:
            return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK

        self.db.set_authorizer(authorize if on else None)

    def _begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        offset = str(self.events.offset)
        self.db.execute(
            "INSERT INTO run VALUES ('events_offset', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (offset,)
        )
        self.db.execute("COMMIT")

    def _insert_attempt(self, position: int, number: int, kind: AttemptKind, error: str | None, spending: Spending) -> None:
        self.db.execute(
            "INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (position, number, kind, error, *astuple(spending))
        )
