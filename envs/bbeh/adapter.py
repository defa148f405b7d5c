"""BBEH-mini as a MemArena environment: one question, one answer, the official matcher."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from envs.bbeh.grading import grade
from envs.bbeh.split import train_positions
from harness.contracts import ActionMode, Evidence, Outcome, Problem, StepResult, Task
from harness.errors import ConfigError, SetupError

SPLITS = ("all", "train", "test")
QUESTIONS, CATEGORIES = 460, 23
_UNKNOWN = "uncategorised"


@dataclass
class BbehConfig:
    """`split` is all (460), train (92) or test (368, the held-out ones); `data_dir` null: `$HARNESS_DATA/bbeh`, else the place
    where `make data-bbeh` puts it."""

    name: str = "bbeh"
    split: str = "all"
    data_dir: str | None = field(default=None, metadata={"identity": False})

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ConfigError(f"env.split is {self.split!r}.", f"There are: {', '.join(SPLITS)}.")


def default_directory() -> Path:
    """Where the data lies unless the configuration says otherwise."""
    if given := os.environ.get("HARNESS_DATA"):
        return Path(given) / "bbeh"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "memarena" / "data" / "bbeh"


class BbehSession:
    """One question; the first answer ends it."""

    action_mode: ActionMode = "block"
    noop_action = ""
    few_shots: tuple[str, ...] = ()
    instructions = (
        "Think about the question, then give your answer on the last line in exactly this form:\n"
        "The answer is: <answer>\n"
        "For a multiple-choice question the answer is the letter in brackets."
    )
    choices: tuple[str, ...] | None = None

    def __init__(self, task: Task) -> None:
        self.observation = task.goal
        self.facts = frozenset({f"family={task.family}"})
        self._target = str(task.payload["target"])
        self._answer: str | None = None

    def normalise(self, text: str) -> str:
        return text.strip()

    def step(self, action: str) -> StepResult:
        self._answer = action
        right = grade(action, self._target)
        return StepResult("Your answer was recorded.", float(right), done=True)

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        return None

    def outcome(self) -> Outcome:
        if self._answer is None:
            return Outcome(0.0, False, "unresolved", "No answer was given.")
        right = grade(self._answer, self._target)
        return Outcome(
            float(right), right, "completed" if right else "failed", "The answer is right." if right else "The answer is wrong."
        )


class Bbeh:
    """The environment. Construction reads nothing."""

    Config: ClassVar[type] = BbehConfig
    name: ClassVar[str] = "bbeh"
    version: ClassVar[str] = "1-A"
    action_mode: ActionMode = "block"
    max_steps = 1

    def __init__(self, config: BbehConfig | None = None) -> None:
        self._config = config or BbehConfig()
        self._directory = Path(self._config.data_dir) if self._config.data_dir else default_directory()

    @property
    def _path(self) -> Path:
        return self._directory / "mini.json"

    def check(self) -> list[Problem]:
        if self._path.is_file():
            return []
        return [Problem(f"The BBEH-mini questions are not in {self._directory}", "make data-bbeh")]

    @cached_property
    def _raw(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError as error:
            raise SetupError(f"Cannot read {self._path}: {error.strerror}.", "Mend it with: make data-bbeh.") from error

    @cached_property
    def data_digest(self) -> str:
        """sha256 of the questions and of the split that is played."""
        chosen = ",".join(str(task.index) for task in self.tasks())
        return hashlib.sha256(self._raw + chosen.encode()).hexdigest()

    @property
    def provenance(self) -> Mapping[str, Any]:
        return {"source": "official mini.json", "split": self._config.split, "categories": self._labels is not None}

    @cached_property
    def _labels(self) -> list[str] | None:
        """The category of each question, from mini_labeled.json; None without that file (only `split=all` is possible then)."""
        path = self._directory / "mini_labeled.json"
        if not path.is_file():
            return None
        return [str(row["task"]).removeprefix("bbeh_") for row in json.loads(path.read_text())]

    def tasks(self) -> Sequence[Task]:
        """The questions in the order of the data file. Raises SetupError where the data is not what it should be."""
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        try:
            examples = json.loads(self._raw)["examples"]
            if len(examples) != QUESTIONS:
                raise ValueError(f"{len(examples)} questions instead of {QUESTIONS}")
            labels = self._labels or [_UNKNOWN] * QUESTIONS
            made = [self._task(i, example, labels[i]) for i, example in enumerate(examples)]
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise SetupError(f"{self._path} is not BBEH-mini: {error}.", "Mend it with: make data-bbeh.") from error
        train = train_positions()
        if self._config.split == "all":
            return tuple(made)
        return tuple(task for task in made if (task.index in train) == (self._config.split == "train"))

    def _task(self, index: int, example: Mapping[str, Any], category: str) -> Task:
        question = str(example["input"])
        return Task(
            task_id=f"bbeh-mini-{index:03d}",
            index=index,
            goal=question,
            key=f"{category}-{question[:400]}",
            family=category,
            group=category,
            payload={"target": str(example["target"])},
        )

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[BbehSession]:
        yield BbehSession(task)

    def oracle(self, task: Task) -> Sequence[str]:
        return [f"The answer is: {task.payload['target']}"]
