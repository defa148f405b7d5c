"""The tasks that come with the package webarena-verified, read without importing it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.contracts import Task
from harness.errors import SetupError

PACKAGE, VERSION = "webarena-verified", "1.2.3"
# the official total and the size of the published hard subset
COUNTS = {"all": 812, "hard": 258}
TASK_TYPES = ("retrieve", "navigate", "mutate")
_FILES = {"all": "webarena-verified.json", "hard": "subsets/webarena-verified-hard.json"}


def folder() -> Path | None:
    """The package's data folder; None where it is not installed."""
    spec = importlib.util.find_spec("webarena_verified")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "assets" / "dataset"


class Dataset:
    """Tasks of one subset: of these numbers (empty: all), sites and types. Raises SetupError where the package is missing or is
    not what it should be."""

    def __init__(self, subset: str, numbers: Sequence[int], sites: Sequence[str], task_types: Sequence[str]) -> None:
        self._subset, self._numbers = subset, frozenset(numbers)
        self._sites, self._types = frozenset(sites), frozenset(task_types)

    def _read(self, subset: str) -> bytes:
        root = folder()
        if root is None:
            raise SetupError(f"The package {PACKAGE} is not installed.", "Mend it with: make setup-webarena.")
        try:
            return (root / _FILES[subset]).read_bytes()
        except OSError as error:
            raise SetupError(f"{PACKAGE} has no {_FILES[subset]}.", f"Mend it with: pip install {PACKAGE}=={VERSION}.") from error

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """Records of the chosen tasks by number."""
        every: list[dict[str, Any]] = json.loads(self._read("all"))
        if self._subset != "all":
            chosen = set(map(int, json.loads(self._read(self._subset))["task_ids"]))
            every = [row for row in every if row["task_id"] in chosen]
        return tuple(sorted(filter(self._wanted, every), key=lambda row: int(row["task_id"])))

    def _wanted(self, row: Mapping[str, Any]) -> bool:
        """Whether a task is chosen: by number, by sites (none but these) and by type."""
        if self._numbers and row["task_id"] not in self._numbers:
            return False
        return set(row["sites"]) <= self._sites and task_type(row) in self._types

    @cached_property
    def digest(self) -> str:
        """sha256 over the chosen records."""
        return hashlib.sha256(json.dumps(self.rows, sort_keys=True).encode()).hexdigest()

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(map(_task, self.rows))


def task_type(row: Mapping[str, Any]) -> str:
    """retrieve, navigate or mutate: what the task's answer must say that it was."""
    return next(
        str(part["expected"]["task_type"]) for part in row["eval"] if part["evaluator"] == "AgentResponseEvaluator"
    ).lower()


def _task(row: Mapping[str, Any]) -> Task:
    """As a task of env=webarena; the payload leaves out what the answer must be."""
    group = "+".join(sorted(row["sites"]))
    return Task(
        task_id=f"webarena_verified.{row['task_id']}",
        index=int(row["task_id"]),
        goal=str(row["intent"]),
        key=f"{group}-{row['intent']}",
        family=f"template-{row['intent_template_id']}",
        group=group,
        payload={"sites": tuple(row["sites"]), "start_urls": tuple(row["start_urls"]), "task_type": task_type(row)},
    )
