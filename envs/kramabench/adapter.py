"""KramaBench as a MemArena environment: official questions, typed graders or a judge, code in a sandbox."""

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

from envs.kramabench.session import KramaSession
from envs.kramabench.split import train_ids
from harness.contracts import ActionMode, Problem, Task
from harness.errors import ConfigError, SetupError
from harness.sandbox.base import Image, Mount, Plan, SandboxKind, SandboxLimits
from harness.sandbox.kinds import KINDS, sandbox_kind

DOMAINS = ("archeology", "astronomy", "biomedical", "environment", "legal", "wildfire")
SPLITS = ("all", "train", "test")
GRADERS = ("typed", "judge")
_FETCH = "make data-kramabench"


@dataclass
class KramaBenchConfig:
    """`split` is all (104), train (28) or test (76); `domains` which of the six; `grader` typed or judge (key eval_judge).

    `sandbox` is docker, bubblewrap or process; `python` the interpreter inside bubblewrap and process (null: ours), which needs
    pandas. `cell_seconds` bounds one cell, `memory_mib` the sandbox. `data_dir` null: `$HARNESS_DATA/kramabench`, else the cache.
    """

    name: str = "kramabench"
    split: str = "all"
    domains: list[str] = field(default_factory=lambda: list(DOMAINS))
    grader: str = field(default="typed", metadata={"grading": True})
    max_steps: int = 20
    cell_seconds: float = 120.0
    memory_mib: int = 4096
    sandbox: str = "docker"
    python: str | None = field(default=None, metadata={"identity": False})
    data_dir: str | None = field(default=None, metadata={"identity": False})

    def __post_init__(self) -> None:
        for key, value, known in (
            ("split", self.split, SPLITS),
            ("grader", self.grader, GRADERS),
            ("sandbox", self.sandbox, KINDS),
        ):
            if value not in known:
                raise ConfigError(f"env.{key} is {value!r}.", f"There are: {', '.join(known)}.")
        for domain in self.domains:
            if domain not in DOMAINS:
                raise ConfigError(f"env.domains names {domain!r}.", f"There are: {', '.join(DOMAINS)}.")
        if not self.domains or self.max_steps < 1 or self.cell_seconds <= 0 or self.memory_mib < 64:
            raise ConfigError("env.domains, max_steps, cell_seconds and memory_mib must be positive.")


def default_directory() -> Path:
    """Where the data lies unless the configuration says otherwise."""
    if given := os.environ.get("HARNESS_DATA"):
        return Path(given) / "kramabench"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "memarena" / "data" / "kramabench"


class KramaBench:
    """The environment. Construction reads nothing."""

    Config: ClassVar[type] = KramaBenchConfig
    name: ClassVar[str] = "kramabench"
    version: ClassVar[str] = "1-A"
    action_mode: ActionMode = "block"

    def __init__(self, config: KramaBenchConfig | None = None) -> None:
        self._config = config or KramaBenchConfig()
        self._directory = Path(self._config.data_dir) if self._config.data_dir else default_directory()
        self.max_steps = self._config.max_steps
        context = Path(__file__).parent / "image"
        self.image = Image("memarena/kramabench:1", context, self._config.python)

    @cached_property
    def _kind(self) -> SandboxKind:
        return sandbox_kind(self._config.sandbox)

    def check(self) -> list[Problem]:
        problems = []
        for domain in self._config.domains:
            if not (self._directory / f"{domain}.json").is_file():
                problems.append(Problem(f"The questions of {domain} are not in {self._directory}", _FETCH))
            elif not (self._directory / domain / "input").is_dir():
                problems.append(
                    Problem(
                        f"The data files of {domain} are not in {self._directory}", f"{_FETCH}, or leave it out of env.domains"
                    )
                )
        return problems + self._kind.check(self.image)

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        made: list[Task] = []
        for domain in DOMAINS:  # the index counts all domains, so that it does not depend on which are chosen
            path = self._directory / f"{domain}.json"
            if domain in self._config.domains and not path.is_file():
                raise SetupError(f"{path} is missing.", f"Mend it with: {_FETCH}.")
            try:
                rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
                made += [_task(domain, row, len(made) + i) for i, row in enumerate(rows)]
            except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise SetupError(
                    f"{path} is no list of KramaBench's questions ({reason}).", f"Mend it with: {_FETCH}."
                ) from error
        train = train_ids([task.task_id for task in made])
        split = self._config.split
        return tuple(
            task
            for task in made
            if task.group in self._config.domains and (split == "all" or (task.task_id in train) == (split == "train"))
        )

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    @cached_property
    def data_digest(self) -> str:
        """sha256 over the questions that are played and over names and sizes of the data files of their domains."""
        total = hashlib.sha256()
        for task in self._tasks:
            total.update(json.dumps([task.task_id, dict(task.payload)], sort_keys=True, default=str).encode())
        for domain in sorted(set(self._config.domains)):
            folder = self._directory / domain / "input"
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    total.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        return total.hexdigest()

    @property
    def provenance(self) -> Mapping[str, Any]:
        complete = sorted(self._config.domains) == sorted(DOMAINS)
        source = "official" if complete else f"official, {len(self._config.domains)} of {len(DOMAINS)} domains"
        return {"source": source, "split": self._config.split, "grader": self._config.grader, "sandbox": self._config.sandbox}

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[KramaSession]:
        folder = (self._directory / str(task.group) / "input").resolve()
        target = str(folder) if self._config.sandbox == "process" else "/data"
        limits = SandboxLimits(memory_mib=self._config.memory_mib, scratch_mib=1024)
        with self._kind.start(Plan(self.image, (Mount(folder, target),), limits, owner=f"kramabench-{task.task_id}")) as sandbox:
            session = KramaSession(task, sandbox, target, cell_seconds=self._config.cell_seconds, grader=self._config.grader)
            try:
                yield session
            finally:
                session.close()

    def oracle(self, task: Task) -> Sequence[str]:
        """A look at the data, then the gold."""
        look = "```python\nimport os\nprint(sorted(os.listdir(os.environ['DATA'])))\n```"
        return [look, f"ANSWER: {json.dumps(task.payload['answer'], ensure_ascii=False)}"]


def _task(domain: str, row: Mapping[str, Any], index: int) -> Task:
    payload = {key: row[key] for key in ("answer", "answer_type", "data_sources")}
    payload |= {"accepted_answers": row["accepted_answers"]} if "accepted_answers" in row else {}
    level = str(row["id"]).split("-")[1]
    return Task(
        task_id=str(row["id"]),
        index=index,
        goal=str(row["query"]),
        key=f"{domain}-{row['query']}",
        family=f"{domain}-{level}",
        group=domain,
        payload=payload,
    )
