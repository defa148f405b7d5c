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
from methods.vectors.store import VectorStore

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
        self._db, self._weights = services.db, weights
        self._vectors = VectorStore(services.db, Embedder(embedder, services.models, "memory.generative_full.embed"), "records")
        self._access: list[int] = []
        self._importance: list[int] = []
        self._visible: list[bool] = []

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
        self._access = [row[0] for row in rows]
        self._importance = [row[1] for row in rows]
        self._visible = [bool(row[2]) for row in rows]

    def __len__(self) -> int:
        return len(self._access)

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
            self._vectors.add(number, vector)
            self._access.append(now)
            self._importance.append(record.importance)
            self._visible.append(record.shown)

    def retrieve(self, queries: Sequence[str], now: int, limit: int, *, phase: Phase, hidden: bool) -> list[list[Found]]:
        """For each query the `limit` records that score best, best first; `hidden` includes those not meant for the agents.

        What is retrieved counts as accessed now.
        """
        vectors = self._vectors.embedder(list(queries), phase)
        ids = np.flatnonzero(np.asarray(self._visible, dtype=bool) | hidden) + 1
        if not len(ids):
            return [[] for _ in queries]
        return [self._best(vector, ids, now, limit) for vector in vectors]

    def _best(self, query: NDArray[np.float64], ids: NDArray[np.int64], now: int, limit: int) -> list[Found]:
        access = np.asarray(self._access, dtype=np.float64)[ids - 1]
        importance = np.asarray(self._importance, dtype=np.float64)[ids - 1]
        relevance = self._vectors.similarities(query, ids)
        total = score(now, access, importance, relevance, self._weights)
        best = np.lexsort((ids, -total))[:limit]
        found = []
        for place in best:
            number = int(ids[place])
            text = self._db.execute("SELECT text FROM memory_record WHERE id = ?", (number,)).fetchone()[0]
            self._db.execute("UPDATE memory_record SET last_access = ? WHERE id = ?", (now, number))
            self._access[number - 1] = now
            found.append(Found(number, text, float(total[place])))
        return found

    def latest(self, count: int) -> list[str]:
        """The texts of the `count` latest records, oldest first."""
        rows = self._db.execute("SELECT text FROM memory_record ORDER BY id DESC LIMIT ?", (count,)).fetchall()
        return [row[0] for row in reversed(rows)]

    def unreflected(self) -> int:
        """The summed importance of the records since the last reflection."""
        last = self._db.execute("SELECT coalesce(max(last_record), 0) FROM memory_reflection").fetchone()[0]
        return sum(self._importance[last:])

    def reflected(self, now: int) -> None:
        """A reflection took place at task number `now`."""
        self._db.execute("INSERT INTO memory_reflection VALUES (?, ?)", (now, len(self)))
