"""What an environment (a benchmark) promises: tasks in order, a session an attempt, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from harness.contracts.models import Models
from harness.contracts.tasks import Evidence, Outcome, StepResult, Task

ActionMode = Literal["line", "block", "json"]


@dataclass(frozen=True)
class Problem:
    """Something missing: what it is, and the command (or setting) that mends it."""

    what: str
    fix: str


@runtime_checkable
class Session(Protocol):
    """One attempt at one task in a fresh world. After `done`, only `outcome()` may be called."""

    observation: str  # the first observation, goal included
    facts: frozenset[str]  # F_q: context facts verified at reset
    instructions: str  # the rules of the action format, for the system message
    few_shots: tuple[str, ...]  # worked examples of the adapter, possibly empty
    action_mode: ActionMode
    noop_action: str  # what a host does when the model says nothing

    @property
    def choices(self) -> tuple[str, ...] | None:
        """The admissible actions now, in the environment's order; None where they cannot be listed."""

    def normalise(self, text: str) -> str:
        """The action in a model's answer. Pure: no environment step."""

    def step(self, action: str) -> StepResult:
        """Execute one normalised action."""

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        """Fresh evidence for `keys`; None where the environment cannot be asked. May cost a step."""

    def outcome(self) -> Outcome:
        """Grade the attempt as it stands."""


@runtime_checkable
class Judged(Protocol):
    """A session whose grader, or one of whose tools, needs a model: it is handed the task's models before the first step."""

    def use_models(self, models: Models) -> None: ...


@runtime_checkable
class Guided(Protocol):
    """A session that knows a solution step by step, where actions cannot be listed beforehand: they name what is on the page."""

    def oracle_action(self) -> str | None:
        """The next action of the solution for the world as it stands; None after its end, and where there is none. Pure."""


@runtime_checkable
class Idle(Protocol):
    """An environment in which an agent that does nothing has to say so. Test doubles do the same for a task without an oracle."""

    def idle(self, task: Task) -> Sequence[str]:
        """The actions of an agent that does nothing."""


@runtime_checkable
class Probed(Protocol):
    """An environment that can try out what `check` only looks at (a login, say); `memarena doctor` has it do so."""

    def probe(self) -> list[Problem]:
        """What does not work; called where `check` found nothing. May take a minute, raises nothing."""


@runtime_checkable
class Unrepeatable(Protocol):
    """An environment whose world is not the same again for the same actions (sites that others host): no `memarena rescore`."""

    unrepeatable: str  # why, in a few words


class Environment(Protocol):
    """A benchmark. Constructed with an instance of its `Config` dataclass; construction spends nothing and reads little.

    `version` is "N-X": N changes when scores stop being comparable. `data_digest` is the sha256 of what the tasks are made
    from. `provenance` goes into the run's manifest (data version, grammar, …).
    """

    Config: ClassVar[type]
    name: ClassVar[str]
    version: ClassVar[str]
    max_steps: int
    action_mode: ActionMode

    @property
    def data_digest(self) -> str: ...

    @property
    def provenance(self) -> Mapping[str, Any]: ...

    def check(self) -> list[Problem]:
        """What is missing before a task can be played; empty when all is well. Cheap, raises nothing."""

    def tasks(self) -> Sequence[Task]:
        """All tasks of the configured split in the official order."""

    def open(self, task: Task, seed: int) -> AbstractContextManager[Session]:
        """A fresh world for `task`. Raises EnvironmentCrashed where the engine fails."""

    def oracle(self, task: Task) -> Sequence[str] | None:
        """Actions that solve `task`; None where no oracle exists or only a session knows them (see `Guided`)."""
