"""The browser worker: what pages do to it, and that it ends with all its processes, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from envs.browser.client import Browser, BrowserPool, WorkerSettings
from envs.browser.plan import Page, Question, TaskPlan
from envs.browser.processes import Process, alive, descendants
from envs.browser.tree import find
from harness.errors import EnvironmentCrashed, ProviderError, SetupError
from tests.support.browsers import PageServer, open_page

TASKS = "tests.envs.browser.tasks"


def click(browser: Browser, page: Page, role: str, name: str) -> Page:
    node = find(page.tree, role, name)
    assert node is not None, page.tree
    return browser.step(f"click({node.bid!r})")


def gone(processes: tuple[Process, ...], seconds: float = 15.0) -> bool:
    """Whether all of them end; a kill is not done when the call returns."""
    import time

    end = time.monotonic() + seconds
    while any(alive(process) for process in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class TestPages:
    def test_the_tree_shows_what_can_be_acted_on_and_actions_change_the_page(self, browser: Browser, server: PageServer) -> None:
        page = browser.open(open_page(server.url))
        assert page.goal == "look around" and page.url == f"{server.url}/"
        assert "[12] button 'ask'" in page.tree.replace("\t", "") or find(page.tree, "button", "ask") is not None
        page = click(browser, page, "link", "other page")
        assert page.url == f"{server.url}/other" and page.error == "" and not page.done

    @pytest.mark.parametrize(
        ("action", "error"),
        [
            ("click('no-such')", 'ValueError: Could not find element with bid "no-such"'),
            ("I would rather not", "ValueError: Received an empty action."),
            ("noop(1)\nnoop(1)", "ValueError: Received a multi-action, only single-actions are allowed."),
            ("noop(600000)", "ValueError: noop waits for 10000 ms at most"),
            ("goto('file:///etc/passwd')", "ValueError: addresses that begin with file: cannot be opened"),
            ("goto(url=' View-Source:http://a/')", "ValueError: addresses that begin with view-source: cannot be opened"),
            ("press_the_button('1')", "NameError: Invalid action type 'press_the_button'."),
        ],
    )
    def test_a_bad_action_is_an_observation(self, browser: Browser, server: PageServer, action: str, error: str) -> None:
        browser.open(open_page(server.url))
        page = browser.step(action)
        assert page.error == error and not page.done and "button 'ask'" in page.tree

    def test_an_alert_is_dismissed_and_its_text_shown(self, browser: Browser, server: PageServer) -> None:
        page = click(browser, browser.open(open_page(server.url)), "button", "ask")
        assert page.dialogs == (("alert", "Are you there?"),) and page.tabs[0][0] == "asked"
        assert browser.step("noop(1)").dialogs == ()

    def test_a_new_tab_becomes_the_page_in_view(self, browser: Browser, server: PageServer) -> None:
        page = click(browser, browser.open(open_page(server.url)), "link", "in a new tab")
        assert [title for title, _ in page.tabs] == ["Start", "Other"] and page.active == 1
        assert browser.step("tab_close()").url == f"{server.url}/"

    def test_a_download_is_named_and_leaves_nothing_behind(self, browser: Browser, server: PageServer) -> None:
        page = click(browser, browser.open(open_page(server.url)), "link", "a file")
        assert page.downloads == ("report.bin",) and page.url == f"{server.url}/"
        scratch = browser.scratch
        assert scratch is not None and Path(scratch).is_dir()
        browser.close()
        assert not Path(scratch).exists()

    @pytest.mark.slow
    def test_a_page_that_never_comes_is_an_error_of_the_action(self, browser: Browser, server: PageServer) -> None:
        browser.open(open_page(server.url))
        page = browser.step(f"goto('{server.url}/never')")
        assert page.error.startswith("TimeoutError: Page.goto: Timeout") and not page.done
        page = browser.step(f"goto('{server.url}/other')")
        assert (page.url, page.error) == (f"{server.url}/other", "")
        page = click(browser, page, "link", "a page that never comes")
        assert page.error.startswith("TimeoutError: ") and page.url == f"{server.url}/other"

    def test_a_tab_or_a_frame_that_never_comes_leaves_the_page_as_it_was(self, browser: Browser, server: PageServer) -> None:
        page = click(browser, browser.open(open_page(f"{server.url}/other")), "link", "a tab that never comes")
        assert (page.error, page.url, len(page.tabs)) == ("", f"{server.url}/other", 1)
        page = click(browser, page, "button", "frame")
        assert page.error == "TimeoutError: the page did not answer in time and was stopped."
        assert page.url == f"{server.url}/other" and browser.step("noop(1)").error == ""

    def test_failing_pages_of_the_sites_are_reported(self, browser: Browser, server: PageServer) -> None:
        browser.open(open_page(server.url, sites=(server.host,)))
        page = browser.step(f"goto('{server.url}/broken')")
        assert page.site_errors == ((f"{server.url}/broken", "HTTP 500"),)
        assert browser.step(f"goto('{server.url}/other')").site_errors == ()

    def test_every_task_has_a_context_of_its_own_in_the_same_browser(self, browser: Browser, server: PageServer) -> None:
        assert "no cookie" in browser.open(open_page(f"{server.url}/cookie")).tree
        first = browser.process_id
        assert "seen=1" in browser.step(f"goto('{server.url}/cookie')").tree
        browser.close_task()
        assert "no cookie" in browser.open(open_page(f"{server.url}/cookie")).tree
        assert browser.process_id == first


class TestEvaluators:
    def test_a_judge_is_asked_once_an_answer_and_not_before_there_is_one(self, browser: Browser, server: PageServer) -> None:
        asked: list[Question] = []

        def judge(question: Question) -> str:
            asked.append(question)
            return "incorrect"

        browser.open(replace(open_page(server.url), entry=f"{TASKS}:Judged", judge=True))
        browser.complete = judge
        assert browser.step("noop(1)").reward == 0 and asked == []
        for _ in range(2):
            assert browser.step("send_msg_to_user('forty-two')").answered
        assert [(q.model, q.messages[0]["content"], q.temperature) for q in asked] == [("a-judge", "forty-two", 0)]
        browser.complete = lambda question: "correct"
        page = browser.step("report_infeasible('no way')")
        assert page.reward == 1.0 and page.done

    def test_the_errors_of_the_judges_model_come_out_of_the_step(self, browser: Browser, server: PageServer) -> None:
        browser.open(replace(open_page(server.url), entry=f"{TASKS}:Judged", judge=True))

        def fail(question: Question) -> str:
            raise ProviderError("the judge is away")

        browser.complete = fail
        with pytest.raises(ProviderError, match="the judge is away"):
            browser.step("send_msg_to_user('forty-two')")
        browser.complete = None
        browser.open(replace(open_page(server.url), entry=f"{TASKS}:Judged", judge=True))
        with pytest.raises(SetupError, match="none was given"):
            browser.step("send_msg_to_user('forty-two')")

    def test_an_evaluator_that_fails_gives_nothing_and_is_told(self, browser: Browser, server: PageServer) -> None:
        browser.open(replace(open_page(server.url), entry=f"{TASKS}:BadEvaluator"))
        page = browser.step("noop(1)")
        assert (page.reward, page.done, page.evaluator_error) == (0.0, False, "KeyError: 'order'")
        assert len(page.tabs) == 1
        assert browser.step("send_msg_to_user('done')").done

    def test_a_task_that_cannot_be_started_is_infrastructure_and_the_browser_stays(
        self, browser: Browser, server: PageServer
    ) -> None:
        with pytest.raises(EnvironmentCrashed, match="could not be started: the login form is not there"):
            browser.open(replace(open_page(server.url), entry=f"{TASKS}:BadSetup"))
        first = browser.process_id
        assert browser.open(open_page(server.url)).goal == "look around" and browser.process_id == first


class TestDeaths:
    def test_a_browser_killed_mid_task_is_infrastructure_and_the_next_task_plays(
        self, browser: Browser, server: PageServer
    ) -> None:
        browser.open(open_page(server.url))
        assert browser.process_id is not None
        below = descendants(browser.process_id)
        leader = next(p for p in below if p.group == p.pid and p.group != browser.process_id)
        os.killpg(leader.group, signal.SIGKILL)
        with pytest.raises(EnvironmentCrashed, match="The browser failed"):
            browser.step("noop(1)")
        assert gone(below)
        assert browser.open(open_page(server.url)).goal == "look around"

    def test_a_worker_killed_mid_task_takes_its_browser_along(self, browser: Browser, server: PageServer) -> None:
        browser.open(open_page(server.url))
        assert browser.process_id is not None
        below = descendants(browser.process_id)
        os.kill(browser.process_id, signal.SIGKILL)
        with pytest.raises(EnvironmentCrashed, match=r"The browser worker has died \(code -9\)"):
            browser.step("noop(1)")
        assert below and gone(below)
        assert browser.open(open_page(server.url)).goal == "look around"

    def test_a_page_that_blocks_the_browser_is_ended_at_the_limit(self, settings: WorkerSettings, server: PageServer) -> None:
        browser = Browser(replace(settings, step_seconds=3.0))
        page = browser.open(open_page(server.url))
        assert browser.process_id is not None
        below = descendants(browser.process_id)
        with pytest.raises(EnvironmentCrashed, match="did not finish 'step' within 3 s"):
            click(browser, page, "button", "hang")
        assert gone(below)
        assert browser.open(open_page(server.url)).goal == "look around"
        browser.close()

    @pytest.mark.parametrize("busy", [False, True])
    def test_when_the_run_is_killed_worker_and_browser_end_too(
        self, settings: WorkerSettings, server: PageServer, busy: bool
    ) -> None:
        """kill -9 of the process that plays, idle or in the middle of a request."""
        action = f"goto('{server.url}/never')" if busy else "noop(1)"
        code = (
            "import sys, time\n"
            "from envs.browser.client import Browser, WorkerSettings\n"
            "from tests.support.browsers import open_page\n"
            "browser = Browser(WorkerSettings())\n"
            f"browser.open(open_page({server.url!r}))\n"
            "print(browser.process_id, browser.scratch, flush=True)\n"
            f"browser.step({action!r})\n"
            "time.sleep(60)\n"
        )
        run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        worker, scratch = run.stdout.readline().split()
        below = (*descendants(run.pid), *descendants(int(worker)))
        run.kill()
        run.wait()
        run.stdout.close()
        assert len(below) > 3 and gone(below)
        assert not Path(scratch).exists()

    def test_a_worker_that_cannot_start_says_why(self, settings: WorkerSettings) -> None:
        with pytest.raises(EnvironmentCrashed, match="cannot be started"):
            Browser(replace(settings, command=("no-such-program",))).describe(("webarena",))
        broken = replace(settings, command=(sys.executable, "-c", "raise SystemExit('no libraries here')"))
        with pytest.raises(EnvironmentCrashed, match=r"has died \(code 1\): no libraries here"):
            Browser(broken).describe(("webarena",))

    def test_a_missing_browser_is_named(self, settings: WorkerSettings, tmp_path: Path) -> None:
        browser = Browser(replace(settings, env={"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}))
        with pytest.raises(EnvironmentCrashed, match="could not be started: .*Executable doesn't exist"):
            browser.open(TaskPlan("browsergym.core.task:OpenEndedTask", {"start_url": "about:blank", "goal": ""}))
        browser.close()


class TestPool:
    def test_two_tasks_at_a_time_have_a_worker_each_and_workers_are_used_again(
        self, settings: WorkerSettings, server: PageServer
    ) -> None:
        pool = BrowserPool(settings)
        with pool.borrow() as first, pool.borrow() as second, ThreadPoolExecutor(2) as threads:
            pages = list(threads.map(lambda browser: browser.open(open_page(server.url)), (first, second)))
            assert [page.goal for page in pages] == ["look around"] * 2
            both = {first.process_id, second.process_id}
            moved = threads.map(lambda browser: browser.step(f"goto('{server.url}/other')").url, (first, second))
            assert list(moved) == [f"{server.url}/other"] * 2
        with pool.borrow() as again:
            again.open(open_page(server.url))
            assert again.process_id in both and len(both) == 2
        pool.close()


def test_the_browser_knows_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from envs.browser.client import _without_secrets

    kept = _without_secrets(
        {"PATH": "/bin", "OPENAI_API_KEY": "k", "HF_TOKEN": "t", "aws_secret_access": "s", "DB_PASSWORD": "p"}
    )
    assert kept == {"PATH": "/bin"}
