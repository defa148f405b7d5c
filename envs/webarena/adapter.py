"""WebArena as a MemArena environment: the official tasks, action set, evaluators and order, on sites that the user hosts."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from envs.browser import provision
from envs.browser.client import BrowserPool, WorkerSettings
from envs.browser.plan import TaskPlan
from envs.webarena import dataset, sites
from envs.webarena.session import JUDGES, WebArenaSession
from envs.webarena.sites import SiteAddresses
from harness.contracts import ActionMode, Problem, Task
from harness.errors import ConfigError, EnvironmentCrashed, SetupError
from harness.registry import did_you_mean

SUBSETS, STEPS = ("webarena",), 30  # BrowserGym's published WebArena benchmark
RESETS = ("auto", "never")
GROUPS = tuple(site for site in sites.SITES if site != "homepage")

# the model that libwebarena 0.0.4 names
OFFICIAL_JUDGE = "gpt-4-1106-preview"


@dataclass
class WebArenaConfig:
    """Values of conf/env/webarena.yaml.

    `tasks` are official numbers (empty: all 812); `groups` plays the tasks whose sites are all among these (empty: all); `fuzzy`
    false leaves out the 118 that a model judges. `sites` are the addresses (envs.webarena.sites.SiteAddresses). `reset` auto has
    the reset server bring the sites to their first state before the first task that a process plays, never leaves that to you.
    `judge`: gateway asks the model with the key eval_judge; official insists that this is the model that WebArena names; none
    refuses tasks that need one. `homepage_hint` and `na_hint` add BrowserGym's notes to the goal (off there too). `slow_mo` (ms;
    null: the task's own, 1000) and `observation_delay` (s) are BrowserGym's. The seconds
    are limits, after which browser or reset count as failed.
    """

    name: str = "webarena"
    tasks: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    fuzzy: bool = True
    judge: str = "gateway"
    reset: str = "auto"
    max_steps: int = STEPS
    observation_tokens: int | None = 3000
    homepage_hint: bool = False
    na_hint: bool = False
    slow_mo: int | None = 0
    observation_delay: float = 0.5
    sites: SiteAddresses = field(default_factory=SiteAddresses, metadata={"identity": False})
    reset_seconds: float = field(default=120.0, metadata={"identity": False})
    step_seconds: float = field(default=90.0, metadata={"identity": False})
    reset_server_seconds: float = field(default=900.0, metadata={"identity": False})

    def __post_init__(self) -> None:
        for key, value, known in (("judge", self.judge, JUDGES), ("reset", self.reset, RESETS)):
            if value not in known:
                raise ConfigError(f"env.{key} is {value!r}.", f"There are: {', '.join(known)}.")
        for name in self.groups:
            if name not in GROUPS:
                raise ConfigError(f"env.groups names {name!r}.", did_you_mean(name, list(GROUPS)))
        for number in self.tasks:
            if not 0 <= number < dataset.COUNT:
                raise ConfigError(f"env.tasks names {number}.", f"Tasks are numbered 0 to {dataset.COUNT - 1}.")
        if self.max_steps < 1 or (self.observation_tokens is not None and self.observation_tokens < 1):
            raise ConfigError("env.max_steps and observation_tokens must be positive.")
        if min(self.reset_seconds, self.step_seconds, self.reset_server_seconds) <= 0:
            raise ConfigError("env.reset_seconds, step_seconds and reset_server_seconds must be positive.")
        if self.observation_delay < 0 or (self.slow_mo or 0) < 0:
            raise ConfigError("env.observation_delay and slow_mo must not be negative.")


class WebArena:
    """The environment. Construction reads nothing and starts nothing."""

    Config: ClassVar[type] = WebArenaConfig
    name: ClassVar[str] = "webarena"
    version: ClassVar[str] = "1-A"
    unrepeatable: ClassVar[str] = "the sites are shared, and remember what every task did to them"
    action_mode: ActionMode = "block"

    def __init__(self, config: WebArenaConfig | None = None) -> None:
        self._config = config or WebArenaConfig()
        self.max_steps = self._config.max_steps
        self._addresses = self._config.sites.resolved()
        self._was_reset = False
        self._pool = BrowserPool(
            WorkerSettings(
                env={**provision.worker_env(), **sites.worker_env(self._addresses)},
                reset_seconds=self._config.reset_seconds,
                step_seconds=self._config.step_seconds,
            )
        )

    # --- what is there ------------------------------------------------------------------------------------------------
    def check(self) -> list[Problem]:
        """Packages, browser, data, addresses, sites, reset server, judge. All servers are asked at once, five seconds at most."""
        found = provision.problems(webarena=True)
        if dataset.path() is None:
            return found
        found += self._judge_problems()
        missing = [site for site in sites.SITES if site not in self._addresses]
        if missing:
            names = " ".join(f"{sites.variable(site)}=http://…" for site in missing)
            return [*found, Problem(f"Addresses of sites are not known: {', '.join(missing)}", f"export {names}")]
        return found + self._server_problems()

    def _judge_problems(self) -> list[Problem]:
        count = sum(dataset.needs_judge(config) for config in self._configs)
        if self._config.judge != "none" or not count:
            return []
        return [
            Problem(
                f"{count} of the chosen tasks are graded by a model, and env.judge is none",
                "env.judge=gateway, or env.fuzzy=false",
            )
        ]

    def _server_problems(self) -> list[Problem]:
        wanted = {site: self._addresses[site] for site in (*self._used, "homepage")}
        if self._config.reset == "auto":
            if "reset" not in self._addresses:
                fix = "export WA_FULL_RESET=http://…, or reset the sites yourself and set env.reset=never"
                return [Problem("There is no reset server for env.reset=auto", fix)]
            wanted["reset"] = f"{self._addresses['reset']}/status"
        return [
            Problem(f"{site} at {wanted[site]} does not answer: {what}", f"start it, or correct {sites.variable(site)}")
            for site, what in sites.ailing(wanted).items()
        ]

    def probe(self) -> list[Problem]:
        """Log in at every site of the chosen tasks, with a real browser (a few seconds a site)."""
        try:
            with self._pool.borrow() as browser:
                browser.open(
                    TaskPlan("envs.webarena.task:LoginProbe", {"sites": list(self._used)}, sites=sites.hosts(self._addresses))
                )
        except EnvironmentCrashed as error:
            return [Problem(error.message, "the accounts are those of WebArena's images; reset the sites")]
        return []

    @cached_property
    def _configs(self) -> tuple[dict[str, Any], ...]:
        chosen, wanted = set(self._config.tasks), set(self._config.groups or GROUPS)
        return tuple(
            config
            for config in dataset.configs()
            if (not chosen or config["task_id"] in chosen)
            and set(config["sites"]) <= wanted
            and (self._config.fuzzy or not dataset.needs_judge(config))
        )

    @property
    def _used(self) -> tuple[str, ...]:
        return dataset.sites_of(self._configs)

    def tasks(self) -> Sequence[Task]:
        """The chosen tasks by number, in which order every task comes after those that it depends on."""
        return self._tasks

    @cached_property
    def _tasks(self) -> tuple[Task, ...]:
        return tuple(dataset.task(config) for config in self._configs)

    @cached_property
    def data_digest(self) -> str:
        """sha256 over the configurations of the chosen tasks, addresses as placeholders."""
        return hashlib.sha256(json.dumps(self._configs, sort_keys=True).encode()).hexdigest()

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Versions, the hosts without what an address may hold besides, and how the sites are reset. Never raises."""
        count = len(self._configs) if dataset.path() is not None else 0
        return {
            "source": "official" if count == dataset.COUNT else f"official, {count} of {dataset.COUNT} tasks",
            "tasks": count,
            "judge": self._config.judge,
            "departures": self._departures() if count else [],
            "reset": self._config.reset,
            "hosts": list(sites.hosts(self._addresses)),
            "packages": {**provision.versions(), "libwebarena": provision.version("libwebarena") or "none"},
        }

    def _departures(self) -> list[str]:
        """What keeps scores from being set against published ones, whatever the configuration says."""
        judged = sum(dataset.needs_judge(config) for config in self._configs)
        if self._config.judge != "gateway" or not judged:
            return []
        return [f"{judged} tasks judged by the model with the key eval_judge (official: {OFFICIAL_JUDGE})"]

    # --- playing ------------------------------------------------------------------------------------------------------
    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[WebArenaSession]:
        """A fresh browser context, logged in, at the task's start page; the sites as earlier tasks have left them.

        Raises EnvironmentCrashed where a site, a login, a reset or the browser fails.
        """
        config = task.payload
        judged = dataset.needs_judge(config)
        if judged and self._config.judge == "none":
            raise SetupError(
                f"{task.task_id} is graded by a model, and env.judge is none.", "Set env.judge=gateway or env.fuzzy=false."
            )
        self.reset_once()
        used = {site: self._addresses[site] for site in config["sites"]}
        with self._pool.borrow() as browser:
            names, description = browser.describe(SUBSETS)
            page = browser.open(
                TaskPlan(
                    entry="envs.webarena.task:WebArenaTask",
                    kwargs={
                        "task_id": int(config["task_id"]),
                        "with_homepage_hint": self._config.homepage_hint,
                        "with_na_hint": self._config.na_hint,
                    },
                    seed=seed % 2**32,  # numpy's range
                    subsets=SUBSETS,
                    slow_mo=self._config.slow_mo,
                    observation_delay=self._config.observation_delay,
                    sites=sites.hosts(self._addresses),
                    judge=judged,
                    ask_before_answer=self._config.judge == "official",
                )
            )
            session = WebArenaSession(
                browser,
                page,
                names=names,
                description=description,
                facts=frozenset({f"family={task.family}", *(f"site={site}" for site in config["sites"])}),
                budget=self._config.observation_tokens,
                judge=self._config.judge,
                health=functools.partial(sites.ailing, used),
                asks_a_server=dataset.asks_a_server(config),
            )
            session.examine(page)
            yield session

    def reset_once(self) -> None:
        """Once a process, before its first task: see the configuration's `reset`."""
        if self._config.reset == "auto" and not self._was_reset:
            if "reset" not in self._addresses:
                raise SetupError("There is no reset server for env.reset=auto.", "Set WA_FULL_RESET, or env.reset=never.")
            sites.reset(self._addresses["reset"], self._addresses, self._config.reset_server_seconds)
        self._was_reset = True

    def oracle(self, task: Task) -> Sequence[str] | None:
        """None: no solutions of the official tasks are published."""
        return None
