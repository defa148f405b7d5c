"""Copies a run's files without secrets and without places of this machine, so that the copy still replays.

Two kinds of text: what the replay needs or is compared with (configuration, recordings, results, the memory's tables) stays
letter for letter, and a secret in it refuses the pack, with the place; everything else (transcripts, error messages,
provenance) is masked.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from harness.archive.layout import EVENTS, MANIFEST, RECORDINGS, RESULTS
from harness.archive.recorded import tuples
from harness.archive.secrets import Redactor, holds_secret
from harness.errors import RunBusyError, UserError
from harness.models.ledger import IN_PROCESS

# text that no replay looks at: masked. (table, column) → the table's key
_MASKED = {("attempt", "error"): "position, number", ("ledger", "error"): "id", ("run", "value"): "key"}
# hexadecimal digests are no text of anybody's
_DIGESTS = {("ledger", "digest"), ("recording", "digest")}
_CONFIGURED = "It is part of what the run is. Put such things into an environment variable (api_key_env), and play it again."
_SCHEMA = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


class Stripped:
    """The stripped copy of one run in `target`. `kept_places` says where a folder of this machine had to stay."""

    def __init__(self, source: Path, target: Path, redactor: Redactor, lookalikes: bool) -> None:
        self._source, self._target, self._redactor, self._lookalikes = source, target, redactor, lookalikes
        self.kept_places: list[str] = []

    def write(self, manifest: Mapping[str, Any], recordings: Path | None) -> None:
        """Copy what there is. Raises UserError where a secret stands in what cannot be changed."""
        with not_being_played(self._source):
            self._manifest(manifest)
            moved = self._events(self._offset())
            self._results(moved)
            if recordings is not None:
                self._recordings(recordings)

    # --- the files --------------------------------------------------------------------------------------------------------
    def _manifest(self, manifest: Mapping[str, Any]) -> None:
        for path, value in tuples(manifest["cell"], ("cell",)):
            place = f"manifest.json, {'.'.join(path)}"
            self._must_be_clean(".".join(path), place)
            if holds_secret(path[-1], value):
                raise UserError(f"{self._source} cannot be packed: {place} holds a secret.", _CONFIGURED)
            if isinstance(value, str | list):
                self._must_be_clean(json.dumps(value, ensure_ascii=False), place)
        kept = {key: manifest[key] for key in ("cell", "identity")}
        content = {**self._redactor.masked_tree(manifest), **kept}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (self._target / MANIFEST).write_text(text, encoding="utf-8")

    def _offset(self) -> int:
        """How far the log belongs to what is committed."""
        with closing(_reading(self._source / RESULTS)) as db:
            row = db.execute("SELECT value FROM run WHERE key = 'events_offset'").fetchone()
        return int(row[0]) if row else 0

    def _events(self, offset: int) -> int:
        """Copy the log line by line; return where `offset` has moved to."""
        source = self._source / EVENTS
        if not source.is_file():
            return offset
        read = written = moved = 0
        with source.open("rb") as log, (self._target / EVENTS).open("wb") as out:
            for line in log:
                made = self._line(line)
                out.write(made)
                read, written = read + len(line), written + len(made)
                if read <= offset:
                    moved = written
        return moved

    def _line(self, line: bytes) -> bytes:
        if not self._redactor.may_matter(line.decode("utf-8", "replace")):
            return line
        try:
            event = json.loads(line)
        except ValueError:  # torn by a crash: masked as it stands
            return self._redactor.masked(line.decode("utf-8", "backslashreplace")).encode()
        masked = self._redactor.masked_tree(event)
        if masked == event:
            return line
        made = json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
        return made.encode("utf-8", "backslashreplace") + b"\n"

    def _results(self, offset: int) -> None:
        scratch = self._target / f".{RESULTS}"
        with closing(_reading(self._source / RESULTS)) as source, closing(sqlite3.connect(scratch)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            with copy:
                for table in _tables(copy):
                    self._table(copy, table)
                copy.execute("UPDATE run SET value = ? WHERE key = 'events_offset'", (str(offset),))
            _vacuum_into(copy, self._target / RESULTS)
        scratch.unlink()

    def _recordings(self, path: Path) -> None:
        """The recordings that a replay of the results asks for, and no others."""
        scratch = self._target / f".{RECORDINGS}"
        with closing(_reading(path)) as source, closing(sqlite3.connect(scratch)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            with copy:
                copy.execute("CREATE TEMP TABLE needed (digest TEXT, occurrence INTEGER, PRIMARY KEY (digest, occurrence))")
                copy.executemany("INSERT INTO needed VALUES (?, ?)", needed(self._target / RESULTS))
                copy.execute("DELETE FROM recording WHERE (digest, occurrence) NOT IN (SELECT digest, occurrence FROM needed)")
                self._table(copy, "recording")
            _vacuum_into(copy, self._target / RECORDINGS)
        scratch.unlink()

    # --- tables -----------------------------------------------------------------------------------------------------------
    def _table(self, db: sqlite3.Connection, table: str) -> None:
        rows = db.execute(f'SELECT * FROM "{table}"')
        columns = [item[0] for item in rows.description]
        for number, row in enumerate(rows.fetchall(), 1):
            for column, value in zip(columns, row, strict=True):
                if (table, column) in _DIGESTS or not isinstance(value, str | bytes):
                    continue
                text = value if isinstance(value, str) else value.decode("utf-8", "replace")
                key = _MASKED.get((table, column))
                if key is None:
                    self._must_be_clean(text, f"{table}.{column}, row {number}{_task_of(columns, row)}")
                elif (masked := self._redactor.masked(text)) != text:
                    names = key.split(", ")
                    where = " AND ".join(f"{name} = ?" for name in names)
                    keys = [row[columns.index(name)] for name in names]
                    db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (masked, *keys))

    def _must_be_clean(self, text: str, where: str) -> None:
        found = self._redactor.secrets_in(text)
        if self._lookalikes:
            found = [what for what in found if not what.startswith("text that")]
        if found:
            hint = "A replay needs this text as it is; keep the run to yourself, or run it again without the secret."
            if found[0].startswith("text that"):
                hint += " If it is the benchmark's or the model's invention and no key: --allow-lookalikes."
            raise UserError(f"{self._source} cannot be packed: {where} holds {found[0]}.", hint)
        if self._redactor.names_places(text):
            self.kept_places.append(where)


def needed(results: Path) -> set[tuple[str, int]]:
    """Digest and occurrence of every call that a replay makes: those that were answered, or refused by the model itself."""
    sql = (
        "SELECT digest, occurrence FROM ledger WHERE endpoint != ? AND"
        " (ok OR error LIKE 'ContextOverflow:%' OR error LIKE 'ContentRefused:%')"
    )
    with closing(_reading(results)) as db:
        return {(row[0], row[1]) for row in db.execute(sql, (IN_PROCESS,))}


def missing_recordings(results: Path, recordings: Path) -> tuple[int, int]:
    """How many of the calls in the ledger have no recording, and how many there are."""
    wanted = needed(results)
    with closing(_reading(recordings)) as db:
        there = set(db.execute("SELECT digest, occurrence FROM recording"))
    return len(wanted - there), len(wanted)


def require_whole(path: Path) -> None:
    """Raises UserError where a database is cut off or damaged; it is read once from end to end."""
    try:
        with closing(_reading(path)) as db:
            (health,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        health = str(error)
    if health != "ok":
        raise UserError(f"{path} is damaged: {' '.join(health.split())}.", "Restore it.")


@contextmanager
def not_being_played(directory: Path) -> Iterator[None]:
    """Hold the stream's lock, so that nobody writes meanwhile. Raises RunBusyError where somebody does."""
    try:
        lock = os.open(directory / "stream.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # unpacked, or copied by hand
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RunBusyError(f"Another process is playing {directory}.", "Wait for it.") from None
    finally:
        os.close(lock)


def _reading(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise UserError(f"There is no {path}.", "A run without its results cannot be packed or replayed.")
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)


def _tables(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute(_SCHEMA)]


def _vacuum_into(db: sqlite3.Connection, path: Path) -> None:
    """A file that holds the content in key order and nothing that was deleted: the same bytes for the same rows."""
    db.execute("VACUUM INTO ?", (str(path),))


def _task_of(columns: list[str], row: tuple[Any, ...]) -> str:
    return f" (task {row[columns.index('task_id')]})" if "task_id" in columns else ""
