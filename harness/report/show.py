"""`memarena show`: everything one run measured, as JSON-able data and as text.

Unknown is None (text: –). Scores are in [0, 1] in the data and in percent in the text; tokens are counts, cost is in US
dollars, time in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.report.measure import Estimate, Run, score_of, sum_usage
from harness.report.show_text import render
from harness.store.schema import TaskRow
from harness.store.view import RunView, UsageRow

__all__ = ["render", "summary"]


def summary(view: RunView) -> dict[str, Any]:
    """What `view` measured. A run in progress is summarised as it stands."""
    run = Run(view)
    played = bool(run.tasks)
    return {
        "name": run.name,
        "directory": str(view.directory),
        "identity": run.manifest["identity"],
        "status": run.status,
        "labels": dict(run.labels),
        "seed": run.seed,
        "tasks": _tasks(run),
        "score": _estimate(run.score),
        "steps": _steps(run.tasks),
        "tokens": _tokens(run) if played else None,
        "not_committed": _not_committed(run),
        "cost": _cost(run),
        "seconds": view.seconds(),
        "calls_per_task": {row.group[0]: row.calls / len(run.tasks) for row in view.usage("role")} if played else None,
        "groups": _breakdown(run, "task_group"),
        "families": _breakdown(run, "family"),
        "scripted": run.scripted,
        "constrain_actions": run.constrained,
        "not_comparable": run.departures(),
        "notes": run.caveats(),
    }


def _estimate(found: Estimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    interval = None if found.interval is None else asdict(found.interval)
    return {"mean": found.value, "n": found.n, "k": found.k, "interval": interval}


def _tasks(run: Run) -> dict[str, Any]:
    errors = {attempt["position"]: attempt for attempt in run.view.attempts() if attempt["kind"] == "infra_failure"}
    failures = [
        {"position": position, "attempts": errors[position]["number"], "error": errors[position]["error"]}
        for position in run.infra_failures
    ]
    return {
        "planned": run.planned,
        "total": run.total,
        "order": run.order,
        "scored": len(run.tasks),
        "successes": sum(task.success for task in run.tasks),
        "agent_failures": sum(task.kind == "agent_failure" for task in run.tasks),
        "agent_failure_reasons": {task.task_id: task.error for task in run.tasks if task.kind == "agent_failure"},
        "infra_failures": failures,
        "late": [task.position for task in run.tasks if task.late],
    }


def _steps(tasks: Sequence[TaskRow]) -> dict[str, Any] | None:
    if not tasks:
        return None
    total = sum(task.steps for task in tasks)
    return {"total": total, "mean": total / len(tasks)}


def _usage(row: UsageRow) -> dict[str, Any]:
    values = asdict(row)
    values.pop("group")
    return {**values, "total_tokens": row.total_tokens}


def _tokens(run: Run) -> dict[str, Any]:
    """TOK-R1 total, and apart from it the benchmark's own judge (TOK-R5) and embeddings (TOK-R6)."""
    by_kind = run.view.usage("key", "kind")
    everything = sum_usage(by_kind)
    return {
        "method": _usage(sum_usage(run.view.usage(method_only=True))),
        "eval_judge": _usage(sum_usage([row for row in by_kind if row.group == ("eval_judge", "chat")])),
        "embeddings": _usage(sum_usage([row for row in by_kind if row.group[1] == "embedding"])),
        "usage_estimated": everything.estimated_calls > 0,
        **{
            f"by_{column}": [{column: row.group[0], **_usage(row)} for row in run.view.usage(column, method_only=True)]
            for column in ("role", "agent", "phase")
        },
    }


def _not_committed(run: Run) -> dict[str, Any]:
    """Attempts that left no result, and what they cost: paid for, and in no other number of the summary."""
    lost = [attempt for attempt in run.view.attempts() if attempt["kind"] != "committed"]
    called = [attempt for attempt in lost if attempt["calls"]]
    unknown = any(attempt["cost_usd"] is None for attempt in called)
    return {
        "attempts": len(lost),
        "by_kind": {kind: sum(attempt["kind"] == kind for attempt in lost) for kind in sorted({a["kind"] for a in lost})},
        "calls": sum(attempt["calls"] for attempt in lost),
        "input_tokens": sum(attempt["input_tokens"] for attempt in lost),
        "output_tokens": sum(attempt["output_tokens"] for attempt in lost),
        "total_tokens": sum(attempt["input_tokens"] + attempt["output_tokens"] for attempt in lost),
        "cost_usd": None if unknown else sum(attempt["cost_usd"] for attempt in called),
    }


def _cost(run: Run) -> dict[str, Any]:
    """Dollars of all committed calls, judge and embeddings included. None without a price for every call."""
    prices = run.at("models.prices")
    prices = prices if isinstance(prices, dict) else {}
    return {
        "usd": sum_usage(run.view.usage()).cost_usd if run.tasks else None,
        "prices_file": prices.get("file"),
        "prices_date": prices.get("date"),
    }


def _breakdown(run: Run, field: str) -> list[dict[str, Any]]:
    """Scores by a field of the tasks, in the order of first appearance; empty where no task has the field."""
    held: dict[str, list[TaskRow]] = {}
    for task in run.tasks:
        if (value := getattr(task, field)) is not None:
            held.setdefault(value, []).append(task)
    return [
        {
            "name": name,
            "successes": sum(task.success for task in tasks),
            "steps": _steps(tasks),
            "score": _estimate(score_of(tasks, run.seed, field, name)),
        }
        for name, tasks in held.items()
    ]
