"""Fabricated runs in real SQLite files, written through the store as a stream would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.contracts import Task
from harness.models.ledger import LedgerRow
from harness.store.database import Store
from harness.store.identity import digest
from harness.store.schema import TaskRow

LEDGER = LedgerRow(
    position=0,
    task_index=0,
    task_id="",
    step=0,
    role="host.autogen.solver",
    agent="solver",
    phase="act",
    key="actor",
    kind="chat",
    endpoint="embedded",
    model="SmolLM2-135M-Instruct",
    attempt=1,
    ok=True,
    input_tokens=100,
    cached_input_tokens=10,
    output_tokens=20,
    reasoning_tokens=5,
    usage_source="provider",
    cost_usd=0.01,
    latency_s=0.5,
    replayed=False,
    constrained=False,
    digest="d",
    occurrence=0,
    error=None,
)


def manifest(name: str, planned: int, **changes: Any) -> dict[str, Any]:
    """A manifest of a full official run; `changes` are dotted paths written with two underscores."""
    labels = {
        "host": "autogen",
        "method": "none",
        "env": "alfworld",
        "models": "embedded",
        "models_label": "SmolLM2-135M-Instruct (embedded)",
        "variant": "",
        "experiment": None,
    }
    found: dict[str, Any] = {
        "schema_version": 1,
        "memarena": "0.1.0",
        "name": name,
        "labels": labels,
        "seed": 0,
        "tasks": {"n": planned, "total": planned, "order": "official", "ids_sha256": "0" * 64},
        "environment": {
            "version": "1-A",
            "max_steps": 30,
            "official_max_steps": 30,
            "data_digest": "d",
            "provenance": {"source": "official json_2.1.1"},
        },
        "models": {
            "scripted": False,
            "constrain_actions": False,
            "prices": {"file": "default.yaml", "date": "2026-11-01", "digest": "p"},
        },
        "run_options": {},
        "cell": {"host": {"name": "autogen"}, "method": {"name": "none"}, "env": {"name": "alfworld"}, "seed": 0},
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = found
        for part in parents:
            place = place[part]
        place[last] = value
    for group in ("host", "method", "env"):
        found["cell"][group].setdefault("name", labels[group])
        found["cell"][group]["name"] = labels[group]
    found["cell"]["seed"] = found["seed"]
    found.setdefault("identity", digest(found["cell"]))
    return found


def play(
    store: Store,
    position: int,
    score: float,
    calls: Sequence[LedgerRow] = (),
    *,
    group: str | None = None,
    kind: str = "scored",
    late: bool = False,
    end: str = "committed",
    metrics: dict[str, Any] | None = None,
) -> None:
    """One attempt at one task; `end` other than committed abandons it."""
    family = ("pick", "heat")[position % 2]
    task = Task(f"task-{position}", position, "goal", "key", family, group)
    store.begin(position, task)
    for call in calls:
        values = {**call.__dict__, "position": position, "task_index": position, "task_id": task.task_id}
        store.write(LedgerRow(**values), {})
    if end != "committed":
        store.abandon(end, "the site is down")  # type: ignore[arg-type]
        return
    row = TaskRow(
        position,
        position,
        task.task_id,
        family,
        group,
        7,
        kind,
        score,
        score == 1.0,
        "completed",
        4,
        "",
        metrics or {},
        None,
        late,  # type: ignore[arg-type]
    )
    store.commit(row, 1.5, 1.0)


def play_counts(store: Store, scores: Sequence[float], tokens: int = 0) -> None:
    """Results of many tasks at once, written as `play` would, in one transaction; `tokens` each, by one call a task."""
    play(store, 0, scores[0], [replace(LEDGER, input_tokens=tokens, output_tokens=0)] if tokens else [])
    for table, key in (("task", "task_index"), ("ledger", "task_index")):
        columns = [row[1] for row in store.db.execute(f"PRAGMA table_info({table})") if row[1] != "id"]
        first = store.db.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE position = 0").fetchone()
        if first is None:
            continue
        held = dict(zip(columns, tuple(first), strict=True))
        rows = []
        for position, score in enumerate(scores[1:], start=1):
            held.update({"position": position, key: position, "task_id": f"task-{position}"})
            if table == "task":
                held.update(score=score, success=int(score == 1.0))
            rows.append(tuple(held.values()))
        marks = ", ".join("?" * len(columns))
        store.db.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
    store.db.commit()
