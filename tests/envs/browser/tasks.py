"""BrowserGym tasks for tests of the worker; imported by the worker."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from browsergym.core.task import OpenEndedTask


class Judged(OpenEndedTask):  # type: ignore[misc]
    """Asks an OpenAI-compatible judge after every step, as libwebarena's fuzzy evaluators do."""

    def validate(self, page: Any, chat_messages: list[Any]) -> tuple[float, bool, str, dict[str, Any]]:
        answered = chat_messages[-1]["role"] in ("assistant", "infeasible")
        said = chat_messages[-1]["message"] if answered else "whatever"
        body = json.dumps({"model": "a-judge", "temperature": 0, "messages": [{"role": "user", "content": said}]})
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            body.encode(),
            {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
        )
        with urllib.request.urlopen(request) as answer:
            verdict = json.load(answer)["choices"][0]["message"]["content"]
        return float(verdict == "correct"), verdict == "correct", "", {}


class BadEvaluator(OpenEndedTask):  # type: ignore[misc]
    """Its evaluator opens a tab and fails."""

    def validate(self, page: Any, chat_messages: list[Any]) -> tuple[float, bool, str, dict[str, Any]]:
        page.context.new_page()
        raise KeyError("order")


class BadSetup(OpenEndedTask):  # type: ignore[misc]
    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        raise RuntimeError("the login form is not there")
