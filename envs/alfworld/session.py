"""One attempt at one game."""

from __future__ import annotations

from collections.abc import Sequence

from envs.alfworld import actions, prompts
from envs.alfworld.data import Grammar
from envs.alfworld.engine import Engine, View
from envs.alfworld.observation import context_facts, read_evidence, strip_banner
from harness.contracts import ActionMode, Evidence, Outcome, StepResult, Task


class AlfWorldSession:
    """A game in play. Rewards: −1 for `think:` and for "Nothing happens.", else 1 if the goal holds, else 0 (METHODS.md 2.1)."""

    action_mode: ActionMode = "line"
    noop_action = "look"

    def __init__(self, engine: Engine, task: Task, view: View, *, grammar: Grammar, max_steps: int, few_shots: int) -> None:
        self._engine, self._view = engine, view
        self._closed = False
        self._steps = self._thoughts = self._refused = self._translated = 0
        self.observation = strip_banner(view.feedback)
        self.facts = context_facts(task.family, task.goal, self.observation)
        self.instructions = prompts.instructions(grammar, max_steps)
        self.few_shots = prompts.few_shots(task.family, grammar, few_shots)

    @property
    def choices(self) -> tuple[str, ...]:
        """The admissible commands, sorted (by the engine, which says that it does so to keep their order stable)."""
        return self._view.admissible

    def normalise(self, text: str) -> str:
        return actions.normalise(text)

    def step(self, action: str) -> StepResult:
        """Execute one action. Raises RuntimeError after the end of the episode, EnvironmentCrashed where the engine fails."""
        if self._closed or self._view.won:
            raise RuntimeError("The episode is over: no further step is possible.")
        if action.startswith(actions.THINK):
            self._steps += 1
            self._thoughts += 1
            return StepResult("OK.", reward=-1.0)
        command = actions.to_command(action, self._view.admissible)
        refused = command not in self._view.admissible
        self._view = self._engine.step(command)
        self._steps += 1
        self._translated += command != action
        self._refused += refused
        won = self._view.won
        return StepResult(
            observation=self._view.feedback,
            reward=-1.0 if refused else float(won),
            done=won,
            error="not an admissible command" if refused else None,
            evidence=read_evidence(self._view.feedback, won, self._steps),
        )

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        """None: ALFWorld is observed by acting (`go to`, `examine`), which is the agents' business and costs them steps."""
        return None

    def outcome(self) -> Outcome:
        """Grade the attempt as it stands: the environment's `won`, never its `done`."""
        won = self._view.won
        feedback = (
            f"The task is completed after {self._steps} steps."
            if won
            else f"After {self._steps} steps the task is not completed."
        )
        if self._refused:
            feedback += f" {self._refused} of them were impossible commands."
        return Outcome(
            score=float(won),
            success=won,
            status="completed" if won else "failed",
            feedback=feedback,
            metrics={
                "steps": self._steps,
                "nothing_happens": self._refused,
                "think": self._thoughts,
                "grammar_translated": self._translated,
            },
        )

    def close(self) -> None:
        """The engine now belongs to someone else; only `outcome()` still answers."""
        self._closed = True
