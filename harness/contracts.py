"""What a host, a memory method, an environment and the models promise each other.

A *stream* plays an ordered sequence of tasks under one cell (host, memory method, environment, models, seed). The
environment opens a *session* per attempt; the host owns the orchestration of the team inside it; the memory is called
at four hooks, inside the stream's transaction; the models are the only way to a language model. A host does not know
which memory it runs with, a memory does not know which host calls it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ActionMode = Literal["line", "block", "json"]
ModelKey = Literal["planner", "actor", "memory", "judge", "reflector", "optimizer", "eval_judge"]
Phase = Literal["retrieve", "plan", "act", "align", "write", "validate", "judge"]
UsageSource = Literal["provider", "tokenizer", "estimate"]
TaskStatus = Literal["completed", "failed", "unresolved"]

MODEL_KEYS: tuple[ModelKey, ...] = ("planner", "actor", "memory", "judge", "reflector", "optimizer", "eval_judge")

# Evidence tiers (SEPM paper B.3): environment or official state > tool observation > verified artifact > agent inference.
TIER_ENVIRONMENT, TIER_TOOL, TIER_ARTIFACT, TIER_INFERENCE = 4, 3, 2, 1


# --- tasks and what happens in them -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Task:
    """One task of a benchmark.

    `index` is the official 0-based index; `key` is the short text that memories retrieve by ("<family>-<goal sentence>");
    `group` is what results are broken down by (OfficeBench's number of applications); `payload` is the adapter's own.
    """

    task_id: str
    index: int
    goal: str
    key: str
    family: str
    group: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Evidence:
    """One observed fact: `key` is (entity, attribute); `observed_at` is the logical clock (step, sequence), never wall time."""

    key: tuple[str, str]
    value: Any
    tier: int
    source: str
    observed_at: tuple[int, int]
    confidence: float = 1.0
    node_id: str | None = None


@dataclass(frozen=True)
class StepResult:
    """What an action led to. `reward` follows the benchmark; `error` is set where the environment refused the action."""

    observation: str
    reward: float = 0.0
    done: bool = False
    error: str | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The grader's word: `score` in [0, 1]; `feedback` is the text that a memory may learn from (RUN-R7)."""

    score: float
    success: bool
    status: TaskStatus
    feedback: str = ""
    metrics: Mapping[str, float | int | str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"score {self.score} lies outside [0, 1]")


@dataclass(frozen=True)
class Turn:
    """One environment step: who acted, the executed action as normalised, the model's raw text, and what came of it.

    `upstream` are the agents whose messages this action answered (edges of an interaction graph).
    """

    step: int
    agent: str
    action: str
    raw: str
    result: StepResult
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trajectory:
    """All that happened in one attempt; `turns` in order."""

    initial_observation: str
    turns: tuple[Turn, ...]

    def text(self) -> str:
        """The episode as `> action` / observation pairs (METHODS.md 1.4)."""
        lines = [self.initial_observation]
        for turn in self.turns:
            lines += [f"> {turn.action}", turn.result.observation]
        return "\n".join(lines)


# --- environments -----------------------------------------------------------------------------------------------------
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
        """Actions that solve `task`, or None where no oracle exists."""


# --- models -----------------------------------------------------------------------------------------------------------
class Message(TypedDict):
    """A chat message in the OpenAI form."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. `cached_input` is part of `input` (TOK-R3), `reasoning` is part of `output` (TOK-R2)."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0
    source: UsageSource = "provider"


@dataclass(frozen=True)
class Reply:
    """A model's answer. `text` may be empty: the caller decides what that means. `model` is what the endpoint said it ran."""

    text: str
    usage: Usage
    model: str
    finish_reason: str | None = None


@dataclass(frozen=True)
class Call:
    """One request for a completion.

    `role` is a dotted purpose (`host.autogen.solver`, `memory.generative.rate`, `env.judge`); `key` names the endpoint by
    function, which the model configuration maps to a model. `choices` are the admissible answers, where they are known:
    a back-end with a grammar is held to them if `run.constrain_actions` is on, other back-ends ignore them. `schema` is
    a JSON schema for the answer. None means: the endpoint's configured value.
    """

    role: str
    messages: tuple[Message, ...]
    key: ModelKey
    phase: Phase
    agent: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    schema: Mapping[str, Any] | None = None


class LocalEmbedder(Protocol):
    """Turns texts into vectors in this process, deterministically and at no price. `name` is what the ledger calls its model."""

    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One L2-normalised vector a text (zeros where a text holds nothing), shape (len(texts), dimensions)."""

    def count(self, texts: Sequence[str]) -> int:
        """Tokens of `texts` by the embedder's own tokenizer."""


class Models(Protocol):
    """The only way to a model. Every call and every retry is a row of the usage ledger."""

    def complete(self, call: Call) -> Reply:
        """Answer one call. Raises ContextOverflow, ContentRefused, ProviderError, LimitExceeded, ReplayMiss."""

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        """Answer independent calls, concurrently where the endpoint allows; ledger rows stand in the order of `calls`."""

    def embed(
        self, role: str, texts: Sequence[str], *, phase: Phase, agent: str | None = None, local: LocalEmbedder | None = None
    ) -> NDArray[np.float64]:
        """Vectors of `texts`, shape (len(texts), dimensions): by `local` in this process, else by the endpoint of key `embed`.

        The rows have the kind `embedding` and are no part of the headline total (TOK-R6). Local ones cost nothing and count
        against no limit. Raises what `complete` raises, and ConfigError where the model set has no endpoint for embeddings.
        """


# --- memory -----------------------------------------------------------------------------------------------------------
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
    """An agent of the host's team; `acts` says whether it may propose environment actions."""

    name: str
    role: str
    acts: bool = True


# Plays the task in play once more in a fresh world, with this guidance in the place of the memory's and none of its hooks.
Rehearse = Callable[[Guidance], tuple[Trajectory, Outcome]]


@dataclass(frozen=True)
class MemoryServices:
    """What a memory is given: the stream's database (inside the stream's transaction: never commit), the models, the seed.

    `max_steps` is the environment's step budget of an attempt. `rehearse` may be called in `on_task_end` only; its model calls
    are of phase `validate`. None where nobody offers a second world (in a unit test).
    """

    db: sqlite3.Connection
    models: Models
    seed: int
    max_steps: int = 30
    rehearse: Rehearse | None = None


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


# --- hosts ------------------------------------------------------------------------------------------------------------
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

    `oracle` returns the solving actions (None where there is no oracle); `choices` the admissible actions at this moment.
    """

    task: Task
    seed: int
    oracle: Callable[[], Sequence[str] | None]
    choices: Callable[[], tuple[str, ...] | None]
