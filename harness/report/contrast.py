"""`memarena compare`: everything that two methods' results on the same tasks say about their difference, as JSON-able data.

A side is one run, or several streams of one method (seeds, orders), paired stream by stream with the other side's. Scores
are in [0, 1]; differences are first − second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors import UserError
from harness.report import statistics
from harness.report.compare import obstacles, other_cell, require_once
from harness.report.measure import Run, estimate
from harness.report.statistics import ALPHA, POWER, Interval
from harness.store.view import RunView


@dataclass(frozen=True)
class Pairs:
    """The tasks with a result on both sides in the order in which the first side's first run played them.

    `first` and `second` hold a row a stream and a column a task; `played` has for each stream the columns in the order in
    which its first side played them.
    """

    tasks: tuple[str, ...]
    first: tuple[tuple[float, ...], ...]
    second: tuple[tuple[float, ...], ...]
    played: tuple[tuple[int, ...], ...]

    @property
    def means(self) -> tuple[list[float], list[float]]:
        """Mean over streams of each task, both sides."""
        ours, theirs = (
            [math.fsum(column) / len(side) for column in zip(*side, strict=True)] for side in (self.first, self.second)
        )
        return ours, theirs

    @property
    def differences(self) -> list[float]:
        return [a - b for a, b in zip(*self.means, strict=True)]

    @property
    def along(self) -> tuple[list[float], list[float]]:
        """Mean over streams at each place of the stream, both sides: the streams may have played the tasks in other orders."""
        ours, theirs = (
            [
                math.fsum(row[order[place]] for row, order in zip(side, self.played, strict=True)) / len(side)
                for place in range(len(self.tasks))
            ]
            for side in (self.first, self.second)
        )
        return ours, theirs

    @property
    def binary(self) -> bool:
        return len(self.first) == 1 and all(value in (0.0, 1.0) for side in (self.first, self.second) for value in side[0])


def contrast(
    first: Sequence[RunView], second: Sequence[RunView], *, alpha: float = ALPHA, detect: float | None = None
) -> dict[str, Any]:
    """Compare two methods. `detect` is a difference of scores in (0, 1] that an experiment to plan should find.

    Raises UserError where the sides cannot be paired: other environments or data, no common task, unequal numbers of streams.
    """
    ours, theirs = _side(first), _side(second)
    _check(ours, theirs, alpha, detect)
    pairs = _pair(ours, theirs)
    seed = ours[0].seed
    return {
        "first": _describe(ours, pairs.tasks),
        "second": _describe(theirs, pairs.tasks),
        "pairs": len(pairs.tasks),
        "streams": len(ours),
        "kind": "binary" if pairs.binary else "graded",
        "alpha": alpha,
        "differs_in": list(dict.fromkeys(line for a, b in zip(ours, theirs, strict=True) for line in obstacles(a, b))),
        "difference": _difference(pairs, seed),
        "tests": _tests(pairs, seed),
        "effect": _effect(pairs),
        "tasks_needed": _needed(pairs, alpha, detect),
        "sequential": None if len(ours) > 1 else _sequential(ours[0], theirs[0], alpha),
        "learning": _learning(pairs, seed),
        "tokens": _tokens(ours, theirs, pairs.tasks, seed),
    }


def _side(views: Sequence[RunView]) -> list[Run]:
    return sorted((Run(view) for view in views), key=lambda run: (run.seed, run.order, run.name))


def _check(ours: Sequence[Run], theirs: Sequence[Run], alpha: float, detect: float | None) -> None:
    if not 0 < alpha < 1:
        raise UserError(f"An alpha of {alpha:g} is no error rate.", "Use a number between 0 and 1, like 0.05.")
    if detect is not None and not 0 < detect <= 1:
        raise UserError(f"A difference of {detect * 100:g} points cannot be detected.", "Use more than 0 and at most 100 points.")
    if len(ours) != len(theirs):
        raise UserError(
            f"{len(ours)} streams on one side and {len(theirs)} on the other cannot be paired.",
            "Give the same seeds and orders on both sides.",
        )
    for side in (ours, theirs):
        require_once(side)
        for run in side[1:]:
            if lines := other_cell(run, side[0]):
                more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
                raise UserError(
                    f"{run.name} and {side[0].name} are not streams of one cell ({'; '.join(lines[:2])}{more}).",
                    "The runs of one side may differ in seed and order only.",
                )
    for a, b in zip(ours, theirs, strict=True):
        for path, what in (("cell.env.name", "environments"), ("environment.data_digest", "data")):
            if a.at(path) != b.at(path):
                raise UserError(
                    f"{a.name} and {b.name} played other {what} ({a.at(path)}, {b.at(path)}).",
                    "Only the same tasks can be paired.",
                )


def _pair(ours: Sequence[Run], theirs: Sequence[Run]) -> Pairs:
    scores = [{task.task_id: task.score for task in run.tasks} for run in (*ours, *theirs)]
    common = [task.task_id for task in ours[0].tasks if all(task.task_id in held for held in scores)]
    if not common:
        raise UserError(
            f"{ours[0].name} and {theirs[0].name} have no common task with a result.", "`memarena list` shows how far each is."
        )
    rows = [tuple(held[task] for task in common) for held in scores]
    places = [{task.task_id: task.position for task in run.tasks} for run in ours]
    played = tuple(tuple(sorted(range(len(common)), key=lambda i: held[common[i]])) for held in places)
    return Pairs(tuple(common), tuple(rows[: len(ours)]), tuple(rows[len(ours) :]), played)


def _describe(runs: Sequence[Run], common: Sequence[str]) -> dict[str, Any]:
    run = runs[0]
    values = [task.score for one in runs for task in one.tasks]
    # of several streams both are taken over the common tasks: a mean over all results could lie outside its own interval
    found = estimate(values, run.seed, "score") if len(runs) == 1 else None
    shared = None if found else _pooled(runs, common)
    held = set(common)
    return {
        "runs": [one.name for one in runs],
        "labels": dict(run.labels),
        "seeds": [one.seed for one in runs],
        "orders": [one.order for one in runs],
        "scored": len(values),
        "planned": sum(one.planned for one in runs),
        "infra_failures": sum(len(one.infra_failures) for one in runs),
        "agent_failures": sum(task.kind == "agent_failure" for one in runs for task in one.tasks),
        "without_partner": sum(task.task_id not in held for one in runs for task in one.tasks),
        "mean": shared.mean if shared else math.fsum(values) / len(values),
        "k": found.k if found else None,
        "interval": _interval(shared.interval if shared else found.interval if found else None),
        "scripted": run.scripted,
        "not_comparable": list(dict.fromkeys(line for one in runs for line in one.departures())),
    }


def _pooled(runs: Sequence[Run], common: Sequence[str]) -> statistics.Pooled:
    scores = [{task.task_id: task.score for task in run.tasks} for run in runs]
    return statistics.pooled([[held[task] for task in common] for held in scores], runs[0].seed, "side")


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


# --- the difference ---------------------------------------------------------------------------------------------------
def _split(pairs: Pairs) -> tuple[int, int, int, int]:
    """Tasks solved by both, only by the first, only by the second, by neither."""
    cells = list(zip(pairs.first[0], pairs.second[0], strict=True))
    return (cells.count((1.0, 1.0)), cells.count((1.0, 0.0)), cells.count((0.0, 1.0)), cells.count((0.0, 0.0)))


def _difference(pairs: Pairs, seed: int) -> dict[str, Any]:
    differences = pairs.differences
    mean = math.fsum(differences) / len(differences)
    spread = None
    if len(pairs.first) > 1:
        rows = [[a - b for a, b in zip(*sides, strict=True)] for sides in zip(pairs.first, pairs.second, strict=True)]
        found = statistics.pooled(rows, seed, "difference")
        interval, spread = found.interval, found.spread
    elif pairs.binary:
        interval = statistics.paired_proportions(*_split(pairs))
    else:
        interval = statistics.bootstrap(differences, seed, "paired")
    return {"mean": mean, "interval": _interval(interval), "spread_of_streams": spread}


def _tests(pairs: Pairs, seed: int) -> dict[str, Any]:
    found = statistics.permutation(pairs.differences, seed, "permutation")
    mcnemar = statistics.mcnemar(*([value == 1.0 for value in side[0]] for side in (pairs.first, pairs.second)))
    return {"mcnemar": asdict(mcnemar) if pairs.binary else None, "permutation": None if pairs.binary else asdict(found)}


def _effect(pairs: Pairs) -> dict[str, Any]:
    ours, theirs = pairs.means
    if not pairs.binary:
        return {"standardised": statistics.standardised(pairs.differences), "odds_ratio": None, "cohens_h": None}
    _, only_first, only_second, _ = _split(pairs)
    odds = statistics.odds_ratio(only_first, only_second)
    n = len(ours)
    return {
        "standardised": None,
        "odds_ratio": None
        if odds is None
        else {"value": _finite(odds.value), "low": odds.interval.low, "high": _finite(odds.interval.high)},
        "cohens_h": statistics.cohens_h(math.fsum(ours) / n, math.fsum(theirs) / n),
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity: null stands for it."""
    return value if math.isfinite(value) else None


def _needed(pairs: Pairs, alpha: float, detect: float | None) -> dict[str, Any]:
    """Tasks for the observed difference, and for `detect` where tasks are as discordant (or scores as spread) as here."""
    found: dict[str, Any] = {"alpha": alpha, "power": POWER, "observed": None, "detect": detect, "for_detect": None}
    if pairs.binary:
        _, only_first, only_second, _ = _split(pairs)
        n = len(pairs.tasks)
        found["observed"] = statistics.tasks_needed(only_first / n, only_second / n, alpha)
        if detect is not None:
            discordant = max((only_first + only_second) / n, detect)
            found["for_detect"] = statistics.tasks_needed((discordant + detect) / 2, (discordant - detect) / 2, alpha)
        return found
    differences = pairs.differences
    standardised = statistics.standardised(differences)
    if standardised is not None:
        found["observed"] = statistics.tasks_needed_graded(standardised, alpha)
        if detect is not None:
            found["for_detect"] = statistics.tasks_needed_graded(detect / statistics.spread(differences), alpha)
    return found


# --- along the stream -------------------------------------------------------------------------------------------------
def _sequential(ours: Run, theirs: Run, alpha: float) -> dict[str, Any]:
    """Pairs in the order in which they became complete: the later of the two positions, tasks played late at the end."""
    held = {task.task_id: task for task in theirs.tasks}
    both = [(task, held[task.task_id]) for task in ours.tasks if task.task_id in held]
    both.sort(key=lambda pair: (any(task.late for task in pair), max(task.position for task in pair)))
    found = statistics.sequential([a.score - b.score for a, b in both], alpha)
    planned = min(ours.planned, theirs.planned)
    return {**asdict(found), "decided": found.decided, "planned": planned, "finished": found.n >= planned}


def _learning(pairs: Pairs, seed: int) -> dict[str, Any]:
    """Blocks and trend of either side and of the difference, in which the difficulty of the tasks cancels out."""
    ours, theirs = pairs.along
    found = {}
    for name, values in (("first", ours), ("second", theirs), ("difference", [a - b for a, b in zip(ours, theirs, strict=True)])):
        trend = statistics.trend(values, seed, name)
        found[name] = {
            "blocks": [asdict(block) for block in statistics.blocks(values, seed, name, share=name != "difference")],
            "trend": None if trend is None else asdict(trend),
        }
    return found


def _tokens(ours: Sequence[Run], theirs: Sequence[Run], tasks: Sequence[str], seed: int) -> dict[str, Any]:
    """Tokens a task on the common tasks, and their paired difference."""
    first, second = (
        [math.fsum(run.tokens_by_task[task] for run in side) / len(side) for task in tasks] for side in (ours, theirs)
    )
    before = math.fsum(second)
    return {
        "first": math.fsum(first) / len(tasks),
        "second": before / len(tasks),
        "difference": (math.fsum(first) - before) / len(tasks),
        "interval": _interval(statistics.paired_bootstrap(first, second, seed, "tokens")),
        "relative": math.fsum(first) / before - 1 if before else None,
    }
