"""What a trial is compared with: running sums of how tasks went, by family and by revision (SEPM-R35, AMB-3).

Sums are kept as tasks end, so that a comparison costs the same after ten thousand tasks as after ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Callable[[str, Sequence[Any]], list[Any]]
Write = Callable[[str, tuple[Any, ...]], int]
FAMILY, REVISION = "family", "revision"
DIGITS = 12  # sums of floats are not exact to the last digit, and a net benefit of exactly 0 passes


@dataclass(frozen=True)
class Sums:
    """So many tasks with these totals."""

    runs: int = 0
    successes: int = 0
    score: float = 0.0
    steps: int = 0

    def without(self, other: Sums) -> Sums:
        return Sums(self.runs - other.runs, self.successes - other.successes, self.score - other.score, self.steps - other.steps)

    @property
    def mean_score(self) -> float:
        return round(self.score / self.runs, DIGITS) if self.runs else 0.0

    @property
    def mean_steps(self) -> float:
        return round(self.steps / self.runs, DIGITS) if self.runs else 0.0


@dataclass(frozen=True)
class Baselines:
    """The sums in the tables of schema `s`."""

    rows: Rows
    write: Write
    s: str

    def count(self, family: str, used: Mapping[str, int], score: float, success: bool, steps: int) -> None:
        """A task of `family` that used these revisions has ended."""
        for kind, name, version in [(FAMILY, family, 0), *((REVISION, sop, v) for sop, v in sorted(used.items()))]:
            self.write(
                f"INSERT INTO {self.s}.sepm_sum VALUES (?, ?, ?, 1, ?, ?, ?) ON CONFLICT (kind, name, version) DO UPDATE SET"
                " runs = runs + 1, successes = successes + excluded.successes, score = score + excluded.score,"
                " steps = steps + excluded.steps",
                (kind, name, version, int(success), score, steps),
            )

    def family(self, family: str, *, without: str | None = None) -> Sums:
        """The finished tasks of a family, but for those on which candidate `without` was on trial."""
        held = self._sums(
            f"SELECT runs, successes, score, steps FROM {self.s}.sepm_sum WHERE kind = ? AND name = ? AND version = 0",
            (FAMILY, family),
        )
        trials = self._sums(
            f"SELECT count(*), sum(success), sum(score), sum(steps) FROM {self.s}.sepm_task"
            " WHERE provisional = ? AND family = ? AND score IS NOT NULL",
            (without, family),
        )
        return held.without(trials)

    def structure(self, sop_id: str, version: int, *, without: str | None = None) -> Sums:
        """The tasks that used a procedure in the structure of this revision: the revisions that only added warnings to it are
        the same procedure as far as results go."""
        first, last = self._lineage(sop_id, version)
        held = self._sums(
            f"SELECT sum(runs), sum(successes), sum(score), sum(steps) FROM {self.s}.sepm_sum"
            " WHERE kind = ? AND name = ? AND version BETWEEN ? AND ?",
            (REVISION, sop_id, first, last),
        )
        trials = self._sums(
            f"SELECT count(*), sum(t.success), sum(t.score), sum(t.steps) FROM {self.s}.sepm_task t"
            f" JOIN {self.s}.sepm_use u ON u.task_no = t.task_no AND u.sop_id = ? AND u.version BETWEEN ? AND ?"
            " WHERE t.provisional = ? AND t.score IS NOT NULL",
            (sop_id, first, last, without),
        )
        return held.without(trials)

    def of_trial(self, candidate: str, family: str, reference: tuple[str, int] | None) -> Sums:
        """What a trial of `candidate` is compared with: the tasks with the revision that it wants to replace or narrow, else the
        family's tasks without the candidate; no runs where there are neither."""
        found = self.structure(*reference, without=candidate) if reference is not None else Sums()
        return found if found.runs else self.family(family, without=candidate)

    def _lineage(self, sop_id: str, version: int) -> tuple[int, int]:
        """The first and last revision of the same structure."""
        first, following = self.rows(
            "SELECT max(CASE WHEN version <= ? THEN version END), min(CASE WHEN version > ? THEN version END)"
            f" FROM {self.s}.sepm_version WHERE sop_id = ? AND kind != 'warning'",
            (version, version, sop_id),
        )[0]
        return first or 1, following - 1 if following else 2**31

    def _sums(self, sql: str, parameters: tuple[Any, ...]) -> Sums:
        rows = self.rows(sql, parameters)
        return Sums(*(value or 0 for value in rows[0])) if rows else Sums()
