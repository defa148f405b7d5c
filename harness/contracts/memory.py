"""What a memory method promises, and what it gives the team."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from harness.contracts.models import Models
from harness.contracts.tasks import Outcome, Task, Trajectory, Turn


@dataclass(frozen=True)
class TrajectoryCard:
    """A past task shown to the agents; `key_steps` is left out of the prompt when None."""

    task: str
    trajectory: str
    key_steps: str | None = None


@dataclass(frozen=True)
class Guidance:
    """What a memory gives the team at task start; an empty one leaves the prompt as it is without memory.

    `reply_header` asks the agents for lines of the memory's own before their action (a declared subtask, say); the
    memory's `review` reads and removes them.
    """

    cards: tuple[TrajectoryCard, ...] = ()
    insights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by agent role; "*" is for all
    procedures: tuple[str, ...] = ()
    brief: str = ""
    reply_header: str = ""

    def insights_for(self, role: str) -> tuple[str, ...]:
        return tuple(self.insights.get("*", ())) + tuple(self.insights.get(role, ()))


@dataclass(frozen=True)
class Review:
    """What a memory makes of an agent's reply before it is executed: `text` is the reply without the memory's own lines;
    `blocked`, if not empty, says why the action must wait (the agent is asked once more, with that as a note).
    """

    text: str
    blocked: str = ""


@dataclass(frozen=True)
class Member:
    """An agent of the host's team.

    `acts` says whether it proposes environment actions of its own: one that only ranks or settles what others propose does not,
    and no part of a task can be given to it. Members of one `group` work on the same step at the same time (the agents of a
    grid): what is assigned to one of them is assigned to all.
    """

    name: str
    role: str
    acts: bool = True
    group: str | None = None


# Plays the task in play once more in a fresh world, with this guidance in the place of the memory's and none of its hooks.
Rehearse = Callable[[Guidance], tuple[Trajectory, Outcome]]
# Writes a line about the task in play into the event log, where `memarena report` finds it: a kind, and JSON-able content.
Note = Callable[[str, Mapping[str, Any]], None]


def unnoted(kind: str, content: Mapping[str, Any]) -> None:
    """The note of a memory that nobody listens to (in a unit test)."""


@dataclass(frozen=True)
class MemoryServices:
    """What a memory is given: the stream's database (inside the stream's transaction: never commit), the models, the seed.

    `max_steps` is the environment's step budget of an attempt. `rehearse` may be called in `on_task_end` only; its model calls
    are of phase `validate`. None where nobody offers a second world (in a unit test).

    `note` tells what a reader of the run wants to see and no table keeps. The report knows these kinds, `step` being the number
    of environment steps made: `graph` (step, graph: nodes with id, action, agent and status in topological order, and edges, or
    prose: lines), `graph_status` (step, changed: node id → status), `divergence` (step, agent, reasons, goal, plan, conflicts),
    `correction` (step, agent, text) and `memory_change` (item, change: added | changed | removed, why, before, after). Any
    other kind is shown as it is.
    """

    db: sqlite3.Connection
    models: Models
    seed: int
    max_steps: int = 30
    rehearse: Rehearse | None = None
    note: Note = unnoted


class Memory(Protocol):
    """A memory method. Constructed as `cls(config, services)`.

    All that must outlive a task lies in tables of `services.db`, so that a rolled-back task leaves no trace: the stream makes a
    new object after every abandoned attempt and on resume.
    """

    Config: ClassVar[type]
    name: ClassVar[str]
    version: ClassVar[str]

    def open(self) -> None:
        """Create the tables that are missing. Called once per process, before the first task."""

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        """Once per task, before the host's loop."""

    def before_action(self, agent: Member, step: int) -> str:
        """Extra context for the agent's next prompt; empty for none. Once per model turn of an acting agent."""

    def review(self, agent: Member, step: int, text: str) -> Review:
        """Read an agent's reply before it is executed. Called for every reply that is not empty."""

    def episode(self, agent: Member, trajectory: Trajectory) -> str:
        """The episode so far as it stands in the agent's prompt: all of it, unless the method is one that shortens it (a
        summary, the recent steps). Once per prompt."""

    def after_action(self, turn: Turn) -> None:
        """Exactly once per environment step (HOST-AG R7)."""

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        """Once per task, after grading."""


@runtime_checkable
class Inspectable(Protocol):
    """Optional for a memory class: what `memarena memory RUN` shows of what the memory has learnt."""

    @staticmethod
    def inspect(path: Path, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """JSON-able, read from the stream's file at `path`; `config` is the method's configuration as the manifest has it.

        `text` is printed as it is. Optional: `envelope` (role → what its calls may cost, in words), and `tasks`, a list of
        mappings with `task_id`, `task_no` and `graph`.
        """

    @staticmethod
    def diagram(graph: Mapping[str, Any], style: str) -> str:
        """A task's `graph` as Mermaid ("mermaid") or Graphviz ("dot")."""
