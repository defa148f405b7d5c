"""One attempt at a KramaBench question: Python cells in a sandbox over the domain's files, then an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from envs.kramabench.grading import grade
from envs.kramabench.notes import DUBIOUS
from harness.contracts import TIER_TOOL, ActionMode, Call, Evidence, Models, Outcome, StepResult, Task
from harness.sandbox.base import Channel, ChannelClosed, ChannelTimeout, Sandbox

_FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)
# the mark, and what follows it on its line; a part that runs on over lines takes the square of their number
_ANSWER = re.compile(r"^[^\w\n]*(?:final )?answer\s*:\s*(\S[^\n]*)", re.IGNORECASE | re.MULTILINE)
_KEPT = 4000  # characters of a cell's output that the agents see

INSTRUCTIONS = """You answer a question about the data files in the folder {data}. Work in small steps.
In each turn write exactly one of:
1. a Python cell, which is executed in a session that keeps its variables; print what you want to see:
```python
print(...)
```
2. your answer, when you are sure of it, on one line:
ANSWER: <answer>
pandas, numpy, scipy and openpyxl are there; there is no network. Give numbers as plain numbers and lists as [a, b, c]."""

JUDGE = (
    "You compare an answer with the correct one to a question about data. They agree if they say the same, whatever the wording, "
    "number format or order of a list without an order; a number may differ by rounding only. Answer with one word: yes or no."
)


class KramaSession:
    """`grader` is typed or judge; the judge is called once, when the attempt is graded."""

    action_mode: ActionMode = "block"
    noop_action = "```python\npass\n```"
    few_shots: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None

    def __init__(self, task: Task, sandbox: Sandbox, data: str, *, cell_seconds: float, grader: str) -> None:
        files = ", ".join(task.payload["data_sources"])
        self.observation = f"{task.goal}\nFiles that may help: {files}" if files else task.goal
        self.instructions = INSTRUCTIONS.format(data=data)
        self.facts = frozenset({f"domain={task.group}", f"family={task.family}"})
        self._task, self._sandbox, self._data = task, sandbox, data
        self._seconds, self._grader = cell_seconds, grader
        self._channel: Channel | None = None
        self._models: Models | None = None
        self._answer: str | None = None
        self._outcome: Outcome | None = None
        self._cells = self._errors = self._steps = 0

    def use_models(self, models: Models) -> None:
        """The judge's way to a model."""
        self._models = models

    def normalise(self, text: str) -> str:
        """The first code block, else the answer line; empty where there is neither."""
        if code := _FENCE.search(text):
            return f"```python\n{code.group(1).strip()}\n```"
        if answer := _ANSWER.search(text):
            return f"ANSWER: {answer.group(1).splitlines()[0].strip()}"
        return ""

    def step(self, action: str) -> StepResult:
        self._steps += 1
        if code := _FENCE.search(action):
            return self._run(code.group(1))
        if answer := _ANSWER.search(action):
            self._answer = answer.group(1).strip()
            return StepResult("Your answer was recorded.", done=True)
        return StepResult("Write a Python cell or a line 'ANSWER: …'.", -1.0, error="neither code nor answer")

    def _run(self, code: str) -> StepResult:
        self._cells += 1
        if self._channel is None:
            source = resources.files("envs.kramabench").joinpath("python_session.py").read_text()
            self._channel = self._sandbox.channel(["python3", "-u", "-c", source], workdir="/tmp", env={"DATA": self._data})
        try:
            found = json.loads(self._channel.ask(json.dumps({"code": code}), timeout=self._seconds))
            output, error = str(found["output"]), found["error"]
        except ChannelTimeout:
            self._channel = None
            output, error = "", f"the cell was stopped after {self._seconds:g} s; the session starts anew, variables are lost"
        except (ChannelClosed, ValueError, KeyError, TypeError):
            self._channel.close()
            self._channel = None
            output, error = "", "the session ended; it starts anew, variables are lost"
        self._errors += error is not None
        shown = output if len(output) <= _KEPT else f"{output[: _KEPT // 2]}\n[…]\n{output[-_KEPT // 2 :]}"
        text = "\n".join(part for part in (shown.rstrip(), f"Error: {error}" if error else "") if part) or "(no output)"
        evidence = Evidence(("cell", str(self._cells)), shown[:200], TIER_TOOL, "python", (self._steps, 0))
        return StepResult(text, -1.0 if error else 0.0, error=error, evidence=() if error else (evidence,))

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        return None

    def outcome(self) -> Outcome:
        if self._outcome is None:
            self._outcome = self._graded()
        return self._outcome

    def _graded(self) -> Outcome:
        metrics: dict[str, Any] = {"cells": self._cells, "cell_errors": self._errors, "grader": self._grader}
        if self._task.task_id in DUBIOUS:
            metrics["dubious_gold"] = DUBIOUS[self._task.task_id]
        if self._answer is None:
            return Outcome(0.0, False, "unresolved", "No answer was given.", metrics)
        score = self._judged(self._answer) if self._grader == "judge" else grade(self._answer, self._task.payload)
        right = score >= 1.0
        return Outcome(
            score, right, "completed" if right else "failed", f"The answer is {'right' if right else 'wrong'}.", metrics
        )

    def _judged(self, answer: str) -> float:
        """EMMA's binary gate: 1 if the judge's first word is yes."""
        assert self._models is not None, "the stream hands over the models before grading"
        gold = json.dumps(self._task.payload["answer"], ensure_ascii=False)
        question = f"Question: {self._task.goal}\nCorrect answer: {gold}\nGiven answer: {answer}"
        call = Call(
            role="env.judge",
            messages=({"role": "system", "content": JUDGE}, {"role": "user", "content": question}),
            key="eval_judge",
            phase="judge",
            temperature=0.0,
        )
        first = re.search(r"[a-z]+", self._models.complete(call).text.lower())
        return float(first is not None and first.group() == "yes")

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
