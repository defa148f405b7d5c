"""`memarena stability`: what seeds and the order of the tasks do to one cell, from several of its streams."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.errors import UserError
from harness.report import statistics
from harness.report.compare import other_cell, require_once
from harness.report.contrast_text import interval, p_text, signed
from harness.report.measure import Run
from harness.report.text import NOTHING, columns, number, plural
from harness.store.view import RunView

# An order has something to say from three permutations on (two may differ by chance in any direction).
LEAST_ORDERS = 3


def stability(views: Sequence[RunView]) -> dict[str, Any]:
    """JSON-able. Scores in [0, 1]; only tasks with a result in every stream are pooled. Raises UserError for fewer than two
    streams, or streams that are not of one cell."""
    runs = sorted((Run(view) for view in views), key=lambda run: (run.seed, run.order, run.name))
    if len(runs) < 2:
        raise UserError(
            "One stream says nothing about how streams vary.", "Name several: other run.seed or run.order=shuffled:<seed>."
        )
    _check(runs)
    scores = [{task.task_id: task.score for task in run.tasks} for run in runs]
    places = [{task.task_id: task.position for task in run.tasks} for run in runs]
    common = [task for task in scores[0] if all(task in held for held in scores)]
    if not common:
        raise UserError("No task has a result in all of these streams.", "`memarena list` shows how far each is.")
    rows = [[held[task] for task in common] for held in scores]
    means = [math.fsum(row) / len(row) for row in rows]
    seed = runs[0].seed
    learning = statistics.learning(rows, [[held[task] for task in common] for held in places], seed)
    orders = len({run.order for run in runs})
    return {
        "runs": [_run(run) for run in runs],
        "tasks": len(common),
        "left_out": sum(len(held) - len(common) for held in scores),
        "seeds": len({run.seed for run in runs}),
        "orders": orders,
        "pooled": asdict(statistics.pooled(rows, seed)),
        "range": max(means) - min(means),
        "same_p": statistics.cochran_q(rows, seed),
        "learning": asdict(learning) if learning and orders >= LEAST_ORDERS else None,
    }


def _check(runs: Sequence[Run]) -> None:
    first = runs[0]
    require_once(runs)
    for run in runs:
        if not run.tasks:
            raise UserError(f"{run.name} has no result yet.", "`memarena list` shows how far each is.")
        if lines := other_cell(run, first):
            raise UserError(
                f"{run.name} is not of the cell of {first.name} ({'; '.join(lines[:2])}).",
                "Streams may differ in seed and order only.",
            )
    if len({run.at("environment.data_digest") for run in runs}) > 1:
        raise UserError("The streams did not play the same data.", "Streams may differ in seed and order only.")


def _run(run: Run) -> dict[str, Any]:
    assert run.score is not None  # _check has seen results
    found = run.score.interval
    return {
        "name": run.name,
        "seed": run.seed,
        "order": run.order,
        "scored": len(run.tasks),
        "planned": run.planned,
        "infra_failures": len(run.infra_failures),
        "mean": run.score.value,
        "interval": None if found is None else asdict(found),
    }


def render(found: Mapping[str, Any]) -> str:
    """`stability` as aligned plain text, ending without a newline."""
    rows: list[tuple[str, ...]] = [("run", "seed", "order", "tasks", "infra", "score %", "95 %")]
    rows += [
        (
            run["name"],
            str(run["seed"]),
            run["order"],
            f"{run['scored']}/{run['planned']}",
            f"+{run['infra_failures']}" if run["infra_failures"] else "0",
            number(run["mean"] * 100),
            interval(run["interval"], 100),
        )
        for run in found["runs"]
    ]
    pooled, learning = found["pooled"], found["learning"]
    of = f"{plural(pooled['streams'], 'stream')}, {plural(found['tasks'], 'common task')}; drawn by streams and tasks"
    spread = f"standard deviation {number(pooled['spread'] * 100)} points, range {number(found['range'] * 100)}"
    facts = [
        ("Pooled", f"{number(pooled['mean'] * 100)} % {interval(pooled['interval'], 100)} ({of})"),
        ("Between streams", f"{spread}; all alike: p = {p_text(found['same_p'])} (Cochran)"),
        ("Within tasks", _learning(learning, found["orders"])),
    ]
    return "\n".join([*columns(rows, right=frozenset({1, 3, 4, 5})), "", *columns(facts)])


def _learning(learning: Mapping[str, Any] | None, orders: int) -> str:
    if learning is None:
        return f"{NOTHING} (whether tasks go better later takes {LEAST_ORDERS} orders, here {orders}: run.order=shuffled:<seed>)"
    slope, bounds = signed(learning["slope"] * 100), interval(learning["interval"], 100)
    return f"{slope} points a 100 positions later {bounds}, p = {p_text(learning['p'])} ({orders} orders)"
