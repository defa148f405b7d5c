"""What the page shows before any task is opened: the runs, their tasks, and each run against each possible baseline.

All JSON-able; unknown is None. Scores are in [0, 1], differences in percentage points, tokens are counts, cost is in US dollars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.report.compare import Comparison, compare, measure_named, obstacles
from harness.report.measure import Run, score_of, sum_usage
from harness.report.statistics import Interval, McNemar, blocks, holm, trend
from harness.store.view import UsageRow

MOST_OBSTACLES = 4  # reasons that are told why two runs are not compared


@dataclass(frozen=True)
class Opening:
    """How a task begins: its goal (None in runs that did not log it yet) and its first observation."""

    goal: str | None
    text: str

    @classmethod
    def row(cls, found: Opening | None) -> dict[str, str | None]:
        return {"goal": found.goal if found else None, "opening": found.text if found else None}


def summary(runs: Sequence[Run], ids: Sequence[str], openings: Mapping[str, Opening]) -> dict[str, Any]:
    """`ids` are the runs' names in the page, `openings` how the tasks begin by task id."""
    return {
        "runs": [_run(run, name) for run, name in zip(runs, ids, strict=True)],
        "tasks": _tasks(runs, openings),
        "versus": {name: _against(run, runs, ids) for run, name in zip(runs, ids, strict=True)},
    }


# --- runs -------------------------------------------------------------------------------------------------------------
def _run(run: Run, name: str) -> dict[str, Any]:
    values = [task.score for task in run.tasks]
    return {
        "id": name,
        "labels": {key: run.labels[key] for key in ("host", "method", "env", "models", "models_label", "variant")},
        "seed": run.seed,
        "order": run.order,
        "planned": run.planned,
        "total": run.total,
        "status": run.status,
        "scripted": run.scripted,
        "score": None if run.score is None else {**asdict(run.score), "interval": _interval(run.score.interval)},
        "agent_failures": sum(task.kind == "agent_failure" for task in run.tasks),
        "infra_failures": run.infra_failures,
        "tokens": _tokens(run),
        "usage": [_usage(row) for row in run.view.usage("role", "phase", "key", "kind")] if run.tasks else [],
        "cost": sum_usage(run.view.usage()).cost_usd if run.tasks else None,
        "seconds": run.view.seconds(),
        "departures": run.departures(),
        "caveats": run.caveats(),
        "curve": [{**asdict(block), "interval": _interval(block.interval)} for block in blocks(values, run.seed, "score")],
        "trend": _trend(values, run.seed),
        "families": _families(run),
        "results": _results(run),
    }


def _interval(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def _tokens(run: Run) -> dict[str, int | bool] | None:
    """The method's own, the benchmark's judge's and the embeddings' (TOK-R1, R5, R6)."""
    if not run.tasks:
        return None
    rows = run.view.usage("key", "kind")
    method = sum_usage(run.view.usage(method_only=True))
    return {
        "method": method.total_tokens,
        "judge": sum_usage([row for row in rows if row.group == ("eval_judge", "chat")]).total_tokens,
        "embeddings": sum_usage([row for row in rows if row.group[1] == "embedding"]).total_tokens,
        "estimated": method.estimated_calls > 0,
    }


def _usage(row: UsageRow) -> dict[str, Any]:
    role, phase, key, kind = row.group
    part = "embeddings" if kind == "embedding" else "judge" if key == "eval_judge" else "method"
    return {
        "role": role,
        "phase": phase,
        "part": part,
        "calls": row.calls,
        "failed": row.failed_calls,
        "input": row.input_tokens,
        "cached": row.cached_input_tokens,
        "output": row.output_tokens,
        "reasoning": row.reasoning_tokens,
        "cost": row.cost_usd,
    }


def _trend(values: Sequence[float], seed: int) -> dict[str, Any] | None:
    found = trend(values, seed, "score")
    return None if found is None else {"slope": found.slope, "interval": _interval(found.interval), "p": found.p}


def _families(run: Run) -> list[dict[str, Any]]:
    found = []
    for family in dict.fromkeys(task.family for task in run.tasks):
        score = score_of([task for task in run.tasks if task.family == family], run.seed, "family", family)
        if score is not None:
            found.append({"name": family, "mean": score.value, "n": score.n, "interval": _interval(score.interval)})
    return found


def _results(run: Run) -> dict[str, dict[str, Any]]:
    """By task id; the tokens and dollars are the method's. Tasks lost to infrastructure have no result (see `infra_failures`)."""
    used = {row.group[0]: row for row in run.view.usage("position", method_only=True)}
    found = {}
    for task in run.tasks:
        usage = used.get(task.position)
        found[task.task_id] = {
            "position": task.position,
            "score": task.score,
            "success": task.success,
            "kind": task.kind,
            "status": task.status,
            "steps": task.steps,
            "late": task.late,
            "tokens": usage.total_tokens if usage else 0,
            "cost": usage.cost_usd if usage else 0.0,
        }
    return found


# --- tasks ------------------------------------------------------------------------------------------------------------
def _tasks(runs: Sequence[Run], openings: Mapping[str, Opening]) -> list[dict[str, Any]]:
    """Every task that some run has a result or a transcript of, in the official order."""
    known: dict[str, tuple[str, int, dict[str, Any]]] = {}
    for run in runs:
        for task in run.tasks:
            begins = Opening.row(openings.get(task.task_id))
            row = {"id": task.task_id, "family": task.family, "group": task.task_group, **begins}
            known.setdefault(task.task_id, (run.labels["env"], task.task_index, row))
    lost = [task for task in openings if task not in known]
    rows = [row for _, _, row in sorted(known.values(), key=lambda found: (found[0], found[1], found[2]["id"]))]
    return [*rows, *({"id": task, "family": None, "group": None, **Opening.row(openings[task])} for task in sorted(lost))]


# --- comparisons ------------------------------------------------------------------------------------------------------
def _against(baseline: Run, runs: Sequence[Run], ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every other run against `baseline`, by id; Holm's adjustment is over all of them that can be compared."""
    found: dict[str, dict[str, Any]] = {}
    for run, name in zip(runs, ids, strict=True):
        if run is baseline:
            continue
        why = obstacles(run, baseline)
        found[name] = {"why": why[:MOST_OBSTACLES]} if why else _pair(run, baseline)
    tested = [name for name, one in found.items() if one.get("p") is not None]
    for name, adjusted in zip(tested, holm([found[name]["p"] for name in tested]), strict=True):
        found[name]["holm"] = adjusted
    return found


def _pair(run: Run, baseline: Run) -> dict[str, Any]:
    made: Comparison = compare(run, baseline, measure_named("score"))
    if not made.pairs:
        return {"why": ["no task in common"]}
    ours, theirs = ({task.task_id: task.score for task in one.tasks} for one in (run, baseline))
    changes = [ours[task] - theirs[task] for task in ours if task in theirs]
    return {
        "pairs": made.pairs,
        "change": made.change,
        "interval": _interval(made.interval),
        "better": sum(change > 0 for change in changes),
        "worse": sum(change < 0 for change in changes),
        "test": "exact McNemar" if isinstance(made.test, McNemar) else "sign-flip permutation",
        "p": None if made.test is None else made.test.p,
    }
