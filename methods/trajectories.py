"""Past episodes in the stream's SQLite file, found again by the similarity of their keys.

The store of the memory methods of METHODS.md 3.2 to 3.5: one record per finished task; failed ones are stored and only found
when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.contracts import MemoryServices, Outcome, Phase, Task, Trajectory, TrajectoryCard
from methods.text.embedders import Embedder
from methods.vectors.store import Growing, Neighbour, Vector, VectorStore

_COLUMNS = "id, key, description, trajectory, success, key_steps, fail_reason"
SPACE = "tasks"
# a record without a vector (older versions left one behind when an embedding call was refused) can never be found: it does not
# count, and its id is not given again
_FOUND = f"id IN (SELECT id FROM memory_vector WHERE space = '{SPACE}')"


@dataclass(frozen=True)
class Record:
    """A finished task: `key` is what it is found by, `similarity` the cosine to the query in [-1, 1]. `key_steps` and
    `fail_reason` are what a model wrote of it, in the methods that ask one."""

    id: int
    key: str
    description: str
    trajectory: str
    success: bool
    similarity: float
    key_steps: str | None = None
    fail_reason: str | None = None

    def card(self) -> TrajectoryCard:
        """What the agents see of it; without key steps the prompt has no line for them."""
        return TrajectoryCard(task=self.description, trajectory=self.trajectory, key_steps=self.key_steps)


class TrajectoryStore:
    """Records in the table `memory_trajectory`, their keys' vectors in the space `tasks`. Ids ascend, from 1 on."""

    def __init__(self, services: MemoryServices, embedder: str, role: str) -> None:
        self._db, self._note = services.db, services.note
        self.vectors = VectorStore(services.db, Embedder(embedder, services.models, role), SPACE)
        self._success = Growing(bool)

    def open(self) -> None:
        """Create the tables if they are missing and load the vectors."""
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_trajectory (id INTEGER PRIMARY KEY, key TEXT NOT NULL, description TEXT NOT NULL,"
            " trajectory TEXT NOT NULL, success INTEGER NOT NULL, key_steps TEXT, fail_reason TEXT)"
        )
        self.vectors.open()
        rows = self._db.execute(f"SELECT success FROM memory_trajectory WHERE {_FOUND} ORDER BY id").fetchall()
        self._success = Growing(bool, [row[0] for row in rows])

    def __len__(self) -> int:
        return len(self.vectors)

    def add(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> int:
        """Store a finished task under its key. The grader's feedback is part of the description, as in the published form."""
        return self.add_record(
            key=task.key,
            description=f"{task.goal}\n{outcome.feedback}".strip(),
            trajectory=trajectory.text(),
            success=outcome.success,
        )

    def add_record(
        self,
        *,
        key: str,
        description: str,
        trajectory: str,
        success: bool,
        key_steps: str | None = None,
        fail_reason: str | None = None,
        vector: Vector | None = None,
    ) -> int:
        """Store a record; its id. `vector` is the key's, where it is known already. A refused embedding call stores nothing."""
        embedded = self.vectors.embed(key, "write") if vector is None else vector
        number = 1 + int(self._db.execute("SELECT coalesce(max(id), 0) FROM memory_trajectory").fetchone()[0])
        self._db.execute(
            f"INSERT INTO memory_trajectory ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, key, description, trajectory, int(success), key_steps, fail_reason),
        )
        self.vectors.add(number, embedded)
        self._success.append(success)
        # the trajectory itself stands in the log
        parts = [
            f"Filed under: {key}",
            description,
            f"Key steps: {key_steps}" if key_steps else "",
            f"Why it failed: {fail_reason}" if fail_reason else "",
        ]
        why, after = "a success" if success else "a failure", "\n".join(part for part in parts if part)
        self._note("memory_change", {"item": f"past task {number}", "change": "added", "why": why, "before": "", "after": after})
        return number

    def embed(self, text: str, phase: Phase = "retrieve") -> Vector:
        return self.vectors.embed(text, phase)

    def nearest(self, key: str, limit: int, *, success: bool) -> list[Record]:
        """The `limit` records of that label nearest to `key`, best first, older first among equals."""
        return self.nearest_to(self.embed(key), limit, success=success) if limit else []

    def nearest_to(self, query: Vector, limit: int, *, success: bool | None = None) -> list[Record]:
        """The `limit` records nearest to a vector; None for both labels."""
        return self.records(self.neighbours(query, limit, success=success))

    def neighbours(self, query: Vector, limit: int, *, success: bool | None = None) -> list[Neighbour]:
        """As `nearest_to`, without reading the records."""
        return self.vectors.nearest(query, limit, among=None if success is None else self._success.array == success)

    def records(self, found: Iterable[Neighbour]) -> list[Record]:
        """The records behind `found`, in its order."""
        return [self.record(neighbour.id, neighbour.similarity) for neighbour in found]

    def successes(self, numbers: Iterable[int]) -> list[int]:
        """Those of `numbers` that are successes, in their order."""
        wanted = list(numbers)
        return [number for number, place in zip(wanted, self.vectors.places(wanted), strict=True) if self._success.array[place]]

    def record(self, number: int, similarity: float = 0.0) -> Record:
        """The record of that id."""
        row = self._db.execute(f"SELECT {_COLUMNS} FROM memory_trajectory WHERE id = ?", (number,)).fetchone()
        return Record(row[0], row[1], row[2], row[3], bool(row[4]), similarity, row[5], row[6])

    def keys(self, numbers: Sequence[int]) -> list[str]:
        """The keys of the records, in the order of `numbers`."""
        return [str(self._db.execute("SELECT key FROM memory_trajectory WHERE id = ?", (n,)).fetchone()[0]) for n in numbers]

    def all_keys(self) -> list[str]:
        """The keys of all records, in the order of the vectors: oldest first."""
        return [str(row[0]) for row in self._db.execute(f"SELECT key FROM memory_trajectory WHERE {_FOUND} ORDER BY id")]
