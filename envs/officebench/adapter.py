"""OfficeBench as a MemArena environment: official tasks, our own applications in a sandbox, two graders."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from envs.officebench import apps, dataset
from envs.officebench.grading import GRADERS
from envs.officebench.grading.child import grade_apart
from envs.officebench.office import Office
from envs.officebench.oracle import solution
from envs.officebench.session import OfficeSession
from envs.officebench.workspace import collect, prepare
from harness.contracts import ActionMode, Outcome, Problem, Task
from harness.errors import ConfigError
from harness.sandbox.base import Image, Mount, Plan, Sandbox, SandboxError, SandboxKind, SandboxLimits
from harness.sandbox.kinds import KINDS, sandbox_kind
from harness.sandbox.marks import marked_folder

_LIBRARIES = ("docx", "openpyxl", "icalendar", "pypdf", "PyPDF2")
# what the applications call outside the image: program → Debian package
_PROGRAMS = {
    "soffice": "libreoffice-writer-nogui libreoffice-calc-nogui",
    "tesseract": "tesseract-ocr",
    "pdftoppm": "poppler-utils",
}


@dataclass
class OfficeBenchConfig:
    """`apps` chooses tasks by their number of applications (1: 93, 2: 95, 3: 112 tasks); `grader` is official or fixed.

    `command_seconds` bounds an action, `llm_tokens` an answer of the application llm (officially 50). `sandbox` is docker,
    bubblewrap or process; `python` the interpreter inside bubblewrap and process (null: ours). `data_dir` null:
    `$HARNESS_DATA/officebench`, else the cache.
    """

    name: str = "officebench"
    apps: list[int] = field(default_factory=lambda: [1, 2, 3])
    grader: str = field(default="official", metadata={"grading": True})
    max_steps: int = 20
    command_seconds: float = 10.0
    llm_tokens: int = 50
    memory_mib: int = 1024
    sandbox: str = "docker"
    python: str | None = field(default=None, metadata={"identity": False})
    data_dir: str | None = field(default=None, metadata={"identity": False})

    def __post_init__(self) -> None:
        for key, value, known in (("grader", self.grader, GRADERS), ("sandbox", self.sandbox, KINDS)):
            if value not in known:
                raise ConfigError(f"env.{key} is {value!r}.", f"There are: {', '.join(known)}.")
        for count in self.apps:
            if count not in dataset.GROUPS:
                raise ConfigError(f"env.apps names {count}.", "There are tasks for 1, 2 and 3 applications.")
        if not self.apps or min(self.max_steps, self.llm_tokens) < 1 or self.command_seconds <= 0 or self.memory_mib < 256:
            raise ConfigError(
                "env.apps, max_steps, command_seconds and llm_tokens must be positive, env.memory_mib at least 256."
            )


class OfficeBench:
    """The environment. Construction reads nothing."""

    Config: ClassVar[type] = OfficeBenchConfig
    name: ClassVar[str] = "officebench"
    version: ClassVar[str] = "1-A"
    action_mode: ActionMode = "json"

    def __init__(self, config: OfficeBenchConfig | None = None) -> None:
        self._config = config or OfficeBenchConfig()
        self._directory = Path(self._config.data_dir) if self._config.data_dir else dataset.default_directory()
        self.max_steps = self._config.max_steps
        self.image = Image("memarena/officebench:1", Path(__file__).parent / "image", self._config.python)

    @cached_property
    def _kind(self) -> SandboxKind:
        return sandbox_kind(self._config.sandbox)

    def check(self) -> list[Problem]:
        problems = []
        if next((self._directory / "tasks").glob("*/subtasks/*.json"), None) is None:
            problems.append(Problem(f"The tasks are not in {self._directory}", dataset.FETCH))
        if missing := [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]:
            problems.append(Problem(f"The graders need {', '.join(missing)}", "pip install 'memarena[office]'"))
        if self._config.sandbox != "docker":
            problems += [
                Problem(f"The applications need the program {program}", f"apt-get install {package}")
                for program, package in _PROGRAMS.items()
                if shutil.which(program) is None
            ]
        return problems + self._kind.check(self.image)

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        groups = {f"{count}-app" for count in self._config.apps}
        return tuple(task for task in self._all if task.group in groups)

    @cached_property
    def _all(self) -> tuple[Task, ...]:
        return dataset.load(self._directory)

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    @cached_property
    def data_digest(self) -> str:
        """sha256 over the task files, testbeds and references that are played."""
        return dataset.digest(self._directory, self._tasks)

    @property
    def provenance(self) -> Mapping[str, Any]:
        source = "official" if dataset.is_official(self._all) else "other"
        if len(self._tasks) < len(self._all):
            source += f", {len(self._tasks)} of {len(self._all)} tasks"
        return {"source": source, "grader": self._config.grader, "sandbox": self._config.sandbox}

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[OfficeSession]:
        with marked_folder("memarena-officebench") as folder:
            workspace = prepare(task, folder)
            kinds = sorted({path.suffix.removeprefix(".") for path in workspace.rglob("*") if path.suffix})
            facts = frozenset({f"user={task.payload['username']}", f"apps={task.group}", *(f"file={kind}" for kind in kinds)})
            inside = str(workspace) if self._config.sandbox == "process" else apps.WORKSPACE
            mounts = [Mount(workspace, inside, writable=True)]
            mounts += [Mount(source, target) for source, target in apps.mounts(self._config.sandbox)]
            limits = SandboxLimits(memory_mib=self._config.memory_mib, scratch_mib=256)
            with self._kind.start(Plan(self.image, tuple(mounts), limits, owner=f"officebench-{task.task_id}")) as sandbox:
                office = Office(sandbox, self._server(inside), inside, self._config.command_seconds)
                grade = self._grader(task, sandbox, workspace, inside)
                try:
                    yield OfficeSession(task, office, grade, facts=facts, llm_tokens=self._config.llm_tokens)
                finally:
                    office.close()
                    if os.getuid() != 0:  # folders of the sandbox's user could not be removed by us
                        with suppress(SandboxError):
                            _open_up(sandbox, inside)

    def _server(self, workspace: str) -> list[str]:
        """The image has its own Python; the other kinds take the one that has the libraries."""
        own = "python3" if self._config.sandbox == "docker" else self._config.python or sys.executable
        _, *rest = apps.command(self._config.sandbox, workspace)
        return [own, *rest]

    def _grader(self, task: Task, sandbox: Sandbox, workspace: Path, inside: str) -> Any:
        def grade(answer: str | None) -> Outcome:
            _open_up(sandbox, inside)
            with marked_folder("memarena-officebench") as folder:
                left_out = collect(workspace, folder / "testbed", answer)
                outcome = grade_apart(task, folder / "testbed", self._config.grader)
            metrics = {**outcome.metrics, "files_left_out": left_out}
            return Outcome(outcome.score, outcome.success, outcome.status, outcome.feedback, metrics)

        return grade

    def oracle(self, task: Task) -> Sequence[str] | None:
        """Actions that lead to a passing state, made from the task's checks; None for those that cannot be won."""
        return solution(task, self._config.grader)

    def idle(self, task: Task) -> Sequence[str]:
        """The agent that does nothing and says so. Its answer "None" contains "no", which one official check takes for one."""
        return ['{"app": "system", "action": "finish_task", "answer": "None"}']


def _open_up(sandbox: Sandbox, workspace: str) -> None:
    """What the sandbox's user made may be closed to ours, who is to grade and to remove it."""
    sandbox.run(["chmod", "-R", "a+rwX", workspace], timeout=30)
