"""Stand-ins for one collaborator at a time: models that answer by a function, a session around a list of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.contracts import Call, Guidance, Member, Outcome, Reply, StepResult, Task, Trajectory, Turn, Usage
from harness.limits import Limits
from harness.session import RecordedSession, TaskMemory
from methods.base import MemoryMethod
from methods.text.embedders import Hash256

TASK = Task("t", 0, "Press red.", "pair-press red", "pair")


class FakeModels:
    """Answers with `answer(call)` and keeps every call."""

    def __init__(self, answer: Callable[[Call], str]) -> None:
        self.answer, self.calls, self.embeddings = answer, [], []  # type: ignore[var-annotated]

    def complete(self, call: Call) -> Reply:
        self.calls.append(call)
        return Reply(self.answer(call), Usage(1, 1), "fake")

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        return [self.complete(call) for call in calls]

    def embed(self, role: str, texts: Sequence[str], *, phase: Any, agent: str | None = None, local: Any = None) -> Any:
        self.embeddings.append((role, tuple(texts)))
        return (local or Hash256()).embed(texts)

    def roles(self) -> list[str]:
        return [call.role for call in self.calls]


class FakeSession:
    """An adapter's session in which nothing ever happens, until `winning` is done."""

    observation = "A panel. Press red."
    facts = frozenset[str]()
    instructions = "Answer with one action."
    few_shots: tuple[str, ...] = ()
    action_mode = "line"
    noop_action = "look"
    choices = ("look", "press red", "press blue")

    def __init__(self, winning: str = "press red") -> None:
        self.winning, self.actions = winning, []  # type: ignore[var-annotated]

    def normalise(self, text: str) -> str:
        return text.strip()

    def step(self, action: str) -> StepResult:
        self.actions.append(action)
        won = action == self.winning
        return StepResult("Won." if won else "Nothing happens.", float(won), won)

    def observe(self, keys: Any) -> None:
        return None

    def outcome(self) -> Outcome:
        return Outcome(0.0, False, "failed")


class SpyMemory(MemoryMethod):
    """Counts its hooks."""

    def __init__(self) -> None:
        self.after: list[Turn] = []
        self.before: list[tuple[str, int]] = []

    def before_action(self, agent: Member, step: int) -> str:
        self.before.append((agent.name, step))
        return ""

    def after_action(self, turn: Turn) -> None:
        self.after.append(turn)


def session(inner: FakeSession, memory: SpyMemory | None = None, max_steps: int = 10) -> RecordedSession:
    return RecordedSession(TASK, inner, memory or SpyMemory(), Limits(), _ignore, max_steps)  # type: ignore[arg-type]


def team_memory(memory: SpyMemory | None = None, guidance: Guidance | None = None) -> TaskMemory:
    return TaskMemory(memory or SpyMemory(), guidance or Guidance())


def _ignore(kind: str, content: Mapping[str, Any]) -> None:
    return None


def trajectory(*pairs: tuple[str, str], start: str = "A room.") -> Trajectory:
    """An episode from (action, observation) pairs."""
    return Trajectory(start, tuple(Turn(i, "a", act, act, StepResult(seen)) for i, (act, seen) in enumerate(pairs, 1)))
