"""The double in a real browser: every kind of grading right and wrong, and everything that can go amiss on the way."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from envs.browser.processes import descendants
from envs.browser.tree import find
from envs.webarena_local.scripts import action, moves
from envs.webarena_local.session import LocalSession
from harness.contracts import Outcome, Reply, StepResult, Task, Usage
from harness.errors import EnvironmentCrashed
from tests.envs.webarena_local.conftest import Observed
from tests.support.fakes import FakeModels

pytestmark = pytest.mark.slow
WRONG = json.loads(Path(__file__).with_name("wrong.json").read_text())

GRADED = {
    9000: "string: must_include",
    9014: "string: impossible, told by its reason (a model judges)",
    9013: "string: impossible, reported",
    9033: "string: fuzzy_match (a model judges)",
    9006: "url: one of two, with a query",
    9008: "page behind a helper function",
    9010: "several locators, helper functions",
    9012: "whole page, one of two contents",
    9019: "locator after prep_actions",
    9028: "locators on the last page, one over a list",
    9030: "helper function on a page that is opened",
    9022: "url and page",
    9020: "string (exact_match) and url",
    9038: "must_include and fuzzy_match, two sites in two tabs",
}


def task_of(local: Observed, number: int) -> Task:
    return next(task for task in local.tasks() if task.payload["task_id"] == number)


def play(session: LocalSession, plan: Sequence[Any]) -> StepResult:
    """Carry out moves; the last step's result."""
    result = StepResult("")
    for move in plan:
        result = session.step(session.normalise(action(move, session._page.tree)))
        if result.done:
            break
    return result


def attempt(local: Observed, number: int, plan: Sequence[Any]) -> Outcome:
    with local.open(task_of(local, number), 0) as session:
        play(session, plan)
        return session.outcome()


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Callable[[Observed], dict[tuple[int, bool], Outcome]]]:
    """All right and all wrong attempts, three at a time: the environment gives each its own sites and browser."""
    found: dict[tuple[int, bool], Outcome] = {}

    def played(local: Observed) -> dict[tuple[int, bool], Outcome]:
        if not found:
            todo = [(number, right) for number in GRADED for right in (True, False)]
            with ThreadPoolExecutor(3) as pool:
                plans = [moves(str(number)) if right else WRONG[str(number)] for number, right in todo]
                found.update(zip(todo, pool.map(lambda one, plan: attempt(local, one[0], plan), todo, plans), strict=True))
        return found

    yield played


@pytest.mark.parametrize("number", GRADED, ids=[name.replace(" ", "_") for name in GRADED.values()])
def test_right_behaviour_scores_one_and_wrong_behaviour_zero(local: Observed, outcomes: Any, number: int) -> None:
    right, wrong = outcomes(local)[number, True], outcomes(local)[number, False]
    assert (right.score, right.success, right.status) == (1.0, True, "completed")
    assert (wrong.score, wrong.success, wrong.status) == (0.0, False, "failed")
    assert wrong.metrics["evaluator_errors"] == right.metrics["evaluator_errors"] == 0


def test_doing_nothing_scores_nothing_and_asks_no_judge(local: Observed) -> None:
    with local.open(task_of(local, 9033), 0) as session:
        session.use_models(FakeModels(lambda call: "correct"))
        for _ in range(2):
            assert session.step(session.noop_action) == StepResult(
                session._view(session._page), evidence=session_evidence(session)
            )
        found = session.outcome()
    assert (found.score, found.status, found.metrics["judge_calls"]) == (0.0, "unresolved", 0)


def session_evidence(session: LocalSession) -> tuple[Any, ...]:
    from harness.contracts import TIER_ENVIRONMENT, Evidence

    return (Evidence(("page", "url"), "http://gitlab.double/", TIER_ENVIRONMENT, "browser", (session._steps, 0)),)


def test_the_judge_is_the_models_of_the_run(local: Observed) -> None:
    class Judge(FakeModels):
        def complete(self, call: Any) -> Reply:
            self.calls.append(call)
            return Reply("partially correct", Usage(1, 1), "fake")

    judge = Judge(lambda call: "")
    with local.open(task_of(local, 9033), 0) as session:
        session.use_models(judge)
        assert play(session, moves("9033")).done
        assert session.outcome().score == 0.0
    assert [(call.role, call.key, call.phase) for call in judge.calls] == [("env.judge", "eval_judge", "judge")]
    assert judge.calls[0].messages[-1]["content"].count("read once at start-up") == 2  # the reference and the answer


def test_what_the_agents_see_names_no_port(local: Observed) -> None:
    with local.open(task_of(local, 9038), 0) as session:
        assert session.observation.splitlines()[:7] == [
            "Your task: Who built the lighthouse of Port Verrin, by the encyclopedia, and how many kilometres is it from there to the "
            "Herring Market, by the map?",
            "Tabs: 0: Encyclopedia <http://wikipedia.double/>; 1 (current): OpenStreetMap <http://map.double/>",
            "URL: http://map.double/",
            "RootWebArea 'OpenStreetMap', focused, url='http://map.double/'",
            "\t[7] navigation 'Map'",
            "\t\t[8] link 'Map', url='http://map.double/'",
            "\t\t[9] link 'Find directions between two points', url='http://map.double/directions'",
        ]
        assert session.facts == {"family=template-21", "site=map", "site=wikipedia"}
        seen = session.step("goto('http://wikipedia.double/wiki/Port_Verrin')")
        assert "Henrike Solvay" in seen.observation and "127.0.0.1" not in seen.observation + session.observation


def test_every_attempt_finds_the_sites_as_they_were(local: Observed) -> None:
    for _ in range(2):
        with local.open(task_of(local, 9012), 0) as session:
            play(session, moves("9012"))
            tree = session._page.tree
        assert find(tree, "link", "Clamp Spotlight") is not None and find(tree, "link", "Walnut Desk Lamp") is None


def plays_on(local: Observed) -> None:
    """The next task plays, in whatever was started anew for it."""
    local.mend()
    assert attempt(local, 9036, moves("9036")).score == 1.0


class TestAmiss:
    """What fails on the way: an observation where the agents can go on, else infrastructure; the next task plays."""

    def test_a_page_that_answers_500_is_an_observation_while_the_site_is_well(self, local: Observed) -> None:
        with local.open(task_of(local, 9001), 0) as session:
            local.plant("shopping", "error", "/kitchen")
            seen = play(session, [["click", "link", "Kitchen"]])
        assert "heading 'Internal Server Error'" in seen.observation and not seen.done

    def test_a_site_that_answers_500_is_infrastructure(self, local: Observed) -> None:
        with local.open(task_of(local, 9001), 0) as session:
            local.plant("shopping", "error")
            with pytest.raises(EnvironmentCrashed, match=r"^A site of the task is not well: shopping \(HTTP 500\)\.$"):
                play(session, [["click", "link", "Kitchen"]])
        plays_on(local)

    def test_a_login_that_fails_is_infrastructure(self, local: Observed) -> None:
        local.plant("shopping_admin", "login")
        failed = r"^The task could not be started: login at shopping_admin: the site asks for a password again$"
        with pytest.raises(EnvironmentCrashed, match=failed), local.open(task_of(local, 9015), 0):
            pass
        plays_on(local)

    def test_a_site_that_never_answers_is_infrastructure(self, local: Observed) -> None:
        local.plant("wikipedia", "hang")
        with (
            pytest.raises(EnvironmentCrashed, match=r"^The task could not be started: .*Timeout"),
            local.open(task_of(local, 9036), 0),
        ):
            pass
        plays_on(local)

    def test_a_page_that_never_loads_is_an_observation(self, local: Observed) -> None:
        with local.open(task_of(local, 9001), 0) as session:
            local.plant("shopping", "hang", "/kitchen")
            seen = play(session, [["click", "link", "Kitchen"]])
            assert "Timeout" in (seen.error or "") and "URL: http://shopping.double/\n" in seen.observation and not seen.done
            local.plant("shopping", None)
            assert play(session, [["click", "link", "Furniture"]]).error is None

    def test_a_slow_page_is_waited_for(self, local: Observed) -> None:
        with local.open(task_of(local, 9001), 0) as session:
            local.plant("shopping", "slow", "/kitchen", 1.2)
            play(session, [["click", "link", "Kitchen"]])
            assert "URL: http://shopping.double/kitchen.html" in session.step("noop(300)").observation

    def test_an_alert_is_dismissed_and_told(self, local: Observed) -> None:
        local.plant("shopping", "alert", "/kitchen")
        with local.open(task_of(local, 9001), 0) as session:
            seen = play(session, [["click", "link", "Kitchen"]])
        assert seen.observation.startswith(
            "URL: http://shopping.double/kitchen.html\nDialog (alert), dismissed: Hello from the shop!\n"
        )

    def test_a_new_tab_comes_to_the_front(self, local: Observed) -> None:
        with local.open(task_of(local, 9036), 0) as session:
            seen = play(session, [["click", "link", "River Aldra"], ["click", "link", "Show on the map (new tab)"]])
        assert seen.observation.startswith(
            "Tabs: 0: River Aldra <http://wikipedia.double/wiki/River_Aldra>; "
            "1 (current): Search Results <http://map.double/search?query=River%20Aldra>\n"
        )

    def test_a_download_is_named(self, local: Observed) -> None:
        with local.open(task_of(local, 9015), 0) as session:
            seen = play(session, [["click", "link", "Orders"], ["click", "link", "Export CSV"]])
        assert seen.observation.startswith("URL: http://shopping-admin.double/sales/order/\nDownloaded: orders.csv\n")

    def test_a_page_of_strangers_ends_the_task(self, local: Observed) -> None:
        with local.open(task_of(local, 9036), 0) as session:
            assert session.step("goto('http://127.0.0.1:1/')").done
            found = session.outcome()
        assert (found.score, found.status) == (0.0, "failed")
        assert found.feedback.endswith("The benchmark ended the task: Unauthorized url, terminating task.")

    @pytest.mark.parametrize("whole", [False, True], ids=["browser", "worker"])
    def test_a_browser_killed_in_the_middle_is_infrastructure(self, local: Observed, whole: bool) -> None:
        with local.open(task_of(local, 9000), 0) as session:
            worker = session._browser.process_id
            assert worker is not None
            victims = [worker] if whole else [process.pid for process in descendants(worker) if _is_chromium(process.pid)]
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            with pytest.raises(EnvironmentCrashed, match=r"^The browser "):
                play(session, moves("9000"))
        plays_on(local)

    def test_a_server_killed_in_the_middle_is_infrastructure(self, local: Observed) -> None:
        with local.open(task_of(local, 9000), 0) as session:
            assert local.now is not None
            server = local.now.sites.process_id
            assert server is not None
            os.kill(server, signal.SIGKILL)
            with pytest.raises(EnvironmentCrashed, match=r"^A site of the task is not well: shopping \(ConnectError"):
                play(session, moves("9000"))
        plays_on(local)


def _is_chromium(pid: int) -> bool:
    try:
        return "chrom" in Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return False
