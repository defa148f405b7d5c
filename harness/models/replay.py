"""Record and replay of model calls (ARCHITECTURE.md rule 7), in a SQLite file of its own.

A call is found again by its request digest and its occurrence, the count of successful calls with the same digest that the
stream's ledger held before it. Every recording is committed at once, so that a killed process loses nothing it had paid
for; prompts, keys and headers are not stored. Recorded is what ended a call: an answer, or the model's own refusal (prompt
too long, content filter), since a run must replay to the same scores. Failed attempts before that are not.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.contracts import Problem, Usage
from harness.errors import AgentError, ConfigError, ContentRefused, ContextOverflow, ReplayMiss, SetupError, StorageError
from harness.models.backends.base import Answer
from harness.models.intake import believable, count

Mode = Literal["off", "record", "replay", "auto"]
MODES: tuple[Mode, ...] = ("off", "record", "replay", "auto")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS recording (
  digest TEXT NOT NULL, occurrence INTEGER NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT,
  usage TEXT NOT NULL, raw_usage TEXT NOT NULL, error TEXT,
  PRIMARY KEY (digest, occurrence)) WITHOUT ROWID
"""
_COLUMNS = ("digest", "occurrence", "model", "text", "finish_reason", "usage", "raw_usage", "error")
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UPSERT = "INSERT OR REPLACE INTO recording VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT model, text, finish_reason, usage, raw_usage, error FROM recording WHERE digest = ? AND occurrence = ?"


@dataclass(frozen=True)
class Recording:
    """How a call ended: with `answer`, or (where `error` is set) with the refusal that `raise_error` raises again."""

    answer: Answer
    error: Mapping[str, Any] | None = field(default=None)

    @classmethod
    def of_error(cls, model: str, error: AgentError, answer: Answer | None = None) -> Recording:
        """The recording of a refusal by `model`; `answer` carries its usage where it was billed."""
        facts: dict[str, Any] = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
        if isinstance(error, ContextOverflow):
            facts |= {"used": error.used, "limit": error.limit, "model": model}
        return cls(answer or Answer("", Usage(), model), facts)

    def to_error(self) -> AgentError | None:
        """The recorded refusal, or None for an answer."""
        if self.error is None:
            return None
        if self.error["type"] == ContextOverflow.__name__:
            return ContextOverflow(self.error["model"], self.error["used"], self.error["limit"])
        return ContentRefused(self.error["message"], self.error["hint"])


class Recorder:
    """The recordings of one stream. `off` keeps none, `record` writes, `replay` only reads, `auto` reads and fills gaps.

    Thread-safe. Raises ConfigError for an unknown mode, SetupError where `replay` finds no file or the file is no recording or
    damaged, StorageError on a full disk.
    """

    def __init__(self, mode: Mode = "off", path: Path | None = None) -> None:
        if mode not in MODES:
            raise ConfigError(f"There is no replay mode '{mode}'.", f"Known: {', '.join(MODES)}.")
        if mode != "off" and path is None:
            raise ConfigError(f"The replay mode '{mode}' needs a file.")
        self.mode, self.path = mode, path
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    @property
    def reads(self) -> bool:
        return self.mode in ("replay", "auto")

    @property
    def writes(self) -> bool:
        return self.mode in ("record", "auto")

    def find(self, digest: str, occurrence: int, *, role: str, task_id: str) -> Recording | None:
        """The recording, or None where there is none. In mode `replay` a missing one raises ReplayMiss."""
        if not self.reads:
            return None
        with self._lock, self._clear():
            row = self._open().execute(_SELECT, (digest, occurrence)).fetchone()
        if row is not None:
            return self._decoded(row, digest)
        if self.mode == "auto":
            return None
        raise ReplayMiss(
            f"No recording of the call '{role}' in task {task_id}: request {digest[:16]}…, occurrence {occurrence}.",
            "The prompt, a parameter or the code has changed since the recording; record again, or use replay mode 'auto'.",
        )

    def save(self, digest: str, occurrence: int, recording: Recording) -> None:
        """Commit a recording; an older one under the same key is replaced. Does nothing where the mode does not write."""
        if not self.writes:
            return
        answer = recording.answer
        row = (
            digest,
            occurrence,
            answer.model,
            answer.text,
            answer.finish_reason,
            json.dumps(asdict(answer.usage)),
            json.dumps(dict(answer.raw_usage)),
            json.dumps(dict(recording.error)) if recording.error else None,
        )
        with self._lock, self._clear():
            self._open().execute(_UPSERT, row)

    def check(self) -> list[Problem]:
        """What is wrong with the file, found before anything is played. Changes nothing."""
        if self.path is None or self.mode == "off":
            return []
        if not self.path.exists():
            missing = f"There are no recordings to replay: {self.path} is missing."
            return (
                [Problem(missing, "run.replay.path=<recordings>, or run.replay.mode=record first")]
                if self.mode == "replay"
                else []
            )
        try:
            with self._clear():
                db = self._read_only()
                try:
                    self._validate(db)
                finally:
                    db.close()
        except SetupError as error:
            return [Problem(error.message, "run.replay.path=<another file>, or remove this one")]
        return []

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                if self.writes:
                    with contextlib.suppress(sqlite3.DatabaseError):  # another process has it open
                        self._db.execute("PRAGMA journal_mode=DELETE")  # one plain file, to be packed and read anywhere
                self._db.close()
                self._db = None

    def describe(self) -> dict[str, str | None]:
        return {"mode": self.mode, "file": self.path.name if self.path else None}

    def _open(self) -> sqlite3.Connection:
        if self._db is not None:
            return self._db
        assert self.path is not None  # no file is needed only in mode off, which never comes here
        if self.mode == "replay":
            if not self.path.is_file():
                raise SetupError(f"There are no recordings to replay: {self.path} is missing.")
            db = self._read_only()
        else:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SetupError(f"{self.path.parent} cannot be made: {error.strerror}.", "Set run.replay.path.") from error
            # autocommit: each recording is durable against a kill when `save` returns
            db = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None, timeout=30)
        try:
            self._validate(db)
            if self.writes:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute(_SCHEMA)
        except BaseException:
            db.close()
            raise
        self._db = db
        return db

    def _read_only(self) -> sqlite3.Connection:
        assert self.path is not None
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None, timeout=30)

    def _validate(self, db: sqlite3.Connection) -> None:
        """Raise SetupError unless `db` holds recordings, or nothing at all and may be written to."""
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and self.writes:
            return
        columns = tuple(row[1] for row in db.execute("PRAGMA table_info(recording)"))
        if columns != _COLUMNS:
            raise self._unusable("it holds no recordings" if not columns else "its columns are others")

    def _decoded(self, row: tuple[Any, ...], digest: str) -> Recording:
        model, text, finish_reason, usage, raw_usage, error = row
        try:
            answer = Answer(str(text), Usage(**json.loads(usage)), str(model), finish_reason, dict(json.loads(raw_usage)))
            recording = Recording(answer, dict(json.loads(error)) if error else None)
            recording.to_error()
            if believable(answer.usage)[0] is None or any(count(n) is None for n in answer.raw_usage.values()):
                raise ValueError("counts that are none")
        except (ValueError, TypeError, KeyError, AttributeError) as broken:
            raise self._unusable(f"its recording {digest[:16]}… cannot be read") from broken
        return recording

    def _unusable(self, why: str) -> SetupError:
        return SetupError(
            f"{self.path} is no file of recordings, or damaged: {why}.", "Name another file (run.replay.path), or remove it."
        )

    @contextlib.contextmanager
    def _clear(self) -> Iterator[None]:
        """Whatever SQLite complains about, as one clear error."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if self.writes:
                raise StorageError(f"The recording file {self.path} cannot be written: {error}.") from error
            raise SetupError(f"The recording file {self.path} cannot be read: {error}.", "Name another file.") from error
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in _BROKEN:
                raise self._unusable(str(error)) from error
            raise StorageError(f"The recording file {self.path} cannot be used: {error}.") from error
