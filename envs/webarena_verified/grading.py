"""From an answer and a network record to a score: `grade`, a pure function that anyone can call. No model takes part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, EnvironmentCrashed


@dataclass(frozen=True)
class Grade:
    """`score` is 1.0 or 0.0; `reasons` are the checks that did not hold; `error` says that the evaluator itself failed."""

    score: float
    reasons: tuple[str, ...] = ()
    error: str = ""


def grade(task_id: int | str, answer: str | Mapping[str, Any] | None, record: Path, urls: Mapping[str, str]) -> Grade:
    """Grade `answer` and the HAR file `record` by webarena-verified's evaluators. `urls`: address of every site of the task.

    Raises EnvironmentCrashed where the record is missing or damaged: that is the browser's failure, not the agents'.
    """
    from webarena_verified.api import WebArenaVerified

    trace = read_record(record)
    verified = WebArenaVerified(config=_config(urls))
    try:
        verified.get_task(int(task_id))
    except ValueError as error:
        raise ConfigError(f"{task_id!r} is no task of WebArena-Verified.") from error
    given = dict(answer) if isinstance(answer, Mapping) else answer
    result = verified.evaluate_task(task_id=int(task_id), agent_response=given, network_trace=trace)
    if str(result.status) == "error":
        return Grade(0.0, error=" ".join(str(result.error_msg or "the evaluator failed").split())[:300])
    return Grade(float(result.score), tuple(_reasons(result)))


def read_record(record: Path) -> Any:
    """The HAR file as webarena-verified's NetworkTrace. Raises EnvironmentCrashed where it is missing, cut off or empty."""
    from webarena_verified.types.tracing import NetworkTrace

    try:
        trace = NetworkTrace.from_har(record)
        for event in trace.events:  # what every evaluator reads
            _ = event.url, event.http_method, event.request_status
        return trace
    except FileNotFoundError as error:
        raise EnvironmentCrashed("The browser has left no network record of this task: it cannot be graded.") from error
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        what = "is no JSON" if isinstance(error, json.JSONDecodeError) else f"is damaged ({type(error).__name__}: {error})"
        raise EnvironmentCrashed(f"The network record of this task {what}: it cannot be graded.") from error


def _config(urls: Mapping[str, str]) -> Any:
    from webarena_verified.types.config import WebArenaVerifiedConfig

    environments = {f"__{site.upper()}__": {"urls": [url.rstrip("/")]} for site, url in urls.items()}
    return WebArenaVerifiedConfig(environments=environments)


def _reasons(result: Any) -> list[str]:
    """The names of the failed checks, evaluator by evaluator. What they expected stays with the grader: memories read this."""
    return [
        f"{part.evaluator_name}: {check.assertion_name}"
        for part in result.evaluators_results or ()
        for check in part.assertions or ()
        if str(check.status) != "success"
    ]
