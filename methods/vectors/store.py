"""The vector store that memory methods share: NumPy in memory, the table `memory_vector` in the stream's SQLite file.

A *space* is one collection of vectors (the keys of past tasks, the records of a memory stream), told apart by name. Search is
exact: one product of the matrix with the query, 2 MB and about a millisecond a thousand texts; no index is worth its upkeep at
the sizes of a stream. All that survives a task lies in the table; the matrix is rebuilt from it when a store is opened, and a
rolled-back task needs a new object, as all memories do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.contracts import Phase
from methods.text.embedders import HASH256, Embedder, Matrix

Vector = NDArray[np.float64]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

# similarities are compared at this precision: the last bits of a product depend on the matrix's shape, and a tie must not
DIGITS = 9
BLOCK = 2048  # rows per product, so that a large store needs no second copy of itself


@dataclass(frozen=True)
class Neighbour:
    """A stored vector near a query: its id and the cosine in [-1, 1]."""

    id: int
    similarity: float


class VectorStore:
    """The vectors of one space. Ids are the caller's, positive and ascending in the order they are added."""

    def __init__(self, db: sqlite3.Connection, embedder: Embedder, space: str) -> None:
        self.embedder, self.space = embedder, space
        self._db = db
        # the hashed vectors are kept exactly; those of a model carry no more than 32 bits
        self._dtype = np.dtype("<f8") if embedder.name == HASH256 else np.dtype("<f4")
        self._matrix = np.zeros((0, 0), dtype=self._dtype)
        self._ids: Ids = np.zeros(0, dtype=np.int64)
        self._count = 0

    def open(self) -> None:
        """Create the table if it is missing and load the space."""
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_vector (space TEXT NOT NULL, id INTEGER NOT NULL, vector BLOB NOT NULL,"
            " PRIMARY KEY (space, id)) WITHOUT ROWID"
        )
        self._count = 0
        for number, blob in self._db.execute("SELECT id, vector FROM memory_vector WHERE space = ? ORDER BY id", (self.space,)):
            self._append(int(number), np.frombuffer(blob, dtype=self._dtype))

    def __len__(self) -> int:
        return self._count

    def embed(self, text: str, phase: Phase) -> Vector:
        """The vector of `text`, through the ledger."""
        return self.embedder.one(text, phase)

    def add(self, number: int, vector: Vector) -> None:
        """Store `vector` under id `number`, which must be larger than all ids so far (ValueError otherwise)."""
        if self._count and number <= self._ids[self._count - 1]:
            raise ValueError(f"id {number} is not larger than {self._ids[self._count - 1]}, the last of space {self.space}")
        stored = vector.astype(self._dtype)
        self._db.execute("INSERT INTO memory_vector VALUES (?, ?, ?)", (self.space, number, stored.tobytes()))
        self._append(number, stored)

    def nearest(self, query: Vector, limit: int, *, among: Mask | None = None) -> list[Neighbour]:
        """The `limit` vectors with the largest cosine, best first, smaller id first among equals; `among`, one truth value a
        vector in the order of ids, restricts them."""
        if limit <= 0 or not self._count:
            return []
        rows = np.arange(self._count) if among is None else np.flatnonzero(among)
        similarity = self._all_products(query)[rows]
        best = top(similarity, limit)
        return [Neighbour(int(self._ids[rows[i]]), float(similarity[i])) for i in best]

    def similarities(self, query: Vector, numbers: Sequence[int] | Ids) -> Vector:
        """The cosine of `query` with each of the stored ids, in their order, shape (len(numbers),)."""
        rows = self.places(numbers)
        if not len(rows):
            return np.zeros(0)
        products: Vector = self._matrix[rows].astype(np.float64) @ query
        return products.round(DIGITS)

    @property
    def ids(self) -> Ids:
        """All stored ids, ascending."""
        return self._ids[: self._count].copy()

    def places(self, numbers: Sequence[int] | Ids) -> NDArray[np.intp]:
        """The place of each of the stored ids in the order of ids."""
        found: NDArray[np.intp] = np.searchsorted(self._ids[: self._count], np.asarray(numbers, dtype=np.int64))
        return found

    def all_similarities(self, query: Vector) -> Vector:
        """The cosine of `query` with every vector in the order of ids, shape (len(self),)."""
        return self._all_products(query)

    def vector(self, number: int) -> Vector:
        """The stored vector of that id."""
        row = int(np.searchsorted(self._ids[: self._count], number))
        found: Vector = self._matrix[row].astype(np.float64)
        return found

    def matrix(self) -> Matrix:
        """All vectors in the order of their ids, shape (len(self), dimensions)."""
        return self._matrix[: self._count].astype(np.float64)

    def _all_products(self, query: Vector) -> Vector:
        out = np.zeros(self._count)
        for start in range(0, self._count, BLOCK):
            part = self._matrix[start : min(start + BLOCK, self._count)]
            out[start : start + len(part)] = part.astype(np.float64, copy=False) @ query
        return out.round(DIGITS)

    def _append(self, number: int, vector: NDArray[Any]) -> None:
        if self._count == len(self._matrix):
            larger = np.zeros((max(16, 2 * self._count), len(vector)), dtype=self._dtype)
            if self._count:
                larger[: self._count] = self._matrix
            self._matrix = larger
            self._ids = np.concatenate([self._ids[: self._count], np.zeros(len(larger) - self._count, dtype=np.int64)])
        self._matrix[self._count] = vector
        self._ids[self._count] = number
        self._count += 1


class Growing:
    """A NumPy array that is appended to."""

    def __init__(self, dtype: type, values: Sequence[Any] = ()) -> None:
        self._values: NDArray[Any] = np.array(values, dtype=dtype)
        self._count = len(self._values)

    def append(self, value: Any) -> None:
        if self._count == len(self._values):
            self._values = np.resize(self._values, max(16, 2 * self._count))
        self._values[self._count] = value
        self._count += 1

    @property
    def array(self) -> NDArray[Any]:
        """The values so far; writing to it writes to them."""
        return self._values[: self._count]


def top(values: Vector, limit: int) -> NDArray[np.intp]:
    """The places of the `limit` largest values, largest first, the earlier of equal ones first."""
    places = np.arange(len(values))
    if len(values) > limit:
        least = np.partition(values, len(values) - limit)[len(values) - limit]
        places = np.flatnonzero(values >= least)
    order = np.lexsort((places, -values[places]))[:limit]
    found: NDArray[np.intp] = places[order]
    return found
