"""The toy with a choice of graders and a tool that asks a model, for tests of grading anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.contracts import Call, Models, Outcome, StepResult, Task
from tests.support.toy import Toy, ToyConfig, ToySession


@dataclass
class GradedToyConfig(ToyConfig):
    """`grader` is strict (all buttons in order), lenient (half for the last button) or judge (asks a model)."""

    name: str = "gradedtoy"
    grader: str = field(default="strict", metadata={"grading": True})


class GradedSession(ToySession):
    models: Models | None = None
    grader = "strict"

    def use_models(self, models: Models) -> None:
        self.models = models

    def step(self, action: str) -> StepResult:
        if action == "press white":
            return StepResult(f"A voice says: {self._ask('env.voice', 'Who is there?')}")
        return super().step(action)

    def outcome(self) -> Outcome:
        found = super().outcome()
        if self.grader == "lenient" and not found.success and self._pressed[-1:] == self._wanted[-1:]:
            return Outcome(0.5, False, "failed", "Half of it.", {"grader": "lenient"})
        if self.grader == "judge":
            right = "press" in self._ask("env.judge", f"Was it right? {self._pressed}")
            return Outcome(float(right), right, "completed" if right else "failed", "Judged.")
        return found

    def _ask(self, role: str, question: str) -> str:
        assert self.models is not None
        call = Call(role, ({"role": "user", "content": question},), key="eval_judge", phase="judge")
        return self.models.complete(call).text


class GradedToy(Toy):
    Config = GradedToyConfig
    name = "gradedtoy"

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[GradedSession]:
        session = GradedSession(task, self._wanted(task.index))
        assert isinstance(self.config, GradedToyConfig)
        session.grader = self.config.grader
        yield session
