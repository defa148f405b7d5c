"""The memory stream: records of what happened and what was made of it. Table `memory_record`, vectors in the space `records`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.contracts import MemoryServices, Phase
from methods.generative_full.scoring import Weights, score
from methods.text.embedders import Embedder
from methods.vectors.store import Growing, VectorStore, top

Kind = Literal["observation", "summary", "reflection"]


@dataclass(frozen=True)
class NewRecord:
    """A record to be stored. `shown` is false for what is kept but not shown to the agents (a failed task's)."""

    kind: Kind
    text: str
    importance: int
    shown: bool
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """A retrieved record and its score in [0, sum of the weights]."""

    id: int
    text: str
    score: float


class MemoryStream:
    """Records by id from 1 on; `created` and `last_access` are numbers of tasks, the logical hours of this stream."""

    def __init__(self, services: MemoryServices, embedder: str, weights: Weights) -> None:
        self._db, self._note, self._weights = services.db, services.note, weights
        self._vectors = VectorStore(services.db, Embedder(embedder, services.models, "memory.generative_full.embed"), "records")
        self._access, self._importance, self._visible = Growing(float), Growing(float), Growing(bool)

    def open(self) -> None:
        """Create the tables that are missing and load what scoring needs."""
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_record (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL,"
            " created INTEGER NOT NULL, last_access INTEGER NOT NULL, importance INTEGER NOT NULL, shown INTEGER NOT NULL,"
            " evidence TEXT NOT NULL)"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS memory_reflection (task INTEGER PRIMARY KEY, last_record INTEGER NOT NULL)")
        self._vectors.open()
        rows = self._db.execute("SELECT last_access, importance, shown FROM memory_record ORDER BY id").fetchall()
        self._access = Growing(float, [row[0] for row in rows])
        self._importance = Growing(float, [row[1] for row in rows])
        self._visible = Growing(bool, [row[2] for row in rows])

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, records: Sequence[NewRecord], now: int) -> None:
        """Store `records` at task number `now`; one embedding call for all."""
        if not records:
            return
        vectors = self._vectors.embedder([record.text for record in records], "write")
        for record, vector in zip(records, vectors, strict=True):
            number = len(self) + 1
            self._db.execute(
                "INSERT INTO memory_record VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    record.kind,
                    record.text,
                    now,
                    now,
                    record.importance,
                    int(record.shown),
                    json.dumps(record.evidence),
                ),
            )
            change = {"item": f"{record.kind} {number}", "change": "added", "before": "", "after": record.text}
            self._note("memory_change", change)
            self._vectors.add(number, vector)
            self._access.append(now)
            self._importance.append(record.importance)
            self._visible.append(record.shown)

    def retrieve(self, queries: Sequence[str], now: int, limit: int, *, phase: Phase, hidden: bool) -> list[list[Found]]:
        """For each query the `limit` records that score best, best first; `hidden` includes those not meant for the agents.

        What is retrieved counts as accessed now.
        """
        vectors = self._vectors.embedder(list(queries), phase)
        rows = np.flatnonzero(self._visible.array | hidden)
        return [self._best(vector, rows, now, limit) if len(rows) else [] for vector in vectors]

    def _best(self, query: NDArray[np.float64], rows: NDArray[np.intp], now: int, limit: int) -> list[Found]:
        access, importance = self._access.array[rows], self._importance.array[rows]
        relevance = self._vectors.all_similarities(query)[rows]
        total = score(now, access, importance, relevance, self._weights)
        found = []
        for place in top(total, limit):
            number = int(rows[place]) + 1
            text = self._db.execute("SELECT text FROM memory_record WHERE id = ?", (number,)).fetchone()[0]
            self._db.execute("UPDATE memory_record SET last_access = ? WHERE id = ?", (now, number))
            self._access.array[number - 1] = now
            found.append(Found(number, text, float(total[place])))
        return found

    def latest(self, count: int) -> list[str]:
        """The texts of the `count` latest records, oldest first."""
        rows = self._db.execute("SELECT text FROM memory_record ORDER BY id DESC LIMIT ?", (count,)).fetchall()
        return [row[0] for row in reversed(rows)]

    def unreflected(self) -> int:
        """The summed importance of the records since the last reflection."""
        last = self._db.execute("SELECT coalesce(max(last_record), 0) FROM memory_reflection").fetchone()[0]
        return int(self._importance.array[last:].sum())

    def reflected(self, now: int) -> None:
        """A reflection took place at task number `now`."""
        self._db.execute("INSERT INTO memory_reflection VALUES (?, ?)", (now, len(self)))
