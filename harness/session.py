"""A session as the host sees it: every step counted, logged, bounded, and told to the memory exactly once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.contracts import (
    ActionMode,
    Evidence,
    Guidance,
    Guided,
    Judged,
    Member,
    Memory,
    Models,
    Review,
    Session,
    Task,
    Trajectory,
    Turn,
)
from harness.errors import LimitExceeded
from harness.limits import Limits

Log = Callable[[str, Mapping[str, Any]], None]


def hand_over(session: Session, models: Models) -> None:
    """Give a session that asks for them the models of its task (see `harness.contracts.Judged`)."""
    if isinstance(session, Judged):
        session.use_models(models)


class RecordedSession:
    """Wraps an adapter's session; implements `harness.contracts.TaskSession`.

    `max_steps` bounds the environment steps of the attempt (HOST-AG R6); the memory's `after_action` is called here and
    nowhere else, so that no host can forget it or call it twice (HOST-AG R7).
    """

    def __init__(self, task: Task, session: Session, memory: Memory, limits: Limits, log: Log, max_steps: int) -> None:
        self.task = task
        self.observation = session.observation
        self.facts = session.facts
        self.instructions = session.instructions
        self.few_shots = session.few_shots
        self.action_mode: ActionMode = session.action_mode
        self.noop_action = session.noop_action
        self.max_steps = max_steps
        self._session = session
        self._memory = memory
        self._limits = limits
        self._log = log
        self._turns: list[Turn] = []
        self._over = False

    @property
    def choices(self) -> tuple[str, ...] | None:
        return self._session.choices

    @property
    def steps(self) -> int:
        return len(self._turns)

    @property
    def done(self) -> bool:
        return self._over or len(self._turns) >= self.max_steps

    def normalise(self, text: str) -> str:
        return self._session.normalise(text)

    def act(self, agent: str, raw: str, *, upstream: Sequence[str] = ()) -> Turn:
        """See TaskSession.act. Raises LimitExceeded when the attempt is already over: a host must ask `done` first."""
        if self.done:
            raise LimitExceeded("task", "steps", self.max_steps, len(self._turns))
        self._limits.check_before_step()
        action = self._session.normalise(raw) or self.noop_action
        result = self._session.step(action)
        turn = Turn(len(self._turns) + 1, agent, action, raw, result, tuple(upstream))
        self._turns.append(turn)
        self._over = result.done
        self._limits.add_step()
        self._log(
            "step",
            {
                "step": turn.step,
                "agent": agent,
                "action": action,
                "observation": result.observation,
                "reward": result.reward,
                "done": result.done,
                "error": result.error,
            },
        )
        self._memory.after_action(turn)
        return turn

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        return self._session.observe(keys)

    def oracle_action(self) -> str | None:
        """The next action of the stored solution, for test doubles (see `harness.contracts.Guided`)."""
        return self._session.oracle_action() if isinstance(self._session, Guided) else None

    def record(self, kind: str, content: Mapping[str, Any]) -> None:
        self._log(kind, content)

    def trajectory(self) -> Trajectory:
        return Trajectory(self.observation, tuple(self._turns))


class TaskMemory:
    """The memory as a host sees it; implements `harness.contracts.TeamMemory`."""

    def __init__(self, memory: Memory, guidance: Guidance) -> None:
        self.guidance = guidance
        self._memory = memory

    def before_action(self, agent: Member, step: int) -> str:
        return self._memory.before_action(agent, step)

    def review(self, agent: Member, step: int, text: str) -> Review:
        return self._memory.review(agent, step, text)

    def episode(self, agent: Member, trajectory: Trajectory) -> str:
        return self._memory.episode(agent, trajectory)
