"""Grading: what a workspace looks like against the checks of its task (`grade`). Two graders, `official` and `fixed`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from envs.officebench.grading import fixed, official
from envs.officebench.grading.places import Places
from harness.contracts import Outcome, Task
from harness.errors import ConfigError

GRADERS = ("official", "fixed")
# the functions of both modules that are checks; the task files call them evaluate_<name>
CHECKS = (
    "contain",
    "not_contain",
    "file_exist",
    "file_not_exist",
    "diff_contain_text",
    "excel_cell_value",
    "excel_cell_comparator",
    "exact_match",
    "calendar_no_overlap",
)


def grade(task: Task, workspace: Path, grader: str = "official") -> Outcome:
    """Score 1 where all checks of `task` hold for the folder `workspace` (with `data`, `emails`, `calendar`), else 0.

    `official` makes the checks as the benchmark's own code does, slips included; `fixed` mends those that `fixed.DEVIATIONS`
    lists. A check that raises has failed. `metrics` say how many checks there are, how many hold and which is the first that
    does not. The workspace is read, not changed; it must hold regular files only (see harness.sandbox.files). Raises ConfigError
    for an unknown grader.
    """
    if grader not in GRADERS:
        raise ConfigError(f"There is no grader {grader!r}.", f"There are: {', '.join(GRADERS)}.")
    places = Places(workspace, Path(task.payload["folder"]))
    results = [_holds(check, places, grader) for check in task.payload["evaluation"]]
    passed = bool(results) and all(results)
    metrics: dict[str, float | int | str | None] = {"grader": grader, "checks": len(results), "checks_passed": sum(results)}
    metrics["first_failed"] = _name(task.payload["evaluation"][results.index(False)]) if False in results else None
    feedback = "The result passes all checks." if passed else "The result does not pass the checks."
    return Outcome(float(passed), passed, "completed" if passed else "failed", feedback, metrics)


def _name(item: Mapping[str, Any]) -> str:
    return str(item["function"]).removeprefix("evaluate_")


def _holds(item: Mapping[str, Any], places: Places, grader: str) -> bool:
    arguments = fixed.arguments_of(item) if grader == "fixed" else item["args"]
    if _name(item) not in CHECKS:
        return False
    check: Callable[[Places, Mapping[str, Any]], bool] = getattr(fixed if grader == "fixed" else official, _name(item))
    try:
        return check(places, arguments)
    except Exception:  # "any exception is a failure": whatever a file that a model wrote makes a reader do
        return False
