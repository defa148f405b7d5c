"""A run as a log of Inspect (`.eval`, log format 2), so that its viewer and its readers open our transcripts.

Facts of the format: inspect_ai.log and inspect_ai.event (UK AI Security Institute), version 0.3.285: a zip file with
`header.json`, `summaries.json`, `_journal/start.json` and one `samples/<id>_epoch_1.json` a task. A task is a sample; what an
agent does is a call of the tool `environment`; everything that a host or a memory recorded is an info event. Our log has
no clock: durations are as measured, and laid end to end from the run's beginning.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.archive.export.inspect_events import Clock, sample_events, turns
from harness.archive.export.inspect_usage import by
from harness.archive.recorded import committed_attempts
from harness.report.measure import Run
from harness.store.events import read_events
from harness.store.schema import TaskRow

FORMAT = 2
SCORER = "memarena"
Json = dict[str, Any]


def write_logs(runs: Sequence[Run], folder: Path) -> dict[str, int]:
    """One `<name>.eval` a run in `folder`; the names of the files and their numbers of samples."""
    counts: dict[str, int] = {}
    for run in runs:
        name = run.name.replace("/", "-")
        if f"{name}.eval" in counts:  # runs of one name from two folders
            name = f"{name}-{run.manifest['identity'][:8]}"
        counts[f"{name}.eval"] = _write(run, folder / f"{name}.eval")
    return counts


def _write(run: Run, path: Path) -> int:
    clock = Clock.of(run)
    calls: dict[int, list[Mapping[str, Any]]] = {}
    for row in run.view.calls():
        calls.setdefault(row["position"], []).append(row)
    summaries: list[Json] = []
    spec = _spec(run, clock)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, "_journal/start.json", {"version": FORMAT, "eval": spec, "plan": _plan(run)})
        for sample in _samples(run, clock, calls):
            _put(archive, f"samples/{sample['id']}_epoch_1.json", sample)
            summaries.append(_summary(sample))
        _put(archive, "summaries.json", summaries)
        every = [row for rows in calls.values() for row in rows]
        _put(archive, "header.json", _header(run, clock, spec, every, len(summaries)))
    return len(summaries)


def _put(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same run makes the same bytes
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    archive.writestr(info, text.encode("utf-8", "backslashreplace"))


def short(*parts: object) -> str:
    """An id in Inspect's manner, the same for the same parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:22]


# --- the run ------------------------------------------------------------------------------------------------------------
def _spec(run: Run, clock: Clock) -> Json:
    labels, manifest = run.labels, run.manifest
    ids = [task.task_id for task in run.tasks]
    commit = run.at("git.commit")
    return {
        "eval_id": short(manifest["identity"], "eval"),
        "run_id": short(manifest["identity"], "run"),
        "created": clock.at(0.0),
        "task": f"memarena/{labels['env']}",
        "task_id": short(manifest["identity"], "task"),
        "task_version": str(run.at("environment.version") or 0),
        "task_display_name": run.name,
        "task_attribs": {},
        "task_args": dict(run.at("cell.env") or {}),
        "task_args_passed": {},
        "solver": f"{labels['host']} with memory {labels['method']}",
        "solver_args": {"host": run.at("cell.host"), "method": run.at("cell.method")},
        "solver_args_passed": {},
        "tags": [labels["host"], labels["method"], labels["env"], labels["models"]],
        "dataset": {"name": labels["env"], "samples": len(ids), "sample_ids": ids, "shuffled": run.order != "official"},
        "model": labels["actor_model"] or labels["models"],
        "model_generate_config": {},
        "model_args": {},
        "config": {"epochs": 1},
        "revision": {"type": "git", "origin": "", "commit": commit, "dirty": run.at("git.dirty")} if commit else None,
        "packages": {key: value for key, value in (run.at("packages") or {}).items() if value},
        "metadata": {
            "identity": manifest["identity"],
            **{key: labels[key] for key in ("host", "method", "env", "models", "variant", "experiment")},
            "seed": run.seed,
            "order": run.order,
            "not_comparable_with_reported": run.departures(),
            "caveats": run.caveats(),
        },
        "scorers": [{"name": SCORER, "options": {}, "metrics": [{"name": "mean"}], "metadata": {}}],
    }


def _plan(run: Run) -> Json:
    step = {"solver": f"{run.labels['host']} with memory {run.labels['method']}", "params": {}, "params_passed": {}}
    return {"name": "plan", "steps": [step], "config": {}}


def _header(run: Run, clock: Clock, spec: Json, calls: Sequence[Mapping[str, Any]], samples: int) -> Json:
    scores = [task.score for task in run.tasks]
    mean = {"mean": {"name": "mean", "value": math.fsum(scores) / len(scores), "params": {}}} if scores else {}
    score = {
        "name": SCORER,
        "scorer": SCORER,
        "scored_samples": len(scores),
        "unscored_samples": samples - len(scores),
        "params": {},
        "metrics": mean,
    }
    return {
        "version": FORMAT,
        "status": "success" if run.status == "finished" else "cancelled",
        "eval": spec,
        "plan": _plan(run),
        "results": {"total_samples": run.planned, "completed_samples": len(scores), "scores": [score]},
        "stats": {
            "started_at": clock.at(0.0),
            "completed_at": clock.at(clock.end),
            "model_usage": by(calls, "model"),
            "role_usage": by(calls, "role"),
        },
        "invalidated": False,
    }


# --- samples ------------------------------------------------------------------------------------------------------------
def _samples(run: Run, clock: Clock, calls: Mapping[int, Sequence[Mapping[str, Any]]]) -> Iterator[Json]:
    """A sample a task with a result, in the order of play, then those that infrastructure has kept from one."""
    rows = {task.position: task for task in run.tasks}
    failed: dict[int, list[Mapping[str, Any]]] = {}
    for attempt in run.view.attempts():
        if attempt["kind"] != "committed":
            failed.setdefault(attempt["position"], []).append(attempt)
    seen = set()
    for position, events in committed_attempts(run.view):
        seen.add(position)
        yield _sample(run, clock, rows[position], events, calls.get(position, ()), failed.get(position, ()))
    for position, task in rows.items():
        if position not in seen:  # its log is lost, its result is not
            yield _sample(run, clock, task, [], calls.get(position, ()), failed.get(position, ()))
    yield from _unscored(run, clock, failed)


def _sample(
    run: Run,
    clock: Clock,
    task: TaskRow,
    events: Sequence[Mapping[str, Any]],
    calls: Sequence[Mapping[str, Any]],
    failed: Sequence[Mapping[str, Any]],
) -> Json:
    start, seconds = clock.start(task.position), clock.seconds(task.position)
    score = {
        "value": task.score,
        "explanation": task.feedback or task.error or "",
        "metadata": {"success": task.success, "status": task.status, "kind": task.kind, **dict(task.metrics)},
        "history": [],
    }
    question = next((event["observation"] for event in events if event["event"] == "task_start"), task.task_id)
    uuid = short(run.manifest["identity"], task.position)
    messages = [{"id": short(uuid, "input"), "role": "user", "source": "input", "content": question}, *turns(uuid, events)]
    last = next((event["action"] for event in reversed(events) if event["event"] == "step"), "")
    model = run.labels["actor_model"] or run.labels["models"]
    return {
        "id": task.task_id,
        "epoch": 1,
        "input": question,
        "target": "",
        "messages": messages,
        "output": _output(model, last),
        "scores": {SCORER: score},
        "metadata": {
            "position": task.position,
            "family": task.family,
            "group": task.task_group,
            "steps": task.steps,
            "late": task.late,
            "seed": task.seed,
        },
        "store": {},
        "events": sample_events(uuid, question, events, score, clock, start),
        "model_usage": by(calls, "model"),
        "role_usage": by(calls, "role"),
        "started_at": clock.at(start),
        "completed_at": clock.at(start + seconds),
        "total_time": seconds,
        "working_time": seconds,
        "uuid": uuid,
        "error_retries": [_error(attempt) for attempt in failed],
        "attachments": {},
        "turn_count": task.steps,
    }


def _unscored(run: Run, clock: Clock, failed: Mapping[int, Sequence[Mapping[str, Any]]]) -> Iterator[Json]:
    if not run.infra_failures:
        return
    events = read_events(run.view.directory / "events.jsonl")
    ids = {event["position"]: event["task_id"] for event in events if event["event"] == "attempt_start"}
    for position in run.infra_failures:
        task_id = ids.get(position, f"position {position}")
        *before, last = failed[position]
        yield {
            "id": task_id,
            "epoch": 1,
            "input": task_id,
            "target": "",
            "messages": [],
            "output": _output(run.labels["actor_model"] or run.labels["models"], ""),
            "metadata": {"position": position, "kind": "infra_failure"},
            "store": {},
            "events": [],
            "model_usage": {},
            "role_usage": {},
            "started_at": clock.at(clock.end),
            "completed_at": clock.at(clock.end),
            "uuid": short(run.manifest["identity"], position),
            "error": _error(last),
            "error_retries": [_error(attempt) for attempt in before],
            "attachments": {},
        }


def _error(attempt: Mapping[str, Any]) -> Json:
    text = str(attempt["error"] or attempt["kind"])
    return {"message": text, "traceback": text, "traceback_ansi": text}


def _output(model: str, text: str) -> Json:
    message = {"role": "assistant", "content": text, "source": "generate", "model": model}
    choices = [{"message": message, "stop_reason": "stop"}] if text else []
    return {"model": model, "choices": choices, "completion": text}


def _summary(sample: Json) -> Json:
    """What the viewer's list shows of a sample."""
    kept = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "role_usage", "started_at", "completed_at",
            "total_time", "working_time", "uuid", "turn_count")  # fmt: skip
    error = {"error": sample["error"]["message"]} if "error" in sample else {}
    found = {key: sample[key] for key in kept if key in sample}
    rest = {"retries": len(sample["error_retries"]), "completed": not error, "message_count": len(sample["messages"])}
    return {**found, **error, **rest}
