"""`memarena memory`: what a run's memory has learnt, as its class describes it, and what its own calls cost.

The class is found through the registry by the name in the manifest; nothing here knows a concrete method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Inspectable
from harness.errors import UserError
from harness.registry import did_you_mean, methods
from harness.store.view import RunView

NOT_THE_MEMORY = ("host.", "env.", "opt.")  # roles of the ledger that are no call of the memory's


def inspect_run(view: RunView) -> dict[str, Any]:
    """The class's description of its store, and `calls`: the memory's own by role. Raises UserError where it has none to give."""
    cls, path = _class_of(view), view.directory / "stream.sqlite"
    if not path.exists():
        raise UserError(f"{view.directory} holds no results yet.", "The same command that began it continues it.")
    found = dict(cls.inspect(path, view.manifest["cell"]["method"]))
    found["calls"] = _calls(view, found.get("envelope") or {})
    return found


def graph_of(view: RunView, task: str, style: str) -> str:
    """The graph of the task whose id contains `task` (or whose number in the pool it is), drawn as mermaid or dot."""
    cls = _class_of(view)
    tasks = [t for t in inspect_run(view).get("tasks", []) if t.get("graph")]
    if not tasks:
        raise UserError(f"{view.directory} holds no graphs.", "Only a memory that plans with graphs keeps them.")
    chosen = [t for t in tasks if task in (t["task_id"], str(t.get("task_no")))] or [t for t in tasks if task in t["task_id"]]
    if not chosen:
        raise UserError(f"No task {task!r} in {view.directory}.", did_you_mean(task, [t["task_id"] for t in tasks]))
    return cls.diagram(chosen[0]["graph"], style)


def render(found: Mapping[str, Any]) -> str:
    """As text: the memory's own words, then the table of its calls."""
    lines = [str(found["text"]), "", "The memory's own calls (a task; input + output tokens):"]
    if not found["calls"]:
        return "\n".join([*lines, "  none"])
    lines.append(f"  {'role':<24}{'calls':>8}{'tokens':>10}{'a call':>9}  envelope")
    for row in found["calls"]:
        lines.append(
            f"  {row['role']:<24}{row['calls_per_task']:>8.2f}{row['tokens_per_task']:>10.0f}{row['tokens_per_call']:>9.0f}"
            f"  {row['envelope'] or '–'}"
        )
    return "\n".join(lines)


def _class_of(view: RunView) -> Inspectable:
    method = view.manifest.get("cell", {}).get("method")
    if not isinstance(method, Mapping) or "name" not in method:
        raise UserError(f"{view.directory / 'manifest.json'} names no method.", "It was damaged, or made by hand.")
    name = str(method["name"])
    cls: object = methods().load(name)
    if not isinstance(cls, Inspectable):
        raise UserError(f"The method {name} has nothing to show beside its results.", f"See `memarena show {view.directory}`.")
    return cls


def _calls(view: RunView, envelope: Mapping[str, str]) -> list[dict[str, Any]]:
    tasks = len(view.tasks())
    rows = [row for row in view.usage("role", method_only=True) if not str(row.group[0]).startswith(NOT_THE_MEMORY)]
    if not rows or not tasks:
        return []
    parts = [(str(row.group[0]), row.calls, row.total_tokens) for row in rows]
    parts.append(("(all)", sum(calls for _, calls, _ in parts), sum(tokens for *_, tokens in parts)))
    return [
        {
            "role": role,
            "calls_per_task": calls / tasks,
            "tokens_per_task": tokens / tasks,
            "tokens_per_call": tokens / calls,
            "envelope": envelope.get(role),
        }
        for role, calls, tokens in parts
    ]
