"""Fabricated runs with transcripts, written through the store as a stream would: what a report has to show, and what attacks it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.contracts import Task
from harness.models.ledger import LedgerRow
from harness.store.database import Store
from harness.store.identity import digest
from harness.store.schema import TaskRow

HOSTILE = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'> [[script]] \u2028 \ud800 end"
HUGE = "long " * 30_000
FAMILIES = ("pick", "heat")
CALL = LedgerRow(
    position=0, task_index=0, task_id="", step=0, role="host.autogen.solver", agent="solver", phase="act", key="actor", kind="chat",
    endpoint="main", model="some-model", attempt=1, ok=True, input_tokens=100, cached_input_tokens=10, output_tokens=20,
    reasoning_tokens=5, usage_source="provider", cost_usd=0.01, latency_s=0.5, replayed=False, constrained=False, digest="d",
    occurrence=0, error=None,
)  # fmt: skip
GRAPH = {
    "version": 1,
    "nodes": [
        {"id": "n1", "action": "find the mug", "agent": "solver", "status": "pending"},
        {"id": "n2", "action": "heat the mug", "agent": "solver", "status": "pending"},
    ],
    "edges": [["n1", "n2"]],
}


def manifest(name: str, method: str, planned: int, **changes: Any) -> dict[str, Any]:
    """A full official run with a model that has prices."""
    cell = {"host": {"name": "autogen"}, "method": {"name": method}, "env": {"name": "alfworld"}, "seed": 0}
    labels = {
        "host": "autogen",
        "method": method,
        "env": "alfworld",
        "models": "some",
        "models_label": "Some model",
        "variant": "",
    }
    made = {
        "schema_version": 1,
        "name": name,
        "labels": {**labels, **changes.pop("labels", {})},
        "seed": 0,
        "tasks": {"n": planned, "total": planned, "order": "official"},
        "environment": {"max_steps": 30, "official_max_steps": 30, "provenance": {"source": "official"}},
        "models": {"scripted": False, "constrain_actions": False, "endpoints": {"main": {"api_key_env": "REPORT_TEST_KEY"}}},
        "run_options": {},
        "cell": cell,
        "identity": digest(cell),
    }
    made["models"] = {**made["models"], **changes.pop("models", {})}  # type: ignore[dict-item]
    return {**made, **changes}


def task(position: int) -> Task:
    family = FAMILIES[position % 2]
    return Task(f"{family}/task {position}", position, "goal", "key", family, None)


class Player:
    """Plays tasks of one run: what is said and done is given, the ledger follows from it."""

    def __init__(self, store: Store, call: LedgerRow = CALL) -> None:
        self.store, self.call = store, call

    def begin(self, position: int, opening: str, memory: dict[str, Any] | None = None) -> None:
        self.store.begin(position, task(position))
        event: dict[str, Any] = {"task_id": task(position).task_id, "observation": opening, "guidance": []}
        self.store.events.append("task_start", {**event, **({} if memory is None else {"memory": memory})})

    def say(self, position: int, step: int, prompt: Sequence[tuple[str, str]], text: str, **changes: Any) -> None:
        row = replace(self.call, position=position, task_index=position, task_id=task(position).task_id, step=step, **changes)
        messages = [{"role": role, "content": content} for role, content in prompt]
        self.store.write(row, {"messages": messages, "parameters": {}, "text": text, "finish_reason": "stop"})

    def act(self, position: int, step: int, action: str, observation: str, error: str | None = None) -> None:
        content = {"step": step, "agent": "solver", "action": action, "observation": observation, "reward": 0.0, "done": False}
        self.store.log(position, "step", {**content, "error": error})

    def note(self, kind: str, **content: Any) -> None:
        self.store.events.append("memory_note", {"kind": kind, **content})

    def end(self, position: int, score: float, kind: str = "scored", error: str | None = None) -> None:
        one = task(position)
        row = TaskRow(
            position, position, one.task_id, one.family, None, 7, kind, score, score == 1.0, "completed", 2,  # type: ignore[arg-type]
            "graded", {"m": 1}, error, False,
        )  # fmt: skip
        self.store.commit(row, 1.5, 1.0)


def write_run(root: Path, name: str, method: str, scores: Sequence[float | str], call: LedgerRow = CALL, **changes: Any) -> Path:
    """A run whose tasks each have two steps; a score "infra" is a task lost to infrastructure, "agent" an agent failure, "open" one in play."""
    directory = root / name
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps(manifest(name, method, len(scores), **changes)))
    with Store(directory) as store:
        store.db.execute("PRAGMA synchronous = OFF")
        player = Player(store, call)
        for position, score in enumerate(scores):
            _play(player, position, score, method)
    return directory


def _play(player: Player, position: int, score: float | str, method: str) -> None:
    memory = {"cards": [], "insights": {}, "procedures": ["Procedure: warm things\n1. find\n2. heat"], "brief": ""}
    player.begin(position, f"You see room {position}.\nYour task: warm mug {position}", memory if method == "sepm" else None)
    if method == "sepm":
        player.note("graph", step=0, graph=GRAPH)
    prompt = [("system", "You are the solver."), ("user", f"Room {position}\n> ")]
    player.say(position, 0, prompt, f"{method} goes to room {position}")
    player.act(position, 1, "go to shelf 1", "You arrive at shelf 1.")
    if score == "infra":
        player.store.abandon("infra_failure", "the site is down")
        return
    if score == "open":
        return
    if method == "sepm":
        player.note("graph_status", step=1, changed={"n1": "verified", "n2": "running"})
        player.note("divergence", step=1, agent="solver", reasons=["goal"], goal=0.5, plan=None, conflicts=[])
        player.note("correction", step=1, agent="solver", reasons=["goal"], text="Your goal has drifted.")
    prompt[1] = ("user", f"Room {position}\n> go to shelf 1\nYou arrive at shelf 1.\n> ")
    player.say(position, 1, prompt, HOSTILE if position == 0 else f"{method} heats")
    player.act(
        position, 2, HOSTILE if position == 0 else f"heat mug with {method}", HUGE if position == 0 else "It is hot.", "too hot"
    )
    if method == "sepm":
        player.note("graph_status", step=2, changed={"n2": "failed"})
        player.note(
            "memory_change", item="procedure c1", change="changed", why="v2", before="find\nheat", after="find\nopen\nheat"
        )
    failed = score == "agent"
    player.end(
        position, 0.0 if failed else float(score), "agent_failure" if failed else "scored", "no answer" if failed else None
    )
