"""Measured against measured: which runs may be set against each other, and the paired difference between two.

Two runs are comparable when their cells differ in nothing but the memory method, and in how many tasks were played (the
common ones are paired). A difference to a paper's number is never computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from harness.errors import ConfigError, UserError
from harness.registry import did_you_mean
from harness.report.measure import Run
from harness.report.rounding import displayed_mean, exact_mean, half_up
from harness.report.statistics import Interval, McNemar, Permutation, bootstrap, holm, mcnemar, permutation
from harness.store.identity import differences

# The part of a cell that may differ between a method and its baseline. How many tasks were played is no part of the cell.
_FREE_SEGMENT = "method"
# What may differ between streams of one cell; the digest is that of the task ids in the order in which they are played.
_STREAM = ("seed", "run.seed", "order", "run.order", "task_ids_sha256")


@dataclass(frozen=True)
class Measure:
    """What is taken from a run: a value a task, their mean (or `total`: their sum), times `scale` for display.

    `success` says that success and failure stand behind values of 0 and 1, so that McNemar's test answers for them.
    """

    values: Callable[[Run], dict[str, float]]
    scale: float = 1.0
    unit: str = ""
    decimals: int = 2
    total: bool = False
    success: bool = False


def _scores(run: Run) -> dict[str, float]:
    return {task.task_id: task.score for task in run.tasks}


def _tokens(run: Run) -> dict[str, float]:
    return dict(run.tokens_by_task)


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "score": Measure(_scores, scale=100, unit="%", success=True),
        "tokens": Measure(_tokens, unit="tokens", decimals=0, total=True),
    }
)


def measure_named(name: str) -> Measure:
    """`score`, `tokens`, or `metric:<name>` for a metric that the environment records (tasks without it are left out).

    Raises ConfigError for any other name.
    """
    kind, _, metric = name.partition(":")
    if name in MEASURES:
        return MEASURES[name]
    if kind != "metric" or not metric:
        raise ConfigError(f"Nothing can be measured by {name!r}.", did_you_mean(name, [*MEASURES, "metric:<name>"]))

    def values(run: Run) -> dict[str, float]:
        found = {task.task_id: task.metrics.get(metric) for task in run.tasks}
        return {task: float(value) for task, value in found.items() if isinstance(value, int | float)}

    return Measure(values, unit="points")


def obstacles(run: Run, baseline: Run) -> list[str]:
    """What, besides the memory method, differs between two cells; empty where they may be compared."""
    before, after = _terms(baseline), _terms(run)
    cells = baseline.at("cell"), run.at("cell")
    found = differences(before, after)
    if all(isinstance(cell, Mapping) for cell in cells):
        found += [line for line in differences(*cells) if not _free(line.partition(": ")[0])]
    return found


def require_once(runs: Sequence[Run]) -> None:
    """Raises UserError where a run stands twice among streams: it would count as two."""
    places = [run.view.directory.resolve() for run in runs]
    for run, place in zip(runs, places, strict=True):
        if places.count(place) > 1:
            raise UserError(f"The run {run.name} is named twice.", "Name every run once.")


def other_cell(run: Run, first: Run) -> list[str]:
    """What differs between two streams besides seed and order; empty where they are streams of one cell."""
    cells = first.at("cell"), run.at("cell")
    lines = differences(*cells) if all(isinstance(cell, Mapping) for cell in cells) else []
    return [line for line in lines if line.partition(": ")[0] not in _STREAM]


def _terms(run: Run) -> dict[str, str | int]:
    return {**{key: run.labels[key] for key in ("host", "env", "models")}, "seed": run.seed, "order": run.order}


def _free(path: str) -> bool:
    return _FREE_SEGMENT in path.split(".")


@dataclass(frozen=True)
class Comparison:
    """`run` against `baseline` on the `pairs` tasks that both have a result for.

    `change` is in display units (percentage points for scores) or, where relative, in percent; `interval` its 95 % interval
    by a paired bootstrap (None for a relative change). `test` is McNemar's where all scores are 0 or 1, else a paired
    permutation test; totals have none. `holm` is its p adjusted over all methods compared with the same baseline run in the
    same column. `displayed` is the change as the papers print it, the difference of the two displayed means, and `exact` the
    same without rounding them first.
    """

    baseline: Run
    pairs: int
    change: float | None
    interval: Interval | None
    test: McNemar | Permutation | None
    holm: float | None = None
    displayed: str | None = None
    exact: str | None = None
    deltas: str = "displayed"

    @property
    def shown(self) -> str | None:
        return self.exact if self.deltas == "counts" else self.displayed


def compare(run: Run, baseline: Run, measure: Measure, relative: bool = False, deltas: str = "displayed") -> Comparison:
    """The paired difference of `run` to `baseline`; without common tasks, all is None. `deltas`: displayed or counts."""
    ours, theirs = measure.values(run), measure.values(baseline)
    common = [task for task in ours if task in theirs]
    if not common:
        return Comparison(baseline, 0, None, None, None)
    test = _test(run, measure, [[side[task] for task in common] for side in (ours, theirs)])
    if relative:
        before = math.fsum(theirs[task] for task in common)
        after = math.fsum(ours[task] for task in common)
        return Comparison(baseline, len(common), 100 * (after / before - 1) if before else None, None, test)
    changes = [(ours[task] - theirs[task]) * measure.scale for task in common]
    interval = bootstrap(changes, run.seed, "paired")
    sides = [[side[task] for task in common] for side in (ours, theirs)]
    shown = [Decimal(displayed_mean(side, measure.scale, measure.decimals)) for side in sides]
    exact = (exact_mean(sides[0]) - exact_mean(sides[1])) * Fraction(repr(measure.scale))
    return Comparison(
        baseline,
        len(common),
        math.fsum(changes) / len(changes),
        interval,
        test,
        displayed=str(shown[0] - shown[1]),
        exact=half_up(exact, measure.decimals),
        deltas=deltas,
    )


def _test(run: Run, measure: Measure, sides: Sequence[Sequence[float]]) -> McNemar | Permutation | None:
    if measure.total:
        return None
    if measure.success and all(value in (0.0, 1.0) for side in sides for value in side):
        return mcnemar(*([value == 1.0 for value in side] for side in sides))
    return permutation([a - b for a, b in zip(*sides, strict=True)], run.seed, "permutation")


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Holm's adjustment of one family: the methods compared with one baseline."""
    tested = [index for index, one in enumerate(comparisons) if one.test is not None]
    adjusted = holm([one.test.p for one in comparisons if one.test is not None])
    found = list(comparisons)
    for index, p in zip(tested, adjusted, strict=True):
        found[index] = replace(found[index], holm=p)
    return found


def choose_baseline(run: Run, candidates: Sequence[Run]) -> tuple[Run | None, str]:
    """The baseline run for `run`, and what to say about the choice (empty: nothing).

    Of several comparable ones the unchanged configuration that pairs most tasks is taken, then the first by name.
    """
    candidates = [one for one in candidates if one is not run]
    fitting = [one for one in candidates if not obstacles(run, one)]
    if not fitting:
        if not candidates:
            return None, ""
        nearest = min(candidates, key=lambda one: (len(obstacles(run, one)), one.name))
        lines = obstacles(run, nearest)
        more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
        return (
            None,
            f"not compared: the baseline run {nearest.name} differs in more than the method ({'; '.join(lines[:2])}{more})",
        )
    ours = {task.task_id for task in run.tasks}

    def preference(one: Run) -> tuple[bool, int, str]:
        return bool(one.labels["variant"]), -len(ours & {task.task_id for task in one.tasks}), one.name

    chosen = min(fitting, key=preference)
    return chosen, f"compared with {chosen.name}, one of {len(fitting)} baseline runs" if len(fitting) > 1 else ""
