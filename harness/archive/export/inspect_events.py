"""The events of one attempt in Inspect's words, and the clock that they need."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.archive.export.inspect_usage import total
from harness.archive.recorded import played_order
from harness.report.measure import Run

Json = dict[str, Any]
TOOL = "environment"
_STOPS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
# of a model call or a step these stand in the events themselves
_PLAIN = frozenset({"event", "position", "attempt"})


@dataclass(frozen=True)
class Clock:
    """Times in seconds since the run's beginning; `starts` and `lasts` by position."""

    created: datetime.datetime
    starts: Mapping[int, float]
    lasts: Mapping[int, float]

    @classmethod
    def of(cls, run: Run) -> Clock:
        created = datetime.datetime.fromisoformat(str(run.manifest.get("created") or "1970-01-01T00:00:00+00:00"))
        lasts, starts, now = run.view.seconds_by_position(), {}, 0.0
        for position in played_order(run.view):
            starts[position] = now
            now += lasts.get(position, 0.0)
        return cls(created, starts, lasts)

    @property
    def end(self) -> float:
        return sum(self.lasts.values())

    def start(self, position: int) -> float:
        return self.starts.get(position, 0.0)

    def seconds(self, position: int) -> float:
        return self.lasts.get(position, 0.0)

    def at(self, seconds: float) -> str:
        return (self.created + datetime.timedelta(seconds=seconds)).isoformat()


def turns(uuid: str, events: Sequence[Mapping[str, Any]]) -> Iterator[Json]:
    """The conversation of the team with its environment: an action, what came of it."""
    for event in events:
        if event["event"] != "step":
            continue
        call = f"{uuid}-{event['step']}"
        tool = {"id": call, "function": TOOL, "arguments": {"action": event["action"]}, "type": "function"}
        yield {
            "id": f"{call}-a",
            "role": "assistant",
            "source": "generate",
            "content": f"{event['agent']}: {event['action']}",
            "tool_calls": [tool],
        }
        yield {"id": f"{call}-o", "role": "tool", "content": event["observation"], "tool_call_id": call, "function": TOOL}


def sample_events(
    uuid: str, question: str, events: Sequence[Mapping[str, Any]], score: Json, clock: Clock, start: float
) -> list[Json]:
    """The attempt's events in order, between the sample's beginning and its score, in one span a kind of work."""
    made = [
        _event(f"{uuid}-init", "sample_init", clock, start, 0.0, sample={"input": question, "target": "", "id": uuid}, state={})
    ]
    worked = 0.0
    for number, event in enumerate(events):
        found = _of(f"{uuid}-e{number}", event, clock, start, worked)
        if found is not None:
            made.append(found)
        worked += event.get("latency_s") or 0.0
    made.append(_event(f"{uuid}-score", "score", clock, start, worked, score=score, target="", intermediate=False))
    return made


def _of(uuid: str, event: Mapping[str, Any], clock: Clock, start: float, worked: float) -> Json | None:
    kind = event["event"]
    if kind in ("attempt_start", "task_end"):
        return None  # the sample says the same
    if kind == "model_call" and "messages" in event:
        return _event(uuid, "model", clock, start, worked, **_model(uuid, event))
    if kind == "step":
        return _event(uuid, "tool", clock, start, worked, **_step(uuid, event, clock.at(start + worked)))
    data = {key: value for key, value in event.items() if key not in _PLAIN}
    return _event(uuid, "info", clock, start, worked, source=kind, data=data)


def _event(uuid: str, kind: str, clock: Clock, start: float, worked: float, **content: Any) -> Json:
    return {"uuid": uuid, "timestamp": clock.at(start + worked), "working_start": worked, "event": kind, **content}


def _model(uuid: str, event: Mapping[str, Any]) -> Json:
    text, model = event.get("text") or "", event["model"]
    message = {"id": f"{uuid}-r", "role": "assistant", "content": text, "source": "generate", "model": model}
    reason = _STOPS.get(str(event.get("finish_reason") or "stop"), "unknown")
    parameters = event.get("parameters") or {}
    config = {
        "max_tokens": parameters.get("max_tokens", parameters.get("max_completion_tokens")),
        "temperature": parameters.get("temperature"),
        "top_p": parameters.get("top_p"),
        "seed": parameters.get("seed"),
        "stop_seqs": parameters.get("stop"),
    }
    return {
        "model": model,
        "role": event["role"],
        "input": [{"role": item["role"], "content": item["content"]} for item in event["messages"]],
        "tools": [],
        "tool_choice": "none",
        "config": {key: value for key, value in config.items() if value is not None},
        "output": {
            "model": model,
            "choices": [{"message": message, "stop_reason": reason}],
            "completion": text,
            "usage": total([event]),
            "time": event.get("latency_s"),
        },
        "retries": event["attempt"] - 1,
        "error": event.get("error"),
        "cache": "read" if event.get("replayed") else None,
        "metadata": {key: event.get(key) for key in ("agent", "phase", "key", "endpoint", "step", "usage_source")},
    }


def _step(uuid: str, event: Mapping[str, Any], when: str) -> Json:
    problem = event.get("error")
    return {
        "type": "function",
        "id": uuid,
        "function": TOOL,
        "arguments": {"action": event["action"]},
        "result": event["observation"],
        "error": {"type": "unknown", "message": problem} if problem else None,
        "events": [],
        "completed": when,
        "agent": event["agent"],
        "metadata": {"step": event["step"], "reward": event["reward"], "done": event["done"]},
    }
