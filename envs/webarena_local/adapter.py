"""WebArena on our own double of its sites, as a MemArena environment. Nothing to host: the sites run beside the browser."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from envs.browser import provision
from envs.browser.client import Browser, WorkerSettings
from envs.browser.plan import TaskPlan
from envs.webarena import dataset
from envs.webarena import sites as site_health
from envs.webarena.adapter import GROUPS, STEPS, SUBSETS
from envs.webarena.session import JUDGES
from envs.webarena_local import tasks
from envs.webarena_local.scripts import moves, script
from envs.webarena_local.session import LocalSession
from envs.webarena_local.site.world import SITES
from envs.webarena_local.sites import Sites
from harness.contracts import ActionMode, Problem, Task
from harness.errors import ConfigError
from harness.registry import did_you_mean

PAUSE = 3.0  # seconds that libwebarena waits after it has opened a page to grade
TASK = "envs.webarena_local.task:LocalTask"


@dataclass
class WebArenaLocalConfig:
    """Values of conf/env/webarena_local.yaml; those that env=webarena has too mean the same here.

    `tasks` are numbers from 9000 on (empty: all); `groups` plays the tasks whose sites are all among these (empty: all); `fuzzy`
    false leaves out those that a model judges. `homepage_hint` and `na_hint` add BrowserGym's notes to the goal. `grader_pause`
    is what libwebarena's evaluators wait for a page that they open, at every step (official: 3 s; the double's pages are there
    at once). `judge`, `observation_tokens`, `slow_mo` and `observation_delay`: see envs.webarena.adapter.WebArenaConfig. The
    seconds are limits, after which the browser counts as failed.
    """

    name: str = "webarena_local"
    tasks: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    fuzzy: bool = True
    judge: str = "gateway"
    max_steps: int = STEPS
    observation_tokens: int | None = 3000
    homepage_hint: bool = False
    na_hint: bool = False
    grader_pause: float = PAUSE
    slow_mo: int | None = 0
    observation_delay: float = 0.1
    reset_seconds: float = field(default=60.0, metadata={"identity": False})
    step_seconds: float = field(default=60.0, metadata={"identity": False})

    def __post_init__(self) -> None:
        if self.judge not in JUDGES:
            raise ConfigError(f"env.judge is {self.judge!r}.", f"There are: {', '.join(JUDGES)}.")
        for name in self.groups:
            if name not in GROUPS:
                raise ConfigError(f"env.groups names {name!r}.", did_you_mean(name, list(GROUPS)))
        numbers = [config["task_id"] for config in tasks.configs()]
        for number in self.tasks:
            if number not in numbers:
                raise ConfigError(f"env.tasks names {number}.", f"Tasks are numbered {numbers[0]} to {numbers[-1]}.")
        if self.max_steps < 1 or (self.observation_tokens is not None and self.observation_tokens < 1):
            raise ConfigError("env.max_steps and observation_tokens must be positive.")
        if min(self.reset_seconds, self.step_seconds) <= 0:
            raise ConfigError("env.reset_seconds and step_seconds must be positive.")
        if min(self.grader_pause, self.observation_delay, self.slow_mo or 0) < 0:
            raise ConfigError("env.grader_pause, observation_delay and slow_mo must not be negative.")


class Stage:
    """The sites and the browser that visits them. They belong together: a worker learns the addresses when it is started."""

    def __init__(self, config: WebArenaLocalConfig) -> None:
        self.sites = Sites()
        self._config = config
        self._browser: Browser | None = None
        self._urls: Mapping[str, str] = {}

    def browser(self) -> Browser:
        """The browser; a new one where the sites have been started anew, on other ports."""
        urls = dict(self.sites.urls())
        if self._browser is None or urls != self._urls:
            self.close_browser()
            settings = WorkerSettings(
                env={**provision.worker_env(), **site_health.worker_env(urls)},
                reset_seconds=self._config.reset_seconds,
                step_seconds=self._config.step_seconds,
            )
            self._browser, self._urls = Browser(settings), urls
        return self._browser

    def close_browser(self) -> None:
        if self._browser is not None:
            self._browser.close()

    def close_task(self) -> None:
        if self._browser is not None:
            self._browser.close_task()


class WebArenaLocal:
    """The environment. Construction starts nothing; the first task starts sites and browser, which then stay."""

    Config: ClassVar[type] = WebArenaLocalConfig
    name: ClassVar[str] = "webarena_local"
    version: ClassVar[str] = "1-A"
    action_mode: ActionMode = "block"

    def __init__(self, config: WebArenaLocalConfig | None = None) -> None:
        self._config = config or WebArenaLocalConfig()
        self.max_steps = self._config.max_steps
        self._idle: list[Stage] = []
        self._lock = threading.Lock()

    def check(self) -> list[Problem]:
        """Packages, browser and data; that the judged tasks have a judge. The sites need no looking after: they are ours."""
        found = provision.problems(webarena=True)
        if provision.version("flask") is None:
            found.append(Problem("The package flask is not installed.", provision.SETUP))
        if self._config.judge == "none" and (count := sum(dataset.needs_judge(task.payload) for task in self._tasks)):
            what = f"{count} of the chosen tasks are graded by a model, and env.judge is none"
            found.append(Problem(what, "env.judge=gateway, or env.fuzzy=false"))
        return found

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        chosen, wanted = set(self._config.tasks), set(self._config.groups or GROUPS)
        return tuple(
            tasks.task(config, index)
            for index, config in enumerate(tasks.configs())
            if (not chosen or config["task_id"] in chosen)
            and set(config["sites"]) <= wanted
            and (self._config.fuzzy or not dataset.needs_judge(config))
        )

    def tasks(self) -> Sequence[Task]:
        """The chosen tasks in the order of tasks.json; the index counts all of them, chosen or not."""
        return self._tasks

    @property
    def data_digest(self) -> str:
        return tasks.digest()

    @property
    def provenance(self) -> Mapping[str, Any]:
        return {
            "source": "local",  # neither WebArena's sites nor its tasks
            "tasks": len(self._tasks),
            "packages": provision.versions(),
        }

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[LocalSession]:
        """A fresh browser context before sites in their first state. Raises EnvironmentCrashed where either fails."""
        config = task.payload
        with self.stage() as stage:
            stage.sites.reset()
            browser, urls = stage.browser(), stage.sites.urls()
            names, description = browser.describe(SUBSETS)
            page = browser.open(self._plan(task, seed, urls))
            session = LocalSession(
                browser,
                page,
                names=names,
                description=description,
                facts=frozenset({f"family={task.family}", *(f"site={site}" for site in config["sites"])}),
                budget=self._config.observation_tokens,
                oracle=script(moves(str(config["task_id"]))),
                aliases={urls[site]: f"http://{site.replace('_', '-')}.double" for site in SITES},
                judge=self._config.judge,
                health=functools.partial(site_health.ailing, {site: urls[site] for site in config["sites"]}),
                asks_a_server=dataset.asks_a_server(config),
            )
            session.examine(page)
            yield session

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        """Sites and browser for one task; others while a task is open (a rehearsal), so that no two tasks share a world."""
        with self._lock:
            stage = self._idle.pop() if self._idle else Stage(self._config)
        try:
            yield stage
        finally:
            stage.close_task()
            with self._lock:
                self._idle.append(stage)

    def _plan(self, task: Task, seed: int, urls: Mapping[str, str]) -> TaskPlan:
        config = self._config
        return TaskPlan(
            entry=TASK,
            kwargs={
                "config": tasks.with_addresses(task.payload, urls),
                "grader_pause": config.grader_pause,
                "with_na_hint": config.na_hint,
                "with_homepage_hint": config.homepage_hint,
            },
            seed=seed % 2**32,  # numpy's range
            subsets=SUBSETS,
            slow_mo=config.slow_mo,
            observation_delay=config.observation_delay,
            sites=site_health.hosts(urls),
            judge=dataset.needs_judge(task.payload),
            ask_before_answer=config.judge == "official",
        )

    def oracle(self, task: Task) -> Sequence[str] | None:
        """None: a solution reads the page, see `LocalSession.oracle_action`."""
        return None

    def close(self) -> None:
        """End sites and browsers that are not at work; the next task starts them again. They also end with the process."""
        with self._lock:
            for stage in self._idle:
                stage.close_browser()
                stage.sites.close()
            self._idle.clear()
