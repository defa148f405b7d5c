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
SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "wikipedia", "map")
TASK_TYPES = ("retrieve", "navigate", "mutate")
_FILES = {"all": "webarena-verified.json", "hard": "subsets/webarena-verified-hard.json"}


def folder() -> Path | None:
    """The package's data folder; None where it is not installed."""
    spec = importlib.util.find_spec("webarena_verified")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "assets" / "dataset"


class Dataset:
    """Tasks of one subset. Raises SetupError where the package is missing or is not what it should be."""

    def __init__(self, subset: str, sites: Sequence[str], task_types: Sequence[str]) -> None:
        self._subset, self._sites, self._types = subset, frozenset(sites), frozenset(task_types)

    def _read(self, subset: str) -> bytes:
        root = folder()
        if root is None:
            raise SetupError(f"The package {PACKAGE} is not installed.", "Mend it with: make setup-webarena.")
        try:
            return (root / _FILES[subset]).read_bytes()
        except OSError as error:
            raise SetupError(f"{PACKAGE} has no {_FILES[subset]}.", f"Mend it with: pip install {PACKAGE}=={VERSION}.") from error

    @cached_property
    def rows(self) -> tuple[tuple[int, dict[str, Any]], ...]:
        """(official index, record) of the chosen tasks. The index counts all 812, whichever are chosen."""
        every: list[dict[str, Any]] = json.loads(self._read("all"))
        chosen = {int(row["task_id"]) for row in every}
        if self._subset != "all":
            chosen = set(map(int, json.loads(self._read(self._subset))["task_ids"]))
        return tuple((index, row) for index, row in enumerate(every) if row["task_id"] in chosen and self._wanted(row))

    def _wanted(self, row: Mapping[str, Any]) -> bool:
        """Whether a task needs none but the chosen sites and is of a chosen type."""
        return set(row["sites"]) <= self._sites and task_type(row) in self._types

    @cached_property
    def digest(self) -> str:
        """sha256 over the chosen records."""
        return hashlib.sha256(json.dumps([row for _, row in self.rows], sort_keys=True).encode()).hexdigest()

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(_task(row, index) for index, row in self.rows)


def task_type(row: Mapping[str, Any]) -> str:
    """retrieve, navigate or mutate: what the task's answer must say that it was."""
    return next(
        str(part["expected"]["task_type"]) for part in row["eval"] if part["evaluator"] == "AgentResponseEvaluator"
    ).lower()


def _task(row: Mapping[str, Any], index: int) -> Task:
    """`family` is the intent template within its sites, as for env=webarena. The payload leaves out what the answer must be."""
    group = "+".join(row["sites"])
    return Task(
        task_id=str(row["task_id"]),
        index=index,
        goal=str(row["intent"]),
        key=f"{group}-{row['intent']}",
        family=f"{group}-{row['intent_template_id']}",
        group=group,
        payload={"sites": tuple(row["sites"]), "start_urls": tuple(row["start_urls"]), "task_type": task_type(row)},
    )
