"""WebArena-Verified as a MemArena environment: 812 tasks (or the hard 258) on env=webarena's sites, graded without a model."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from envs.browser import provision
from envs.browser.client import BrowserPool, WorkerSettings
from envs.browser.plan import TaskPlan
from envs.webarena import sites
from envs.webarena.adapter import GROUPS, RESETS, STEPS, SUBSETS, WebArena, WebArenaConfig
from envs.webarena.sites import SiteAddresses
from envs.webarena_verified.dataset import COUNTS, PACKAGE, TASK_TYPES, VERSION, Dataset
from envs.webarena_verified.grading import grade
from envs.webarena_verified.session import VerifiedSession
from harness.contracts import ActionMode, Problem, Task
from harness.errors import ConfigError
from harness.registry import did_you_mean

TASK = "envs.webarena_verified.task:VerifiedTask"


@dataclass
class WebArenaVerifiedConfig:
    """Values of conf/env/webarena_verified.yaml; those that env=webarena has too mean the same here.

    `subset` is all (812) or hard (the published 258); `tasks` are official numbers (empty: all of the subset); `groups` plays the
    tasks whose sites are all among these, `task_types` those that are of these types (empty: all). `sites`, `reset`,
    `observation_tokens`, `slow_mo`, `observation_delay` and the limits in seconds: see envs.webarena.adapter.WebArenaConfig.
    """

    name: str = "webarena_verified"
    subset: str = "all"
    tasks: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    task_types: list[str] = field(default_factory=list)
    reset: str = "auto"
    max_steps: int = STEPS
    observation_tokens: int | None = 3000
    slow_mo: int | None = 0
    observation_delay: float = 0.5
    sites: SiteAddresses = field(default_factory=SiteAddresses, metadata={"identity": False})
    reset_seconds: float = field(default=120.0, metadata={"identity": False})
    step_seconds: float = field(default=90.0, metadata={"identity": False})
    reset_server_seconds: float = field(default=900.0, metadata={"identity": False})

    def __post_init__(self) -> None:
        for key, values, known in (
            ("subset", [self.subset], list(COUNTS)),
            ("groups", self.groups, list(GROUPS)),
            ("task_types", self.task_types, list(TASK_TYPES)),
            ("reset", [self.reset], list(RESETS)),
        ):
            for value in values:
                if value not in known:
                    raise ConfigError(f"env.{key} is {value!r}.", did_you_mean(value, known))
        self.hosted()  # which checks what both have

    def hosted(self) -> WebArenaConfig:
        """The same sites and limits as env=webarena takes them."""
        return WebArenaConfig(
            tasks=self.tasks,
            groups=self.groups,
            reset=self.reset,
            max_steps=self.max_steps,
            observation_tokens=self.observation_tokens,
            slow_mo=self.slow_mo,
            observation_delay=self.observation_delay,
            sites=self.sites,
            reset_seconds=self.reset_seconds,
            step_seconds=self.step_seconds,
            reset_server_seconds=self.reset_server_seconds,
        )


class WebArenaVerified:
    """The environment. Construction reads nothing and starts nothing."""

    Config: ClassVar[type] = WebArenaVerifiedConfig
    name: ClassVar[str] = "webarena_verified"
    version: ClassVar[str] = "1-A"
    unrepeatable: ClassVar[str] = "the sites are shared, and remember what every task did to them"
    action_mode: ActionMode = "block"

    def __init__(self, config: WebArenaVerifiedConfig | None = None) -> None:
        self._config = config or WebArenaVerifiedConfig()
        self.max_steps = self._config.max_steps
        self._hosted = WebArena(self._config.hosted())  # looks after the sites
        self._addresses = self._config.sites.resolved()
        self._dataset = Dataset(
            self._config.subset, self._config.tasks, self._config.groups or GROUPS, self._config.task_types or TASK_TYPES
        )
        self._records = itertools.count(1)
        self._pool = BrowserPool(
            WorkerSettings(
                env={**provision.worker_env(), **sites.worker_env(self._addresses)},
                reset_seconds=self._config.reset_seconds,
                step_seconds=self._config.step_seconds,
                close_seconds=self._config.step_seconds,  # the record of a long task is written then
            )
        )

    def check(self) -> list[Problem]:
        """The package with the tasks, and all that env=webarena needs but a judge."""
        found = provision.version(PACKAGE)
        own = (
            [] if found == VERSION else [Problem(f"{PACKAGE} is {found or 'not installed'}; wanted: {VERSION}", provision.SETUP)]
        )
        return own + self._hosted.check()

    def probe(self) -> list[Problem]:
        """Log in at every site of the chosen tasks, with a real browser."""
        return self._hosted.probe()

    def tasks(self) -> Sequence[Task]:
        """The chosen tasks by number."""
        return self._dataset.tasks

    @property
    def data_digest(self) -> str:
        return self._dataset.digest

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Never raises."""
        count = len(self._dataset.rows) if provision.version(PACKAGE) else 0
        return {
            "source": f"official, {count} of {COUNTS['all']} tasks",
            "subset": self._config.subset,
            "tasks": count,
            "reset": self._config.reset,
            "hosts": list(sites.hosts(self._addresses)),
            "packages": {**provision.versions(), PACKAGE: provision.version(PACKAGE) or "none"},
        }

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[VerifiedSession]:
        """A fresh, recorded browser context, logged in, at the task's start pages; the sites as earlier tasks have left them.

        Raises EnvironmentCrashed where a site, a login, a reset or the browser fails.
        """
        number, used = task.index, {site: self._addresses[site] for site in task.payload["sites"]}
        self._hosted.reset_once()
        with self._pool.borrow() as browser:
            names, description = browser.describe(SUBSETS)
            record = browser.scratch_file(f"network-{next(self._records)}.har")  # goes with the worker
            page = browser.open(self._plan(task, seed, used, record))
            session = VerifiedSession(
                browser,
                page,
                names=names,
                description=description,
                facts=frozenset({f"family={task.family}", *(f"site={site}" for site in used)}),
                budget=self._config.observation_tokens,
                health=functools.partial(sites.ailing, used),
                grader=lambda answer, har: grade(number, answer, har, used),
                record=record,
            )
            session.examine(page)
            yield session

    def _plan(self, task: Task, seed: int, used: Mapping[str, str], record: Path) -> TaskPlan:
        return TaskPlan(
            entry=TASK,
            kwargs={
                "sites": list(used),
                "start_urls": [with_address(url, used) for url in task.payload["start_urls"]],
                "intent": task.goal,
            },
            seed=seed % 2**32,  # numpy's range
            subsets=SUBSETS,
            slow_mo=self._config.slow_mo,
            observation_delay=self._config.observation_delay,
            sites=sites.hosts(self._addresses),
            # embedded: 21 tasks are graded by what a server has answered
            context={"record_har_path": str(record), "record_har_content": "embed", "record_har_mode": "full"},
        )

    def oracle(self, task: Task) -> Sequence[str] | None:
        """None: no solutions are published."""
        return None


def with_address(url: str, addresses: Mapping[str, str]) -> str:
    """`__GITLAB__/explore` with the site's address."""
    for site, address in addresses.items():
        url = url.replace(f"__{site.upper()}__", address)
    return url
