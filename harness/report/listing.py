"""`memarena list`: one line a run."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.report.measure import Run, sum_usage
from harness.report.show_text import interval_text
from harness.report.text import NOTHING, columns, dollars, integer, number
from harness.store.view import RunView, find_runs


def listing(root: Path) -> list[dict[str, Any]]:
    """All runs below `root` by path, JSON-able. A run that cannot be read is listed with status `unreadable` and the error."""
    return [_line(view, root) for view in find_runs(root)]


def _line(view: RunView, root: Path) -> dict[str, Any]:
    place = str(view.directory.relative_to(root))
    try:
        return {"directory": place, **_entry(view), "error": None}
    except (UserError, ValueError, AssertionError, OSError, sqlite3.Error) as error:
        return {"directory": place, "name": view.directory.name, "status": "unreadable", "error": str(error)}


def _entry(view: RunView) -> dict[str, Any]:
    run = Run(view)
    score = run.score
    return {
        "name": run.name,
        "labels": dict(run.labels),
        "seed": run.seed,
        "status": run.status,
        "scored": len(run.tasks),
        "planned": run.planned,
        "infra_failures": len(run.infra_failures),
        "score": None if score is None else score.value,
        "interval": None if score is None or score.interval is None else [score.interval.low, score.interval.high],
        "tokens": None if run.usage is None else run.usage.total_tokens,
        "cost_usd": sum_usage(view.usage()).cost_usd if run.tasks else None,
        "scripted": run.scripted,
    }


def render(lines: Sequence[Mapping[str, Any]]) -> str:
    """`listing` as aligned text; scores in percent."""
    if not lines:
        return "No runs."
    head = ("run", "host", "method", "env", "models", "status", "tasks", "score %", "95 %", "tokens", "cost", "")
    return "\n".join(columns([head, *map(_columns, lines)], right=frozenset({6, 7, 8, 9, 10})))


def _columns(line: Mapping[str, Any]) -> tuple[str, ...]:
    if line["status"] == "unreadable":
        return (line["name"], *[NOTHING] * 4, "unreadable", *[NOTHING] * 5, line["error"])
    labels = line["labels"]
    low_high = line["interval"]
    interval = None if low_high is None else {"interval": {"low": low_high[0], "high": low_high[1]}}
    marks = ["scripted"] if line["scripted"] else []
    marks += [f"+{line['infra_failures']} infra"] if line["infra_failures"] else []
    marks += [labels["variant"]] if labels["variant"] else []
    return (
        line["name"],
        *(labels[key] for key in ("host", "method", "env", "models")),
        line["status"],
        f"{line['scored']}/{line['planned']}",
        number(None if line["score"] is None else line["score"] * 100),
        interval_text(interval),
        integer(line["tokens"]),
        dollars(line["cost_usd"]),
        ", ".join(marks),
    )
