"""What one run measured: its labels, its score with an interval, its tokens, and what a reader must know about it.

Nothing is filled in: a number that was not measured is None. A run that breaks the manifest's promises about identity,
labels or tasks is refused by name; other missing fields are None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.errors import UserError
from harness.report.statistics import Interval, bootstrap, wilson
from harness.report.text import plural
from harness.store.schema import TaskRow
from harness.store.view import RunView, UsageRow

LABELS = ("host", "method", "env", "models", "variant")


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, in the unit of its values. `k` is the number of successes where all values are 0 or 1."""

    value: float
    n: int
    k: int | None
    interval: Interval | None


def estimate(values: Sequence[float], seed: int, *path: str | int) -> Estimate | None:
    """The mean of `values`: Wilson's interval where all are 0 or 1, a seeded bootstrap otherwise; None without values."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if all(value in (0.0, 1.0) for value in values):
        k = round(math.fsum(values))
        return Estimate(mean, len(values), k, wilson(k, len(values)))
    return Estimate(mean, len(values), None, bootstrap(values, seed, *path))


def score_of(tasks: Sequence[TaskRow], seed: int, *path: str | int) -> Estimate | None:
    """Mean score in [0, 1]. Agent failures are in it (as 0), infrastructure failures are not: they have no row."""
    return estimate([task.score for task in tasks], seed, "score", *path)


def sum_usage(rows: Sequence[UsageRow]) -> UsageRow:
    """The sum of usage rows; the cost is None as soon as one is."""
    costs = [row.cost_usd for row in rows]
    return UsageRow(
        (),
        sum(row.calls for row in rows),
        sum(row.failed_calls for row in rows),
        sum(row.input_tokens for row in rows),
        sum(row.cached_input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
        sum(row.reasoning_tokens for row in rows),
        sum(row.estimated_calls for row in rows),
        None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


class Run:
    """A run read for a report: the manifest checked, the rows read once."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.manifest: Mapping[str, Any] = view.manifest
        self._require("identity", self.manifest.get("identity"), str)
        labels = self._require("labels", self.manifest.get("labels"), dict)
        tasks = self._require("tasks", self.manifest.get("tasks"), dict)
        self.labels: dict[str, str] = {key: self._require(f"labels.{key}", labels.get(key), str) for key in LABELS}
        self.labels["models_label"] = str(labels.get("models_label") or labels["models"])
        self.labels["experiment"] = str(labels.get("experiment") or "")
        self.labels["actor_model"] = self._actor_model()
        self.planned: int = self._require("tasks.n", tasks.get("n"), int)
        self.total: int | None = tasks.get("total")
        self.order = str(tasks.get("order") or "official")
        self.seed: int = self._require("seed", self.manifest.get("seed"), int)
        self.name = str(self.manifest.get("name") or view.directory.name)

    def _require(self, key: str, value: Any, kind: type) -> Any:
        if not isinstance(value, kind):
            raise UserError(f"{self.view.directory / 'manifest.json'} has no usable {key!r}.", "Move the directory elsewhere.")
        return value

    def _actor_model(self) -> str:
        """The model behind the key `actor`, as its endpoint names it; empty where the manifest does not say."""
        endpoint = self.at("models.keys.actor") or self.at("models.keys.default")
        return str((self.at("models.endpoints") or {}).get(endpoint, {}).get("model") or "")

    def at(self, path: str) -> Any:
        """The manifest's value at a dotted path; None where there is none."""
        value: Any = self.manifest
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @cached_property
    def tasks(self) -> list[TaskRow]:
        return self.view.tasks()

    @cached_property
    def status(self) -> str:
        return "finished" if len(self.tasks) == self.planned else "incomplete"

    @cached_property
    def infra_failures(self) -> list[int]:
        return self.view.infra_failures()

    @cached_property
    def score(self) -> Estimate | None:
        return score_of(self.tasks, self.seed)

    @cached_property
    def usage(self) -> UsageRow | None:
        """The method's own usage (TOK-R1, TOK-R5, TOK-R6); None while no task has a result, for then nothing was measured."""
        return sum_usage(self.view.usage(method_only=True)) if self.tasks else None

    @cached_property
    def tokens_by_task(self) -> dict[str, int]:
        """The method's tokens of each task with a result."""
        found = {row.group[0]: row.total_tokens for row in self.view.usage("task_id", method_only=True)}
        return {task.task_id: found.get(task.task_id, 0) for task in self.tasks}

    @property
    def scripted(self) -> bool | None:
        """The answers came from a script, not from a model."""
        value = self.at("models.scripted")
        return value if isinstance(value, bool) else None

    @property
    def constrained(self) -> bool | None:
        """The answers were held to the admissible actions."""
        value = self.at("models.constrain_actions")
        return value if isinstance(value, bool) else None

    def departures(self) -> list[str]:
        """Why the scores cannot be set against a paper's: each in a few words; empty for a full official run."""
        found = []
        if self.scripted:
            found.append("scripted answers, no model")
        # "official", "generated", …, and after a comma what part of it: "official, 93 of 300 tasks"
        source, _, part = str(self.at("environment.provenance.source") or "official").partition(", ")
        if not source.startswith("official"):
            found.append(f"{source} tasks instead of the official data")
        if part:
            found.append(part)
        found += [str(one) for one in self.at("environment.provenance.departures") or ()]
        if self.total is not None and self.planned != self.total:
            found.append(f"{self.planned} of {self.total} tasks")
        steps, official = self.at("environment.max_steps"), self.at("environment.official_max_steps")
        if official is not None and steps != official:
            found.append(f"at most {steps} steps (official: {official})")
        if self.constrained:
            found.append("answers held to the admissible actions")
        if self.order != "official":
            found.append(f"task order {self.order}")
        if isinstance(self.at("rescored"), Mapping):
            grading = ", ".join(self.at("rescored.grading") or [])
            found.append(
                f"graded anew ({grading}) from the run {self.at('rescored.from')}: its memory learnt from the old scores"
            )
            if differing := self.at("rescored.differing_observations"):
                found.append(f"{plural(differing, 'observation')} on regrading not those of the run")
        return found

    def caveats(self) -> list[str]:
        """What else a reader must know of the numbers."""
        found = []
        if self.total is None:
            found.append("how many tasks there are was not recorded")
        if self.at("environment.provenance.source") is None:
            found.append("the source of the tasks was not recorded")
        if self.labels["variant"]:
            found.append(f"configuration changed: {self.labels['variant']}")
        limits = self.at("cell.run.limits.task")
        limits = limits.items() if isinstance(limits, Mapping) else ()
        if held := {key: value for key, value in limits if isinstance(value, int | float)}:
            found.append("task limits: " + ", ".join(f"{key} {value:g}" for key, value in held.items()))
        if len(self.tasks) < self.planned:
            found.append(f"incomplete: {len(self.tasks)} of {self.planned} tasks have a result")
        if self.infra_failures:
            found.append(f"{plural(len(self.infra_failures), 'infrastructure failure')}, not in n")
        if self.usage is not None and self.usage.estimated_calls:
            calls = f"{self.usage.estimated_calls} of {plural(self.usage.calls, 'call')}"
            found.append(f"tokens of {calls} counted here or estimated, not stated by the provider")
        if self.at("run_options.replay") == "replay":
            found.append("answers replayed from a recording: the time is not the models'")
        if late := sum(task.late for task in self.tasks):
            found.append(f"{plural(late, 'task')} played late, after later ones")
        return found
