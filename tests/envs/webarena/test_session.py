"""The session without a browser: what the judge is asked through, and when a site is to blame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from envs.browser.plan import Page, Question
from envs.webarena.session import WebArenaSession
from harness.contracts import Call, Judged, Reply, Usage
from harness.errors import ConfigError, EnvironmentCrashed

START = Page("RootWebArea 'x'", "http://shop/", goal="Find it")
QUESTION = Question(({"role": "system", "content": "Grade."}, {"role": "user", "content": "42?"}), "gpt-4-1106-preview", 0, 768)


class FakeBrowser:
    """Answers every step with the next page."""

    def __init__(self, *pages: Page) -> None:
        self.pages, self.complete = list(pages), None

    def step(self, action: str) -> Page:
        return self.pages.pop(0)


class FakeModels:
    def __init__(self, model: str) -> None:
        self.model, self.calls = model, list[Call]()

    def complete(self, call: Call) -> Reply:
        self.calls.append(call)
        return Reply("correct", Usage(), self.model)


def session(*pages: Page, sick: Mapping[str, str] | None = None, judge: str = "gateway", asks: bool = False) -> Any:
    return WebArenaSession(
        FakeBrowser(*pages),  # type: ignore[arg-type]
        START,
        judge=judge,
        health=lambda: sick or {},
        asks_a_server=asks,
        names=("click", "send_msg_to_user"),
        description="click(bid)",
        facts=frozenset(),
        budget=None,
    )


def test_the_judges_question_goes_to_the_gateway_word_for_word() -> None:
    made, models = session(), FakeModels("some-model")
    assert isinstance(made, Judged)
    made.use_models(models)
    assert made._browser.complete(QUESTION) == "correct"
    (call,) = models.calls
    assert (call.role, call.key, call.phase, call.temperature, call.max_tokens) == ("env.judge", "eval_judge", "judge", 0, 768)
    assert call.messages == ({"role": "system", "content": "Grade."}, {"role": "user", "content": "42?"})
    assert (made.metrics()["judge_calls"], made.metrics()["judge_model"]) == (1, "some-model")


def test_the_official_judge_must_be_the_model_that_webarena_names() -> None:
    made = session(judge="official")
    made.use_models(FakeModels("openai/gpt-4-1106-preview"))
    assert made._browser.complete(QUESTION) == "correct"
    made.use_models(FakeModels("other"))
    with pytest.raises(ConfigError, match="eval_judge leads to other"):
        made._browser.complete(QUESTION)


ODD = [
    Page("", "http://shop/x", site_errors=(("http://shop/x", "HTTP 503"),)),
    Page("", "http://shop/x", evaluator_error="KeyError: 'items'"),
    Page("", "http://shop/x", done=True),
]


@pytest.mark.parametrize("page", ODD)
def test_a_sick_site_is_infrastructure(page: Page) -> None:
    with pytest.raises(EnvironmentCrashed, match=r"A site of the task is not well: shopping \(HTTP 503\)\."):
        session(page, sick={"shopping": "HTTP 503"}, asks=True).step("click('1')")


@pytest.mark.parametrize("page", ODD)
def test_where_the_sites_are_well_it_is_the_agents_matter(page: Page) -> None:
    made = session(page, asks=True)
    assert made.step("click('1')").done is page.done
    assert made.outcome().score == 0.0 and made.metrics()["evaluator_errors"] == bool(page.evaluator_error)


def test_nobody_asks_the_sites_while_nothing_is_odd() -> None:
    def never() -> Mapping[str, str]:
        raise AssertionError("asked")

    made = session(
        Page("", "http://shop/2"), Page("", "http://shop/2", done=True), Page("", "http://shop/2", reward=1.0, done=True)
    )
    made._health = never
    made.step("click('1')")
    assert made.step("click('1')").done
    won = session(ODD[2], asks=True)
    won._health, won._browser.pages = never, [Page("", "http://shop/2", reward=1.0, done=True)]
    assert won.step("click('1')").done and won.outcome().success


def test_a_task_that_the_benchmark_ended_says_why() -> None:
    made = session(Page("", "http://elsewhere/", done=True, task_error="Unauthorized url, terminating task"))
    made.step("goto('http://elsewhere/')")
    assert made.outcome().feedback.endswith("The benchmark ended the task: Unauthorized url, terminating task.")
