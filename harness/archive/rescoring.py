"""`memarena rescore`: a finished run under another grader. Its recorded actions are done again in fresh worlds, and graded anew.

No model is asked. What a tool or a judge of the environment asked during the run is answered from its event log; a question
that was never asked refuses the rescoring. The memory learnt from the old scores: the new run says so wherever it is shown.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.archive.differing import changes
from harness.archive.layout import EVENTS, RESULTS
from harness.archive.recorded import committed_attempts, rebuild
from harness.archive.strip import not_being_played
from harness.cell import Cell
from harness.config import is_name
from harness.contracts import Call, LocalEmbedder, Outcome, Phase, Reply, Task, Unrepeatable, Usage
from harness.errors import ConfigError, ContentRefused, ContextOverflow, InfraError, UserError
from harness.models.tokens import cut_at_stop
from harness.report.text import plural
from harness.session import hand_over
from harness.store import manifest
from harness.store.events import EventLog
from harness.store.schema import TaskRow
from harness.store.view import RunView

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REPEATS = 3  # of a task whose world fails to open
_UPDATE = "UPDATE task SET score = ?, success = ?, status = ?, feedback = ?, metrics = ? WHERE position = ?"


@dataclass(frozen=True)
class Regraded:
    """A task under the new grader; `differing` counts observations that were not those of the run."""

    row: TaskRow
    old_score: float
    differing: int


def rescore(view: RunView, overrides: Sequence[str], name: str | None = None) -> dict[str, Any]:
    """Grade the run anew into a directory of its own beside it; what was found, as plain data.

    Raises UserError where more than grading would change, the world cannot be rebuilt, a model would be needed, or the new
    directory exists; InfraError where an environment fails again and again. Then nothing is left behind.
    """
    cell = _cell(view, overrides)
    made = name or f"{view.directory.name}-rescored-{'-'.join(_label(word) for word in overrides)}"
    if not all(is_name(part) for part in made.split("/")):
        raise ConfigError(f"{made!r} is no name for a run.", "Name it with --name.")
    target = view.directory.parent / made
    if target.exists():
        raise UserError(f"{target} exists.", "Name the new run with --name.")
    with not_being_played(view.directory), tempfile.TemporaryDirectory(prefix=".rescore-", dir=target.parent) as scratch:
        log = dict(committed_attempts(view))
        regraded = [_regrade(cell, row, log.get(row.position, [])) for row in view.tasks()]
        folder = Path(scratch) / "run"
        found = _write(view, cell, regraded, folder, made, overrides)
        target.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(target)
    return {"run": str(target), **found}


def render(found: Mapping[str, Any]) -> str:
    tasks = plural(found["tasks"], "task")
    changed = plural(len(found["changed"]), "score")
    lines = [
        f"{found['run']}: {tasks} graded anew ({', '.join(found['grading'])}), no model asked",
        f"  mean score {found['old_mean'] * 100:.2f} → {found['new_mean'] * 100:.2f}; {changed} changed",
    ]
    lines += [f"    {item['task_id']}: {item['old']:g} → {item['new']:g}" for item in found["changed"]]
    if found["differing_observations"]:
        lines.append(
            f"  {plural(found['differing_observations'], 'observation')} in {plural(found['differing_tasks'], 'task')} were not"
            " those of the run: these worlds may not be the same"
        )
    lines.append("  The memory learnt from the old scores; tables say so.")
    return "\n".join(lines)


# --- what may be graded anew ------------------------------------------------------------------------------------------
def _cell(view: RunView, overrides: Sequence[str]) -> Cell:
    if "rescored" in view.manifest:
        raise UserError(
            f"{view.directory} was graded anew itself.", f"Rescore the run it came from: {view.manifest['rescored']['from']}."
        )
    cell = rebuild(view, overrides)
    environment = cell.environment
    if isinstance(environment, Unrepeatable):
        raise UserError(
            f"{environment.name} cannot be graded anew from recorded actions: {environment.unrepeatable}.", "Run it again."
        )
    cell.require(environment.check())
    found = changes(view.manifest["cell"], cell.description)
    if other := [change for change in found if change.verdict != "RESCORE"]:
        listed = "; ".join(f"{change.key}: {change.old!r} → {change.new!r}" for change in other)
        raise UserError(f"More than the grading would change: {listed}.", "Such a run must be played again (`memarena diff`).")
    if not found:
        raise UserError(
            f"Nothing changes for {view.directory}.",
            "Name what to grade by (env.grader=…); `memarena replay` verifies a run as it is.",
        )
    if playing := [word for word in overrides if word.lstrip("+~").startswith(("run.", "hydra."))]:
        raise UserError(f"{playing[0]} says how a run is played.", "Name only what to grade by, as in env.grader=….")
    return cell


# --- one task -----------------------------------------------------------------------------------------------------------
def _regrade(cell: Cell, row: TaskRow, events: Sequence[Mapping[str, Any]]) -> Regraded:
    """The task's actions once more. What the agents failed at themselves stays scored 0, whoever grades."""
    if row.kind == "agent_failure":
        return Regraded(row, row.score, 0)
    steps = [event for event in events if event["event"] == "step"]
    if len(steps) != row.steps:
        raise UserError(
            f"The event log holds {len(steps)} of the {plural(row.steps, 'action')} of task {row.task_id}.", "Run it again."
        )
    task = cell.tasks[row.position]
    for left in reversed(range(REPEATS)):
        try:
            outcome, differing = _perform(cell, task, row.seed, steps, Answers(task, events))
            break
        except InfraError:
            if not left:
                raise
    graded = replace(
        row,
        score=outcome.score,
        success=outcome.success,
        status=outcome.status,
        feedback=outcome.feedback,
        metrics=dict(outcome.metrics),
    )
    return Regraded(graded, row.score, differing)


def _perform(cell: Cell, task: Task, seed: int, steps: Sequence[Mapping[str, Any]], models: Answers) -> tuple[Outcome, int]:
    with cell.environment.open(task, seed) as session:
        hand_over(session, models)
        differing = 0
        for event in steps:
            result = session.step(event["action"])
            differing += result.observation != event["observation"]
        return session.outcome(), differing


class Answers:
    """`harness.contracts.Models` from the event log of one attempt: what was asked then is answered as then, nothing else."""

    def __init__(self, task: Task, events: Sequence[Mapping[str, Any]]) -> None:
        self._task = task
        self._known: dict[str, list[Mapping[str, Any]]] = {}
        for event in events:
            if event["event"] == "model_call" and "messages" in event and (event["ok"] or _refusal(event)):
                self._known.setdefault(_question(event["role"], event["messages"]), []).append(event)

    def complete(self, call: Call) -> Reply:
        found = self._known.get(_question(call.role, call.messages))
        if not found:
            raise UserError(
                f"Grading task {self._task.task_id} needs a model: '{call.role}' was never asked this in the run.",
                "Only a run that has asked can be graded so; play it with this grader.",
            )
        event = found.pop(0) if len(found) > 1 else found[0]
        if not event["ok"]:
            if event["error"].startswith(ContextOverflow.__name__):
                raise ContextOverflow(event["model"], None, None)
            raise ContentRefused(event["error"].partition(": ")[2])
        usage = Usage(event["input_tokens"], event["output_tokens"])
        return Reply(cut_at_stop(event["text"], call.stop), usage, event["model"], event.get("finish_reason"))

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        return [self.complete(call) for call in calls]

    def embed(
        self, role: str, texts: Sequence[str], *, phase: Phase, agent: str | None = None, local: LocalEmbedder | None = None
    ) -> NDArray[np.float64]:
        if local is None:
            raise UserError(f"Grading task {self._task.task_id} needs an embedding model ('{role}').", "Run it again.")
        return local.embed(texts)


def _refusal(event: Mapping[str, Any]) -> bool:
    return str(event.get("error")).startswith((ContextOverflow.__name__, ContentRefused.__name__))


def _question(role: str, messages: Sequence[Any]) -> str:
    return json.dumps([role, list(messages)], sort_keys=True)


# --- the new run --------------------------------------------------------------------------------------------------------
def _write(
    view: RunView, cell: Cell, regraded: Sequence[Regraded], folder: Path, name: str, overrides: Sequence[str]
) -> dict[str, Any]:
    folder.mkdir()
    differing = [task for task in regraded if task.differing]
    origin = {
        "from": view.manifest.get("name") or view.directory.name,
        "identity": view.manifest["identity"],
        "grading": [f"{change.key}: {change.old} → {change.new}" for change in changes(view.manifest["cell"], cell.description)],
        "differing_observations": sum(task.differing for task in differing),
        "differing_tasks": len(differing),
    }
    content = {
        **cell.manifest(view.manifest.get("models", {}), view.manifest),
        "name": name,
        "run_options": view.manifest.get("run_options", {}),
        "rescored": origin,
    }
    if (view.directory / EVENTS).is_file():
        shutil.copyfile(view.directory / EVENTS, folder / EVENTS)
    with EventLog(folder / EVENTS) as events:
        for task in regraded:
            facts = {"old_score": task.old_score, "score": task.row.score, "differing_observations": task.differing}
            events.append("rescored", {"position": task.row.position, "task_id": task.row.task_id, **facts})
        offset = events.offset
    _results(view.directory / RESULTS, folder / RESULTS, regraded, cell.identity, offset)
    manifest.write(folder, content)
    old, new = [task.old_score for task in regraded], [task.row.score for task in regraded]
    return {
        **origin,
        "tasks": len(regraded),
        "old_mean": math.fsum(old) / len(old) if old else 0.0,
        "new_mean": math.fsum(new) / len(new) if new else 0.0,
        "changed": [
            {"task_id": task.row.task_id, "old": task.old_score, "new": task.row.score}
            for task in regraded
            if task.row.score != task.old_score
        ],
    }


def _results(source: Path, target: Path, regraded: Sequence[Regraded], identity: str, offset: int) -> None:
    uri = f"{source.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=10)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        with new:
            for task in regraded:
                row = task.row
                metrics = json.dumps(dict(row.metrics), sort_keys=True)
                new.execute(_UPDATE, (row.score, row.success, row.status, row.feedback, metrics, row.position))
            new.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", [("identity", identity), ("events_offset", str(offset))])


def _label(word: str) -> str:
    key, _, value = word.partition("=")
    text = f"{key.rpartition('.')[2]}-{value}"
    return "".join(char if char.isalnum() or char in "._-" else "+" for char in text)
