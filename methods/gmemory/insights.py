"""The insight layer: rules with a score, and the tasks that speak for and against them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from methods.gmemory.operations import AGREE_CREDIT, NEW_SCORE, Change

KEYS_PER_QUERY = 500  # SQLite bounds the parameters of a statement


@dataclass(frozen=True)
class Insight:
    """A rule; it is dropped when its score falls to 0 or below."""

    id: int
    rule: str
    score: int


class Insights:
    """The flat list of rules. Tasks are named by their keys, so a task played again is the same task."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def open(self) -> None:
        """Create the tables that are missing."""
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_gmemory_insight (id INTEGER PRIMARY KEY, rule TEXT NOT NULL, score INTEGER NOT "
            "NULL)"
        )
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS memory_gmemory_link (insight INTEGER NOT NULL, positive INTEGER NOT NULL, key TEXT NOT "
            "NULL,"
            " PRIMARY KEY (insight, positive, key)) WITHOUT ROWID"
        )
        self._db.execute("CREATE INDEX IF NOT EXISTS memory_gmemory_link_key ON memory_gmemory_link (key, positive)")
        self._db.execute("CREATE TABLE IF NOT EXISTS memory_gmemory_counter (next_insight INTEGER NOT NULL)")
        if not self._db.execute("SELECT 1 FROM memory_gmemory_counter").fetchone():
            self._db.execute("INSERT INTO memory_gmemory_counter VALUES (1)")

    def all(self) -> list[Insight]:
        """Every rule, oldest first."""
        return [Insight(*row) for row in self._db.execute("SELECT id, rule, score FROM memory_gmemory_insight ORDER BY id")]

    def related(self, keys: Sequence[str], at_least: float) -> list[Insight]:
        """The rules whose positive tasks include `at_least` of the (different) `keys`, oldest first."""
        support = self._support(set(keys))
        return self._get(sorted(number for number, count in support.items() if count >= at_least))

    def ranked(self, keys: Sequence[str], limit: int) -> list[Insight]:
        """The `limit` rules that most of the tasks with these keys speak for (a key counts as often as it stands in `keys`); of
        equals the higher score, then the older. Rules that none speaks for are left out."""
        weights = Counter(keys)
        votes: Counter[int] = Counter()
        for key, number in self._links(weights):
            votes[number] += weights[key]
        found = self._get(sorted(votes))
        return sorted(found, key=lambda insight: (-votes[insight.id], -insight.score, insight.id))[:limit]

    def apply(self, changes: Iterable[Change], shown: Sequence[Insight], keys: Sequence[str]) -> None:
        """Carry out `changes` of the `shown` rules, learnt from tasks with `keys`; then drop what has no score left.

        A new rule that is there already, word for word, is an agreement with it.
        """
        for change in changes:
            if change.place is None:
                assert change.text is not None  # a change without a place is a new rule
                number = self._find(change.text)
                if number is None:
                    self.add(change.text, keys, change.credit)
                    continue
                change = Change(0, None, AGREE_CREDIT, "AGREE")  # a rule that was not among the shown ones
            else:
                number = shown[change.place].id
            if change.kind == "EDIT":
                self._db.execute("UPDATE memory_gmemory_insight SET rule = ? WHERE id = ?", (change.text, number))
            self._db.execute("UPDATE memory_gmemory_insight SET score = score + ? WHERE id = ?", (change.credit, number))
            self._link(number, keys, positive=change.kind != "REMOVE")
        self._drop()

    def add(self, rule: str, keys: Iterable[str], score: int = NEW_SCORE) -> int:
        """A new rule that tasks with `keys` speak for; its id, never used before in this stream."""
        number = int(self._db.execute("SELECT next_insight FROM memory_gmemory_counter").fetchone()[0])
        self._db.execute("UPDATE memory_gmemory_counter SET next_insight = ?", (number + 1,))
        self._db.execute("INSERT INTO memory_gmemory_insight VALUES (?, ?, ?)", (number, rule, score))
        self._link(number, keys, positive=True)
        return number

    def credit(self, numbers: Iterable[int], amount: int) -> None:
        """Backward: the rules shown in a task that are still there get `amount`; then drop what has no score left."""
        for number in numbers:
            self._db.execute("UPDATE memory_gmemory_insight SET score = score + ? WHERE id = ?", (amount, number))
        self._drop()

    def clear(self) -> None:
        """Discard all rules."""
        self._db.execute("DELETE FROM memory_gmemory_insight")
        self._db.execute("DELETE FROM memory_gmemory_link")

    def _find(self, rule: str) -> int | None:
        row = self._db.execute("SELECT id FROM memory_gmemory_insight WHERE rule = ? ORDER BY id", (rule,)).fetchone()
        return None if row is None else int(row[0])

    # --- parts ----------------------------------------------------------------------------------------------------------
    def _get(self, numbers: Iterable[int]) -> list[Insight]:
        sql = "SELECT id, rule, score FROM memory_gmemory_insight WHERE id = ?"
        return [Insight(*row) for number in numbers if (row := self._db.execute(sql, (number,)).fetchone()) is not None]

    def _support(self, keys: set[str]) -> Counter[int]:
        return Counter(number for _, number in self._links(keys))

    def _links(self, keys: Iterable[str]) -> list[tuple[str, int]]:
        """(key, rule) of all positive links of `keys`."""
        ordered, found = sorted(keys), []
        for start in range(0, len(ordered), KEYS_PER_QUERY):
            part = ordered[start : start + KEYS_PER_QUERY]
            marks = ", ".join("?" * len(part))
            found += self._db.execute(
                f"SELECT key, insight FROM memory_gmemory_link WHERE positive = 1 AND key IN ({marks}) ORDER BY key, insight",
                part,
            ).fetchall()
        return found

    def _link(self, number: int, keys: Iterable[str], *, positive: bool) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO memory_gmemory_link VALUES (?, ?, ?)", [(number, int(positive), key) for key in keys]
        )

    def _drop(self) -> None:
        dead = [row[0] for row in self._db.execute("SELECT id FROM memory_gmemory_insight WHERE score <= 0")]
        for number in dead:
            self._db.execute("DELETE FROM memory_gmemory_insight WHERE id = ?", (number,))
            self._db.execute("DELETE FROM memory_gmemory_link WHERE insight = ?", (number,))
