"""From a run's event log to one chunk a task: what was said, done and answered, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.report.html.texts import Mask, Repeats
from harness.report.measure import Run
from harness.store.events import read_events

# of an event what the page shows elsewhere or not at all
_KNOWN = frozenset({"event", "position", "task_index", "task_id"})
_FRAME = frozenset({"attempt_start", "task_start", "task_end", "attempt_abandoned", "attempt_aborted", "torn", "torn_line"})
_ATTEMPT = ("number", "kind", "error", "calls", "input_tokens", "output_tokens", "cost_usd", "steps")
_USAGE = {"in": "input_tokens", "cached": "cached_input_tokens", "out": "output_tokens", "reasoning": "reasoning_tokens"}


@dataclass
class Attempt:
    """One attempt's events as the log has them. `ended` says that it left a result."""

    position: int
    number: int
    task_id: str
    start: Mapping[str, Any] = field(default_factory=dict)
    end: Mapping[str, Any] | None = None
    events: list[Mapping[str, Any]] = field(default_factory=list)


def attempts(run: Run) -> Iterator[Attempt]:
    """The attempts of the log in their order, one at a time: a log may be larger than what should be held."""
    current: Attempt | None = None
    for event in read_events(run.view.directory / "events.jsonl"):
        kind = event["event"]
        if kind == "attempt_start" and {"position", "attempt"} <= event.keys():
            if current is not None:
                yield current
            current = Attempt(event["position"], event["attempt"], str(event.get("task_id", "")))
        elif current is None:
            continue
        elif kind == "task_start":
            current.start = event
        elif kind == "task_end":
            current.end = event
        elif kind not in _FRAME:
            current.events.append(event)
    if current is not None:
        yield current


def shown(run: Run) -> Iterator[Attempt]:
    """Of each task the attempt that left its result, or without a result the last one."""
    results = {task.position for task in run.tasks}
    last: dict[int, Attempt] = {}
    for attempt in attempts(run):
        if attempt.end is not None and attempt.position in results:
            last.pop(attempt.position, None)
            yield attempt
        elif attempt.position not in results:
            last[attempt.position] = attempt
    yield from (last[position] for position in sorted(last))


class Chunks:
    """Makes the chunks of one run. `prompts` False leaves out what the models were sent."""

    def __init__(self, run: Run, mask: Mask, prompts: bool) -> None:
        self.run, self.mask, self.prompts = run, mask, prompts
        self._results = {task.position: task for task in run.tasks}
        self._attempts: dict[int, list[dict[str, Any]]] = {}
        for row in run.view.attempts():
            self._attempts.setdefault(row["position"], []).append(row)

    def chunk(self, attempt: Attempt) -> dict[str, Any]:
        """JSON-able: the task's opening, what memory it was given, its items in order, its result, and all its attempts."""
        repeats = Repeats()
        result = self._results.get(attempt.position)
        made = {
            "opening": attempt.start.get("observation"),
            "memory": attempt.start.get("memory"),
            "titles": attempt.start.get("guidance", []),
            "position": attempt.position,
            "result": None
            if result is None
            else {
                "score": result.score, "kind": result.kind, "status": result.status, "steps": result.steps,
                "feedback": result.feedback, "metrics": dict(result.metrics), "error": result.error, "late": result.late,
            },
            "attempts": [
                {key: row[key] for key in _ATTEMPT} for row in self._attempts.get(attempt.position, [])
            ],
        }  # fmt: skip
        plain: dict[str, Any] = self.mask.tree(made)
        plain["items"] = [self._item(event, repeats) for event in attempt.events]
        return plain

    def _item(self, event: Mapping[str, Any], repeats: Repeats) -> dict[str, Any]:
        if event["event"] == "model_call":
            return self._call(event, repeats)
        kept = {key: value for key, value in event.items() if key not in _KNOWN and value is not None}
        return {"t": event["event"], **self.mask.tree(kept)}

    def _call(self, event: Mapping[str, Any], repeats: Repeats) -> dict[str, Any]:
        made: dict[str, Any] = {"t": "call", "step": event.get("step", 0), "role": event.get("role", "")}
        for key in ("agent", "phase", "model", "error"):
            made[key] = event.get(key)
        made["usage"] = [event.get(name, 0) for name in _USAGE.values()]
        made["source"], made["cost"], made["s"] = (
            event.get("usage_source"),
            event.get("cost_usd"),
            _rounded(event.get("latency_s")),
        )
        if event.get("attempt", 1) != 1:
            made["retry"] = event["attempt"]
        for key in ("replayed", "constrained"):
            if event.get(key):
                made[key] = True
        if event.get("kind") == "embedding":
            made["embeds"] = len(event.get("texts", ()))
        if (text := event.get("text")) is not None:
            made["text"] = self.mask(str(text))
        if event.get("finish_reason") not in (None, "stop"):
            made["finish"] = event["finish_reason"]
        if self.prompts:
            made["prompt"] = self._prompt(event, repeats)
        return self._tidy(made)

    def _prompt(self, event: Mapping[str, Any], repeats: Repeats) -> list[Any]:
        messages: Sequence[Any] = event.get("messages") or event.get("texts") or ()
        found = []
        for number, message in enumerate(messages):
            plain = isinstance(message, Mapping)
            speaker = str(message.get("role", "")) if plain else "text"
            text = self.mask(_content(message.get("content") if plain else message))
            found.append([speaker, repeats.encode(f"{number} {speaker}", text)])
        return found

    def _tidy(self, made: dict[str, Any]) -> dict[str, Any]:
        made["error"] = self.mask.tree(made["error"])
        return {key: value for key, value in made.items() if value is not None}


def _content(value: Any) -> str:
    """A message's content as text; of one in parts (text and pictures) the texts, and a word for each other part."""
    if isinstance(value, list):
        return "\n".join(
            str(part.get("text", f"[{part.get('type', 'part')}]")) if isinstance(part, dict) else str(part) for part in value
        )
    return "" if value is None else str(value)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
