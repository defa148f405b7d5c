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
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.contracts import Task
from harness.errors import MemArenaError, RunBusyError, StorageError, UserError
from harness.models.ledger import IN_PROCESS, LedgerRow
from harness.store.events import EventLog, read_events
from harness.store.schema import SCHEMA_VERSION, AttemptKind, Spending, TaskRow, insert_statement, statements

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM}
_STORAGE_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


_SUMS = (
    "count(*), coalesce(sum(usage_source IS NOT NULL), 0), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),"
    " sum(cost_usd)"
)
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


def _spending_of(events: Sequence[Mapping[str, Any]]) -> Spending:
    """What the logged events of an attempt add up to."""
    calls = [event for event in events if event["event"] == "model_call" and event.get("endpoint") != IN_PROCESS]
    answered = [call for call in calls if call.get("usage_source") is not None]
    costs = [call.get("cost_usd") for call in answered]
    return Spending(
        len(calls),
        len(answered),
        sum(call.get("input_tokens", 0) for call in answered),
        sum(call.get("output_tokens", 0) for call in answered),
        None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
        sum(event["event"].endswith("step") for event in events),
        0.0,
    )


class Store:
    """The writing side of a run directory. Use as a context manager; implements `harness.models.ledger.LedgerSink`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            with _disk():
                directory.mkdir(parents=True, exist_ok=True)
                self._lock = self._acquire()
                try:
                    self.events = EventLog(directory / "events.jsonl")
                    self.db = self._connect()
                except BaseException:
                    os.close(self._lock)
                    raise
        except OSError as error:
            raise UserError(
                f"Cannot use {directory}: {error.strerror} ({error.filename}).", "Choose another run.root."
            ) from error
        except sqlite3.DatabaseError as error:
            raise UserError(
                f"{directory / 'stream.sqlite'} is damaged: {error}.", "Restore it, or remove the run's directory to start anew."
            ) from error
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

    def spent(self) -> Spending:
        """The sums of all attempts so far, abandoned ones included: they were paid for. An unknown cost counts as 0 here."""
        row = self.db.execute(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(answered), 0), coalesce(sum(input_tokens), 0),"
            " coalesce(sum(output_tokens), 0), coalesce(sum(cost_usd), 0.0), coalesce(sum(steps), 0),"
            " coalesce(sum(seconds), 0.0) FROM attempt"
        ).fetchone()
        return Spending(*row)

    def recover(self) -> int:
        """Account for attempts that a killed process left behind; return how many there were.

        Everything after the offset of the last commit belongs to an attempt that never committed. A log that is shorter than
        that was cut by somebody; then all of it is looked at. What the table knows already is not counted again.
        """
        offset = int(self.get("events_offset") or 0)
        known = set(self.db.execute("SELECT position, number FROM attempt"))
        found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
        current: list[Mapping[str, Any]] = []
        for event in read_events(self.events.path, offset if offset <= self.events.offset else 0, whole=False):
            if event.get("event") == "attempt_start" and {"position", "attempt"} <= event.keys():
                current = found.setdefault((event["position"], event["attempt"]), [])
            elif event.get("event") in ("model_call", "step", "rehearsal_step"):
                current.append(event)
        lost = {key: events for key, events in found.items() if key not in known}
        for (position, number), events in lost.items():
            spending = _spending_of(events)
            with _disk():
                self.events.append("attempt_aborted", {"position": position, "attempt": number, "calls": spending.calls})
                self._begin()
                self._insert_attempt(position, number, "aborted", "the process died", spending)
                self._commit()
        return len(lost)

    # --- one attempt --------------------------------------------------------------------------------------------------
    def begin(self, position: int, task: Task) -> int:
        """Open the transaction of an attempt; return its 1-based number."""
        with _disk():
            number = 1 + int(self.db.execute("SELECT count(*) FROM attempt WHERE position = ?", (position,)).fetchone()[0])
            self.events.append("attempt_start", {"position": position, "attempt": number, "task_id": task.task_id})
            self._begin()
            self._open_attempt, self._steps, self._started = (position, number), 0, time.monotonic()
            self._first_ledger_id = int(self.db.execute("SELECT coalesce(max(id), 0) FROM ledger").fetchone()[0])
            self._guard(True)
        return number

    def log(self, position: int, kind: str, content: Mapping[str, Any]) -> None:
        """Write an event of the open attempt; steps of the environment are counted."""
        self._steps += kind.endswith("step")
        with _disk():
            self.events.append(kind, {"position": position, **content})

    def spending(self) -> Spending:
        """The sums of the ledger rows of the open attempt, its steps and its time so far."""
        row = self.db.execute(f"SELECT {_SUMS} FROM ledger WHERE {_BILLED}", (self._first_ledger_id,)).fetchone()
        unknown = self.db.execute(
            f"SELECT 1 FROM ledger WHERE {_BILLED} AND ok AND cost_usd IS NULL LIMIT 1", (self._first_ledger_id,)
        ).fetchone()
        calls, answered, inp, out, cost = row
        return Spending(calls, answered, inp, out, None if unknown else cost, self._steps, time.monotonic() - self._started)

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
        values = (position, number, kind, error, *astuple(spending))
        self.db.execute(f"INSERT INTO attempt VALUES ({', '.join('?' * len(values))})", values)
