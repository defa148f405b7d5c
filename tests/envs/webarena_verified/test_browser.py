"""WebArena-Verified in a real browser, on the double's sites: each type of task right and wrong, and a record that is lost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from envs.webarena.sites import SiteAddresses
from envs.webarena_local.sites import Sites
from envs.webarena_verified.adapter import WebArenaVerified, WebArenaVerifiedConfig, with_address
from envs.webarena_verified.dataset import Dataset, folder
from harness.contracts import Outcome
from harness.errors import EnvironmentCrashed
from tests.support.browsers import use_installed_browser

pytestmark = [
    pytest.mark.skipif(folder() is None, reason="the extra webarena is not installed"),
    # of url_normalize, which webarena-verified uses
    pytest.mark.filterwarnings("ignore:Transitional processing is deprecated:DeprecationWarning"),
]

# one task of each type that the double's pages can satisfy; what they expect is read from the package
NAVIGATE, MUTATE, RETRIEVE = 44, 399, 0


@pytest.fixture(scope="module")
def running() -> Iterator[Sites]:
    sites = Sites()
    yield sites
    sites.close()


@pytest.fixture(scope="module")
def kept() -> dict[str, WebArenaVerified]:
    """One environment, and so one browser, for all tests here."""
    return {}


@pytest.fixture
def verified(running: Sites, kept: dict[str, WebArenaVerified], monkeypatch: pytest.MonkeyPatch) -> WebArenaVerified:
    use_installed_browser(monkeypatch, webarena=True)
    running.reset()
    if "it" not in kept:
        addresses = SiteAddresses(**running.urls())
        kept["it"] = WebArenaVerified(
            WebArenaVerifiedConfig(tasks=[NAVIGATE, MUTATE, RETRIEVE], sites=addresses, observation_delay=0.1)
        )
    assert kept["it"].check() == []
    return kept["it"]


def expected(number: int, part: int = 0) -> dict[str, Any]:
    rows = {row["task_id"]: row for row in Dataset("all", (), SITES, ("navigate", "mutate", "retrieve")).rows}
    found: dict[str, Any] = rows[number]["eval"][part]["expected"]
    return found


SITES = ("shopping", "shopping_admin", "reddit", "gitlab")


def said(kind: str, data: Any = None, status: str = "SUCCESS") -> str:
    text = json.dumps({"task_type": kind, "status": status, "retrieved_data": data, "error_details": None})
    return f"send_msg_to_user({text!r})"


def play(verified: WebArenaVerified, number: int, *actions: str) -> Outcome:
    task = next(task for task in verified.tasks() if task.index == number)
    with verified.open(task, 0) as session:
        for action in actions:
            result = session.step(session.normalise(action))
            assert result.error is None
        return session.outcome()


def test_navigate(verified: WebArenaVerified, running: Sites) -> None:
    urls = expected(NAVIGATE, 1)["url"]
    wanted = with_address(urls if isinstance(urls, str) else urls[0], running.urls())
    page = f"goto('{wanted}')"
    right = play(verified, NAVIGATE, page, said("NAVIGATE"))
    assert (right.score, right.success, right.status) == (1.0, True, "completed")
    assert right.feedback == "The task is completed after 2 steps."
    lost = play(verified, NAVIGATE, said("NAVIGATE"))
    assert (lost.score, lost.status) == (0.0, "failed")
    assert lost.feedback.startswith("The task is not completed after 1 steps. Not as expected: NetworkEventEvaluator: ")
    assert play(verified, NAVIGATE, page, said("NAVIGATE", status="NOT_FOUND_ERROR")).score == 0.0


def test_mutate(verified: WebArenaVerified, running: Sites) -> None:
    form = expected(MUTATE, 1)
    edit = f"goto('{with_address(form['url'], running.urls())}')"
    (text,) = form["post_data"].values()

    def written(what: str) -> Outcome:
        task = next(task for task in verified.tasks() if task.index == MUTATE)
        with verified.open(task, 0) as session:
            session.step(edit)
            tree = session._page.tree
            session.step(f"fill('{bid(tree, 'textbox', 'Biography')}', {what!r})")
            session.step(f"click('{bid(tree, 'button', 'Save')}')")
            session.step(said("MUTATE"))
            return session.outcome()

    assert written(text).score == 1.0
    assert running.state()["biography"] == text
    assert written("something else").score == 0.0


def test_retrieve(verified: WebArenaVerified) -> None:
    data = expected(RETRIEVE)["retrieved_data"]
    assert play(verified, RETRIEVE, said("RETRIEVE", data)).score == 1.0
    assert play(verified, RETRIEVE, said("RETRIEVE", ["nothing of the kind"])).score == 0.0
    assert play(verified, RETRIEVE, "report_infeasible('I cannot find it')").score == 0.0


def test_without_an_answer_the_task_is_unresolved(verified: WebArenaVerified) -> None:
    found = play(verified, NAVIGATE, "noop()")
    assert (found.score, found.status, found.feedback) == (0.0, "unresolved", "No answer was given within 1 steps.")


def test_a_record_that_was_lost_is_infrastructure(verified: WebArenaVerified) -> None:
    task = next(task for task in verified.tasks() if task.index == NAVIGATE)
    lost = r"^The browser has left no network record of this task: it cannot be graded\.$"
    with verified.open(task, 0) as session:
        session.step(said("NAVIGATE"))
        assert session._browser.process_id is not None
        os.kill(session._browser.process_id, signal.SIGKILL)
        with pytest.raises(EnvironmentCrashed, match=lost):
            session.outcome()
    assert play(verified, RETRIEVE, said("RETRIEVE", [])).score == 0.0  # the next task has a browser again


def bid(tree: str, role: str, name: str) -> str:
    from envs.browser.tree import find

    node = find(tree, role, name)
    assert node is not None
    return node.bid
