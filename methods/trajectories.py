"""Past episodes in the stream's SQLite file, found again by the similarity of their keys.

The store of the baseline forms (METHODS.md 3.2, 3.3): one record per finished task; failed ones are stored and only found
when asked for. Vectors are kept in memory beside the table; a rolled-back task needs a new object, as all memories do.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np

from harness.contracts import Outcome, Task, Trajectory, TrajectoryCard
from methods.text.hash256 import DIMENSIONS, Vector, embed


@dataclass(frozen=True)
class Record:
    """A finished task: `key` is what it is found by, `similarity` the cosine to the query in [-1, 1]."""

    id: int
    key: str
    description: str
    trajectory: str
    success: bool
    similarity: float

    def card(self) -> TrajectoryCard:
        """What the agents see of it. There are no key steps in these forms, so the prompt has no line for them."""
        return TrajectoryCard(task=self.description, trajectory=self.trajectory)


class TrajectoryStore:
    """Records in the table `memory_trajectory` of `db`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._vectors = np.zeros((16, DIMENSIONS))
        self._labels = np.zeros(16, dtype=bool)
        self._count = 0

    def open(self) -> None:
        """Create the table if it is missing and load the vectors."""
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_trajectory (id INTEGER PRIMARY KEY, key TEXT NOT NULL, description TEXT NOT NULL,"
            " trajectory TEXT NOT NULL, success INTEGER NOT NULL, vector BLOB NOT NULL)"
        )
        self._count = 0
        for vector, success in self._db.execute("SELECT vector, success FROM memory_trajectory ORDER BY id"):
            self._append(np.frombuffer(vector, dtype="<f8"), bool(success))

    def __len__(self) -> int:
        return self._count

    def add(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        """Store a finished task. The grader's feedback is part of the description, as in the published form."""
        vector = embed(task.key)
        description = f"{task.goal}\n{outcome.feedback}".strip()
        self._db.execute(
            "INSERT INTO memory_trajectory (key, description, trajectory, success, vector) VALUES (?, ?, ?, ?, ?)",
            (task.key, description, trajectory.text(), int(outcome.success), vector.astype("<f8").tobytes()),
        )
        self._append(vector, outcome.success)

    def nearest(self, key: str, limit: int, *, success: bool) -> list[Record]:
        """The `limit` records of that label nearest to `key`, best first, older first among equals."""
        ids = np.flatnonzero(self._labels[: self._count] == success)
        if not limit or not ids.size:
            return []
        # rounded: the last bits of a product depend on the matrix' shape, and a tie must not
        similarity = np.round(self._vectors[ids] @ embed(key), 9)
        best = np.lexsort((ids, -similarity))[:limit]
        return [self._record(int(ids[i]) + 1, float(similarity[i])) for i in best]

    def _record(self, record_id: int, similarity: float) -> Record:
        row = self._db.execute(
            "SELECT key, description, trajectory, success FROM memory_trajectory WHERE id = ?", (record_id,)
        ).fetchone()
        return Record(record_id, row[0], row[1], row[2], bool(row[3]), similarity)

    def _append(self, vector: Vector, success: bool) -> None:
        if self._count == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
            self._labels = np.concatenate([self._labels, np.zeros_like(self._labels)])
        self._vectors[self._count] = vector
        self._labels[self._count] = success
        self._count += 1
