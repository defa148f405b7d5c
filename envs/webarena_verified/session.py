"""One attempt at a verified task: played like a WebArena task, answered by a structured response, graded from the record."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envs.webarena.session import WebArenaSession
from envs.webarena_verified.grading import Grade
from harness.contracts import Outcome, StepResult, TaskStatus

ANSWERING = ("send_msg_to_user", "report_infeasible")

RESPONSE = """When you are done, or are sure that the task cannot be done, end it with send_msg_to_user and a JSON object as text:
send_msg_to_user('{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["Blue mug"], "error_details": null}')
- task_type: RETRIEVE (to find something out), MUTATE (to create, change or delete something) or NAVIGATE (to show a page).
- status: SUCCESS; else NOT_FOUND_ERROR (what the task is about does not exist), ACTION_NOT_ALLOWED_ERROR (the site does not offer
  the action), PERMISSION_DENIED_ERROR (this account may not do it), DATA_VALIDATION_ERROR (the input is missing or refused),
  UNKNOWN_ERROR (anything else).
- retrieved_data: for RETRIEVE a list, all its items of one kind: numbers as numbers, true and false as such, objects with the
  keys that the task names; [] where nothing was found. For MUTATE and NAVIGATE null.
- error_details: null for SUCCESS, else the reason in a few words."""


class VerifiedSession(WebArenaSession):
    """`grader` grades an answer and a record; `record` is the HAR file, which the browser writes when the task's context closes.
    No evaluator runs in the browser, so none asks a judge."""

    def __init__(self, *args: Any, grader: Callable[[str, Path], Grade], record: Path, **session: Any) -> None:
        super().__init__(*args, judge="none", **session)
        self.instructions = f"{self.instructions}\n\n{RESPONSE}"
        self._grader, self._record = grader, record
        self._answer: str | None = None
        self._outcome: Outcome | None = None
        self._grade = Grade(0.0)

    def step(self, action: str) -> StepResult:
        result = super().step(action)
        if self._page.answered:
            self._answer = self._real(answer_of(action))
        return result

    def outcome(self) -> Outcome:
        """Ends the task and grades it. Raises EnvironmentCrashed where the browser has left no readable record."""
        if self._outcome is None:
            self._outcome = self._graded()
        return self._outcome

    def _graded(self) -> Outcome:
        self._browser.close_task()
        if self._answer is None:
            feedback = f"No answer was given within {self._steps} steps."
            return Outcome(0.0, False, "unresolved", feedback, self.metrics())
        try:
            self._grade = self._grader(self._answer, self._record)
        finally:
            self._record.unlink(missing_ok=True)
        success = self._grade.score >= 1.0
        status: TaskStatus = "completed" if success else "failed"
        feedback = f"The task is {'' if success else 'not '}completed after {self._steps} steps."
        if self._grade.reasons:
            feedback += f" Not as expected: {', '.join(dict.fromkeys(self._grade.reasons))}."
        return Outcome(self._grade.score, success, status, feedback, self.metrics())

    def metrics(self) -> dict[str, float | int | str | None]:
        found = {name: value for name, value in super().metrics().items() if not name.startswith("judge_")}
        return {**found, "grader_error": self._grade.error or None}


def answer_of(action: str) -> str:
    """The text of the message in an action; empty where there is none to be read."""
    try:
        call = ast.parse(action.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in ANSWERING:
            return ""
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        return str(ast.literal_eval(values[0])) if values else ""
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
