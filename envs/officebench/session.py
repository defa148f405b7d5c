"""One attempt at an OfficeBench task: a tool call a turn, until it is finished, the agents are stuck or the turns are spent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from envs.officebench.actions import Action, normalise, parse
from envs.officebench.apps import WORKSPACE, catalogue
from envs.officebench.office import Office
from harness.contracts import TIER_TOOL, ActionMode, Call, Evidence, Models, Outcome, StepResult, Task
from harness.errors import AgentError

STUCK = 5  # identical actions in a row end the attempt (as in the official loop)
MALFORMED = 'Malformed action: write one JSON object with "app", "action" and the arguments of the action.'
_KEPT = 8000  # characters of an observation that the agents see

INSTRUCTIONS = """You work with office applications for a user, one action a turn. An action is one JSON object and nothing else:
{{"app": "system", "action": "switch_app", "target_app": "excel"}}
Choose an application first; its actions are listed then. The files are in {workspace}: documents and the like in data,
mailboxes in emails, calendars in calendar.
Applications:
{apps}
When all is done, and only then:
{{"app": "system", "action": "finish_task", "answer": "<the answer, or None where the task asks for none>"}}"""


def listing(app: str) -> str:
    """The actions of an application, two lines each: how it is written, and what it and its arguments mean."""
    lines = []
    for action in catalogue.APPS[app].actions:
        form = {"app": app, "action": action.name, **{entry.name: "…" for entry in action.arguments}}
        meanings = "; ".join(f"{entry.name}: {entry.meaning}" for entry in action.arguments)
        lines.append(f"- {json.dumps(form, ensure_ascii=False)}\n  {action.meaning}" + (f" ({meanings})" if meanings else ""))
    return "\n".join(lines)


class OfficeSession:
    """`grade` judges the workspace, given the final answer (None: the agents gave none)."""

    action_mode: ActionMode = "json"
    noop_action = Action("shell", "command", {"command": "true"}).text()
    few_shots: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None

    def __init__(
        self,
        task: Task,
        office: Office,
        grade: Callable[[str | None], Outcome],
        *,
        facts: frozenset[str],
        llm_tokens: int,
    ) -> None:
        row = task.payload
        self.observation = (
            f"Today is {row['date']} ({row['weekday']}), {row['time']}. You work for the user {row['username']}.\n"
            f"Task: {task.goal}"
        )
        introductions = "\n".join(f"- {catalogue.APPS[name].introduction}" for name in catalogue.SWITCHABLE)
        self.instructions = INSTRUCTIONS.format(workspace=WORKSPACE, apps=introductions)
        self.facts = facts
        self._office, self._grade, self._llm_tokens = office, grade, llm_tokens
        self._models: Models | None = None
        self._recent: list[str] = []
        self._counts = {"steps": 0, "malformed": 0, "failed_actions": 0, "llm_calls": 0}
        self._end: str | None = None
        self._answer: str | None = None
        self._outcome: Outcome | None = None

    def use_models(self, models: Models) -> None:
        """The way of the application llm to a model."""
        self._models = models

    def normalise(self, text: str) -> str:
        """The action as canonical JSON; a text without one as it is."""
        return normalise(text)

    def step(self, action: str) -> StepResult:
        self._counts["steps"] += 1
        self._recent = [*self._recent[-STUCK + 1 :], action]
        if self._recent == [action] * STUCK:
            return self._over("stuck", f"The same action came {STUCK} times in a row: the task is ended.")
        parsed = parse(action)
        if parsed is None:
            self._counts["malformed"] += 1
            return StepResult(MALFORMED, error="malformed action")
        if problem := catalogue.check(parsed.app, parsed.name, parsed.arguments):
            self._counts["malformed"] += 1
            return StepResult(problem, error=problem)
        if parsed.app == "system":
            return self._system(parsed)
        if parsed.app == "llm":
            return self._ask_model(str(parsed.arguments["prompt"]))
        return self._act(parsed)

    def _over(self, how: str, text: str) -> StepResult:
        self._end = how
        self._office.close()
        return StepResult(text, done=True)

    def _system(self, action: Action) -> StepResult:
        if action.name == "finish_task":
            self._answer = str(action.arguments.get("answer"))
            return self._over("finished", "The task is finished.")
        target = str(action.arguments["target_app"])
        return StepResult(f"Switched to {target}. Its actions:\n{listing(target)}")

    def _act(self, action: Action) -> StepResult:
        answer = self._office.run(action.app, action.name, action.arguments)
        text = answer.text if len(answer.text) <= _KEPT else f"{answer.text[: _KEPT // 2]}\n[…]\n{answer.text[-_KEPT // 2 :]}"
        if not answer.ok:
            self._counts["failed_actions"] += 1
            return StepResult(text, error=text[:200])
        return StepResult(text, evidence=(self._evidence(action, text),))

    def _evidence(self, action: Action, text: str) -> Evidence:
        """The application's word about the file (or user) that the action named."""
        known = catalogue.APPS[action.app].action(action.name)
        first = known.arguments[0].name if known is not None and known.arguments else ""
        entity = str(action.arguments.get(first, action.app))
        return Evidence((entity, action.name), text[:200], TIER_TOOL, action.app, (self._counts["steps"], 0))

    def _ask_model(self, prompt: str) -> StepResult:
        """The application llm: the run's own acting model, at most `llm_tokens` tokens (officially 50), temperature 0."""
        assert self._models is not None, "the stream hands over the models before the first step"
        self._counts["llm_calls"] += 1
        call = Call(
            role="env.officebench.llm",
            messages=({"role": "user", "content": prompt},),
            key="actor",
            phase="act",
            max_tokens=self._llm_tokens,
            temperature=0.0,
        )
        try:
            return StepResult(self._models.complete(call).text)
        except AgentError as error:
            return StepResult(f"The model gave no answer: {error}", error=str(error))

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        return None

    def outcome(self) -> Outcome:
        if self._outcome is None:
            self._office.close()
            graded = self._grade(self._answer)
            metrics: Mapping[str, Any] = {**graded.metrics, **self._counts, "end": self._end or "out_of_turns"}
            self._outcome = Outcome(graded.score, graded.success, graded.status, graded.feedback, metrics)
        return self._outcome
