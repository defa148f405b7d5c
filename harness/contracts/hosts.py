"""What a host promises, and the session, memory and models as it sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from harness.contracts.environments import ActionMode
from harness.contracts.memory import Guidance, Member, Review
from harness.contracts.models import Models
from harness.contracts.tasks import Evidence, Task, Trajectory, Turn


class TaskSession(Protocol):
    """The session as a host sees it: counted, logged and bounded by the stream."""

    task: Task
    observation: str
    facts: frozenset[str]
    instructions: str
    few_shots: tuple[str, ...]
    action_mode: ActionMode
    noop_action: str
    max_steps: int

    @property
    def choices(self) -> tuple[str, ...] | None: ...

    @property
    def steps(self) -> int:
        """Environment steps so far."""

    @property
    def done(self) -> bool:
        """The environment ended, or `max_steps` steps were made: no further step is allowed."""

    def normalise(self, text: str) -> str: ...

    def act(self, agent: str, raw: str, *, upstream: Sequence[str] = ()) -> Turn:
        """Execute the action in `raw` for `agent`: one environment step, one record, one `after_action` of the memory."""

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None: ...

    def trajectory(self) -> Trajectory:
        """What has happened so far."""

    def record(self, kind: str, content: Mapping[str, Any]) -> None:
        """Put something into the event log (an agent's importance, say); nothing reads it back during the run."""


class TeamMemory(Protocol):
    """The memory as a host sees it during one task."""

    guidance: Guidance

    def before_action(self, agent: Member, step: int) -> str: ...

    def review(self, agent: Member, step: int, text: str) -> Review: ...

    def episode(self, agent: Member, trajectory: Trajectory) -> str: ...


class Host(Protocol):
    """An orchestration of agents. Constructed as `cls(config, seed)`."""

    Config: ClassVar[type]
    name: ClassVar[str]
    version: ClassVar[str]

    def team(self, task: Task) -> Sequence[Member]:
        """The agents that will work on `task`, before the first of them speaks."""

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        """Play one task until `session.done` or until the host gives up. Any exception is classified by harness.errors."""


@dataclass(frozen=True)
class TaskInfo:
    """What the stream tells a model back-end about the task in play; only test doubles look at it.

    `oracle` returns the solving actions (None where there is no oracle); `choices` the admissible actions at this moment;
    `guide` the next solving action of a session that is `Guided`, else None.
    """

    task: Task
    seed: int
    oracle: Callable[[], Sequence[str] | None]
    choices: Callable[[], tuple[str, ...] | None]
    guide: Callable[[], str | None] = lambda: None
