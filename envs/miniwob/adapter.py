"""MiniWoB++ as a MemArena environment."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

from envs.browser import provision
from envs.browser.client import BrowserPool, WorkerSettings
from envs.browser.plan import TaskPlan
from envs.browser.session import BrowserSession
from envs.miniwob.scripts import SCRIPTS
from harness.contracts import ActionMode, Problem, Task
from harness.errors import ConfigError
from harness.registry import did_you_mean

# BrowserGym's published MiniWoB benchmark: this action set, ten steps
SUBSETS, STEPS = ("miniwob_all",), 10
_VARIANT = re.compile(r"-(\d+|nodelay|easy|medium|hard|large|soft|transfer|nl|turk|noscroll|popup|dynamic|all|some)$")


@dataclass
class MiniWobConfig:
    """Values of conf/env/miniwob.yaml.

    `tasks` names the kinds to play (empty: all 125); `scripted` true: only those with a stored solution; `repeat` plays
    every kind so often, each time with another seed. `coordinates` shows where an element is: the actions with the mouse need
    it. `observation_tokens` bounds a page in estimated tokens (null: no bound). The seconds are the worker's limits
    (envs.browser.client.WorkerSettings); `slow_mo` (ms) and `observation_delay` (s) are BrowserGym's.
    """

    name: str = "miniwob"
    tasks: list[str] = field(default_factory=list)
    scripted: bool = False
    repeat: int = 1
    max_steps: int = STEPS
    observation_tokens: int | None = 2000
    coordinates: bool = True
    slow_mo: int | None = 0
    observation_delay: float = 0.1
    reset_seconds: float = field(default=60.0, metadata={"identity": False})
    step_seconds: float = field(default=30.0, metadata={"identity": False})

    def __post_init__(self) -> None:
        known = kinds()
        for name in self.tasks:
            if name not in known:
                raise ConfigError(f"env.tasks names {name!r}.", did_you_mean(name, known))
        if min(self.max_steps, self.repeat) < 1 or (self.observation_tokens is not None and self.observation_tokens < 1):
            raise ConfigError("env.max_steps, repeat and observation_tokens must be positive.")
        if min(self.reset_seconds, self.step_seconds) <= 0 or self.observation_delay < 0 or (self.slow_mo or 0) < 0:
            raise ConfigError("env.reset_seconds and step_seconds must be positive, observation_delay and slow_mo not negative.")


def kinds() -> list[str]:
    """The 125 kinds in the order of BrowserGym's registry."""
    return resources.files("envs.miniwob").joinpath("kinds.txt").read_text().split()


def family(kind: str) -> str:
    """The kind without the words that mark a variant: email-inbox-forward-nl-turk → email-inbox-forward."""
    while (shorter := _VARIANT.sub("", kind)) != kind:
        kind = shorter
    return kind


def task_class(kind: str) -> str:
    return "".join(part.capitalize() for part in kind.split("-")) + "Task"


class MiniWob:
    """The environment. Construction starts nothing; the first task starts the browser, which then stays."""

    Config: ClassVar[type] = MiniWobConfig
    name: ClassVar[str] = "miniwob"
    version: ClassVar[str] = "1-A"
    action_mode: ActionMode = "block"

    def __init__(self, config: MiniWobConfig | None = None) -> None:
        self._config = config or MiniWobConfig()
        self.max_steps = self._config.max_steps
        self._scripts = dict(SCRIPTS)
        self._url = provision.miniwob_url()
        self._pool = BrowserPool(
            WorkerSettings(
                env=provision.worker_env(),
                reset_seconds=self._config.reset_seconds,
                step_seconds=self._config.step_seconds,
            )
        )

    def check(self) -> list[Problem]:
        return provision.problems(webarena=False)

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        every = kinds()
        wanted = [
            (place, kind)
            for place, kind in enumerate(every)
            if (not self._config.tasks or kind in self._config.tasks) and (not self._config.scripted or kind in self._scripts)
        ]
        return tuple(
            _task(kind, place + again * len(every), again) for again in range(self._config.repeat) for place, kind in wanted
        )

    def tasks(self) -> Sequence[Task]:
        """Every chosen kind in the registry's order, then all again (`repeat`). The index counts all 125, chosen or not."""
        return self._tasks

    @cached_property
    def data_digest(self) -> str:
        """sha256 over the chosen tasks and, where the pages are files, over these."""
        total = hashlib.sha256("\n".join(task.task_id for task in self._tasks).encode())
        root = Path(self._url.removeprefix("file://"))
        for task in self._tasks:
            page = root / f"{task.payload['kind']}.html"
            if page.is_file():
                total.update(page.read_bytes())
        return total.hexdigest()

    @property
    def provenance(self) -> Mapping[str, Any]:
        played, every = len({task.payload["kind"] for task in self._tasks}), len(kinds())
        source = "official" if played == every else f"official, {played} of {every} kinds"
        return {"source": source, "tasks": len(self._tasks), "packages": provision.versions()}

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[BrowserSession]:
        kind = str(task.payload["kind"])
        with self._pool.borrow() as browser:
            names, description = browser.describe(SUBSETS)
            page = browser.open(
                TaskPlan(
                    entry=f"browsergym.miniwob.all:{task_class(kind)}",
                    seed=seed % 2**32,  # numpy's range
                    subsets=SUBSETS,
                    slow_mo=self._config.slow_mo,
                    observation_delay=self._config.observation_delay,
                    coordinates=self._config.coordinates,
                )
            )
            yield BrowserSession(
                browser,
                page,
                names=names,
                description=description,
                facts=frozenset({f"kind={kind}", f"family={task.family}"}),
                budget=self._config.observation_tokens,
                oracle=self._scripts.get(kind),
                aliases={self._url: "miniwob/"},
            )

    def oracle(self, task: Task) -> Sequence[str] | None:
        """None: a solution reads the page, see `BrowserSession.oracle_action`."""
        return None


def _task(kind: str, index: int, again: int) -> Task:
    """The goal is the kind's name in words: what exactly is asked for stands on the page, drawn from the seed."""
    words = kind.replace("-", " ")
    return Task(
        task_id=f"{kind}.{again + 1}" if again else kind,
        index=index,
        goal=words,
        key=f"{family(kind)}-{words}",
        family=family(kind),
        group=kind.split("-")[0],
        payload={"kind": kind},
    )
