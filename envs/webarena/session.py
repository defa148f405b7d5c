"""One attempt at a WebArena task: a session whose judge is the run's own, and which tells a sick site from a lost task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from envs.browser.client import Browser
from envs.browser.plan import Page, Question
from envs.browser.session import BrowserSession
from harness.contracts import Call, Message, Models
from harness.errors import ConfigError, EnvironmentCrashed

JUDGES = ("gateway", "official", "none")
_ROLES = ("system", "user", "assistant")

Health = Callable[[], Mapping[str, str]]


class WebArenaSession(BrowserSession):
    """`judge` is `env.judge`; `health` names the task's sites that are not well and what is wrong with them; `asks_a_server` says
    that the evaluator asks a site behind the browser's back, where a failure of the site looks like a wrong result.

    The stream hands over the models (`use_models`) before the first step.
    """

    def __init__(
        self, browser: Browser, page: Page, *, judge: str, health: Health, asks_a_server: bool = False, **session: Any
    ) -> None:
        super().__init__(browser, page, **session)
        self._judge, self._health, self._asks_a_server = judge, health, asks_a_server
        self._models: Models | None = None
        self._judge_calls, self._judge_model = 0, ""

    def use_models(self, models: Models) -> None:
        self._models = models
        self._browser.complete = self._judged

    def _judged(self, question: Question) -> str:
        """The evaluator's question, word for word, to the model with the key `eval_judge`."""
        assert self._models is not None
        messages = tuple(_message(message) for message in question.messages)
        call = Call(
            role="env.judge",
            messages=messages,
            key="eval_judge",
            phase="judge",
            temperature=question.temperature,
            max_tokens=question.max_tokens,
        )
        reply = self._models.complete(call)
        if self._judge == "official" and question.model not in reply.model:
            raise ConfigError(
                f"env.judge is official, which is {question.model}, but the key eval_judge leads to {reply.model}.",
                "Map models.keys.eval_judge to that model, or set env.judge=gateway.",
            )
        self._judge_calls, self._judge_model = self._judge_calls + 1, reply.model
        return reply.text

    def examine(self, page: Page) -> None:
        """Look after the sites when something is odd: a page of theirs failed, the evaluator did, or the task was lost on a
        server's word. A site that is well leaves it an observation, or a lost task."""
        lost = page.done and page.reward <= 0 and self._asks_a_server
        if not (page.site_errors or page.evaluator_error or lost):
            return
        if sick := self._health():
            what = "; ".join(f"{site} ({ailment})" for site, ailment in sick.items())
            raise EnvironmentCrashed(f"A site of the task is not well: {what}.")

    def metrics(self) -> dict[str, float | int | str | None]:
        return {**super().metrics(), "judge_calls": self._judge_calls, "judge_model": self._judge_model or None}


def _message(message: Mapping[str, str]) -> Message:
    role = message["role"]
    return {"role": role if role in _ROLES else "user", "content": message["content"]}  # type: ignore[typeddict-item]
