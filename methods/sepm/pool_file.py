"""Where the pool lies: in the stream's file, or in the file that `TEAM_MEMORY_DB` (or `SEPM_DB`) names (SEPM paper C.2).

Such a file is attached to the stream's connection, so a task changes both in one transaction. In WAL mode SQLite commits that
transaction file by file, the stream's first; a machine that dies between the two would leave the pool one task behind. So the
statements of the task in play are also kept in the stream's file, and the next process applies them (`catch_up`): the pool has
each task exactly once. The file is locked for as long as the stream's connection lives.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import ConfigError

VARIABLES = ("TEAM_MEMORY_DB", "SEPM_DB")
ATTACHED = "sepm_pool"
HINT = "Give each stream a file of its own, or unset the variable: then the pool lies in the run itself."


class PoolFile:
    """The database that holds the pool. Nothing happens here unless one of the variables is set."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._attached = False

    def open(self) -> str:
        """The name of the pool's database on the connection. Raises ConfigError where another stream holds the file."""
        path = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), None)
        if path is None:
            return "main"
        self._attached = True
        attached = {row[1]: row[2] for row in self._db.execute("PRAGMA database_list")}
        if ATTACHED not in attached:
            self._attach(Path(path).expanduser().resolve())
        return ATTACHED

    def check(self, rows: Callable[[str], list[Any]]) -> None:
        """Refuse a pool whose tables are of an earlier version of MemArena. Raises ConfigError."""
        schema = ATTACHED if self._attached else "main"
        columns = {row[1] for row in rows(f"PRAGMA {schema}.table_info(sepm_version)")}
        if columns and "digest" not in columns:
            raise ConfigError("This pool was made by an earlier version of MemArena.", "Start with an empty pool.")

    def _attach(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db.execute(f"ATTACH DATABASE ? AS {ATTACHED}", (str(path),))
            # held until the connection closes, however the process ends
            self._db.execute(f"PRAGMA {ATTACHED}.locking_mode = EXCLUSIVE")
            self._db.execute(f"PRAGMA {ATTACHED}.journal_mode = WAL")
            self._db.execute(f"PRAGMA {ATTACHED}.synchronous = FULL")
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {ATTACHED}.sepm_link (stream TEXT PRIMARY KEY, tasks INTEGER NOT NULL)")
            self._db.execute(f"PRAGMA {ATTACHED}.user_version = 1")  # a write: takes the lock
        except (sqlite3.OperationalError, OSError) as error:
            busy = "locked" in str(error)
            what = "is used by another stream" if busy else f"cannot be used ({error})"
            raise ConfigError(f"The pool {path} {what}.", HINT) from error
        self._db.execute("CREATE TABLE IF NOT EXISTS main.sepm_link (stream TEXT PRIMARY KEY, tasks INTEGER NOT NULL)")
        self._db.execute("CREATE TABLE IF NOT EXISTS main.sepm_pool_path (path TEXT PRIMARY KEY)")
        self._db.execute("DELETE FROM main.sepm_pool_path")
        self._db.execute("INSERT INTO main.sepm_pool_path VALUES (?)", (str(path),))
        self._db.execute("CREATE TABLE IF NOT EXISTS main.sepm_redo (id INTEGER PRIMARY KEY, statement TEXT NOT NULL)")

    def catch_up(self) -> None:
        """Apply the last task's statements if the pool missed them. Raises ConfigError where the pool is not the one we left."""
        if not self._attached:
            return
        ours, theirs = self._count("main"), self._count(ATTACHED)
        if theirs == ours:
            return
        if theirs != ours - 1:
            raise ConfigError(
                f"The pool holds {theirs} tasks of this stream, the stream has played {ours}.",
                "It was exchanged or taken back since: use the file of this run, or start a run with a new name.",
            )
        statements = [row[0] for row in self._db.execute("SELECT statement FROM main.sepm_redo ORDER BY id")]
        self._db.execute("BEGIN IMMEDIATE")
        for statement in statements:
            sql, parameters = json.loads(statement)
            self._db.execute(sql, [bytes.fromhex(p["hex"]) if isinstance(p, dict) else p for p in parameters])
        self._set(ATTACHED, ours)
        self._db.execute("COMMIT")

    def begin(self) -> None:
        """A task begins: forget the statements of the one before, count this one in both files."""
        if self._attached:
            tasks = self._count("main") + 1
            self._db.execute("DELETE FROM main.sepm_redo")
            self._set("main", tasks)
            self._set(ATTACHED, tasks)

    def note(self, sql: str, parameters: tuple[Any, ...]) -> None:
        """Keep a statement that changed the pool."""
        if self._attached:
            plain = [{"hex": p.hex()} if isinstance(p, bytes) else p for p in parameters]
            self._db.execute("INSERT INTO main.sepm_redo (statement) VALUES (?)", (json.dumps([sql, plain]),))

    def _stream(self) -> str:
        """What this stream is called in a pool that other streams may have filled before it."""
        known = self._db.execute("SELECT stream FROM main.sepm_link").fetchone()
        if known:  # the run may have been moved since
            return str(known[0])
        path = next(row[2] for row in self._db.execute("PRAGMA database_list") if row[1] == "main")
        return str(path) or ":memory:"

    def _count(self, schema: str) -> int:
        row = self._db.execute(f"SELECT tasks FROM {schema}.sepm_link WHERE stream = ?", (self._stream(),)).fetchone()
        return int(row[0]) if row else 0

    def _set(self, schema: str, tasks: int) -> None:
        self._db.execute(
            f"INSERT INTO {schema}.sepm_link VALUES (?, ?) ON CONFLICT (stream) DO UPDATE SET tasks = excluded.tasks",
            (self._stream(), tasks),
        )
