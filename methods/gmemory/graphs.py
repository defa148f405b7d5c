"""The two graphs of G-Memory: of the agents' messages within a task, and of the tasks among each other (METHODS.md 3.4)."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable

from harness.contracts import Trajectory, Turn
from methods.vectors.store import Vector, VectorStore

NEAREST = 10  # stored tasks that a new one is compared with
_DIGITS = re.compile(r"(?<!\s)\s*\d+")  # a run of blanks is looked at once, from its first


class InteractionGraph:
    """A task's chain of states; each is a graph of the messages of one environment step. Table `memory_gmemory_state`.

    A node is `<agent>-<k>`, the agent's k-th message of the task; edges lead from the messages that the acting agent answered to
    its own. Kept are the states of steps that changed something (reward of 0 or more).
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.start()

    def open(self) -> None:
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_gmemory_state (task INTEGER NOT NULL, step INTEGER NOT NULL, action TEXT NOT NULL,"
            " observation TEXT NOT NULL, reward REAL NOT NULL, messages TEXT NOT NULL, edges TEXT NOT NULL,"
            " PRIMARY KEY (task, step)) WITHOUT ROWID"
        )

    def start(self) -> None:
        """A new task begins."""
        self._counts: dict[str, int] = {}
        self._last: dict[str, str] = {}  # agent → its latest node
        self._messages: list[tuple[str, str]] = []  # (node, text) since the last step
        self._states: list[tuple[Turn, str, str]] = []

    def hear(self, agent: str, text: str) -> None:
        """A message of `agent`, before it is known what becomes of it."""
        number = self._counts.get(agent, 0)
        self._counts[agent] = number + 1
        self._last[agent] = f"{agent}-{number}"
        self._messages.append((self._last[agent], text))

    def step(self, turn: Turn) -> None:
        """One environment step closes a state."""
        upstream = [self._last[agent] for agent in turn.upstream if agent in self._last]
        own = self._last.get(turn.agent)
        if own is None or own not in [node for node, _ in self._messages]:
            self.hear(turn.agent, turn.raw)
            own = self._last[turn.agent]
        edges = [[node, own] for node in upstream if node != own]
        self._states.append((turn, json.dumps(self._messages), json.dumps(edges)))
        self._messages = []

    def store(self, task: int) -> None:
        """Write the kept states of the task that has ended, under its number."""
        self._db.executemany(
            "INSERT INTO memory_gmemory_state VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (task, turn.step, turn.action, turn.result.observation, turn.result.reward, messages, edges)
                for turn, messages, edges in self._states
                if turn.result.reward >= 0
            ],
        )


def sparsified(trajectory: Trajectory) -> Trajectory:
    """The episode without the steps that led nowhere (reward below 0)."""
    return Trajectory(trajectory.initial_observation, tuple(turn for turn in trajectory.turns if turn.result.reward >= 0))


def without_numbers(text: str) -> str:
    """The text with all digits removed, and the blank before them: "mug 1" becomes "mug"."""
    return _DIGITS.sub("", text)


class QueryGraph:
    """The undirected graph of tasks whose keys are alike. Each edge stands once, the older task first."""

    def __init__(self, db: sqlite3.Connection, vectors: VectorStore, least: float) -> None:
        self._db, self._vectors, self._least = db, vectors, least

    def open(self) -> None:
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_gmemory_edge (older INTEGER NOT NULL, newer INTEGER NOT NULL,"
            " PRIMARY KEY (older, newer)) WITHOUT ROWID"
        )
        self._db.execute("CREATE INDEX IF NOT EXISTS memory_gmemory_edge_newer ON memory_gmemory_edge (newer)")

    def connect(self, number: int, vector: Vector) -> None:
        """Link task `number`, just stored, with those of its 10 nearest older ones whose cosine reaches the threshold."""
        others = [neighbour for neighbour in self._vectors.nearest(vector, NEAREST + 1) if neighbour.id != number]
        for neighbour in others[:NEAREST]:
            if neighbour.similarity >= self._least:
                self._db.execute("INSERT INTO memory_gmemory_edge VALUES (?, ?)", (neighbour.id, number))

    def expand(self, seeds: Iterable[int], hops: int) -> list[int]:
        """The seeds and all tasks within `hops` edges of one, ascending."""
        seen = set(seeds)
        edge = set(seen)
        for _ in range(hops):
            edge = {other for number in sorted(edge) for other in self._neighbours(number)} - seen
            seen |= edge
        return sorted(seen)

    def _neighbours(self, number: int) -> list[int]:
        rows = self._db.execute(
            "SELECT newer FROM memory_gmemory_edge WHERE older = ?"
            " UNION ALL SELECT older FROM memory_gmemory_edge WHERE newer = ?",
            (number, number),
        )
        return [int(row[0]) for row in rows]
