"""BrowserGym inside the worker process. Nothing else imports this module: it starts Playwright's synchronous interface."""

from __future__ import annotations

import contextlib
import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import browsergym.core
import playwright.sync_api
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.core.env import BrowserEnv
from browsergym.utils.obs import IGNORED_AXTREE_ROLES, flatten_axtree_to_str

from envs.browser.chromium import SharedPlaywright, Watch
from envs.browser.guard import check_call
from envs.browser.judge import JudgeEndpoint

_ANSWERS = ("assistant", "infeasible")
_POLL = 50  # ms between two looks at whether a page has come
_TRIES, _PAUSE = 3, 0.5  # for an observation of a page that changes under our hands; seconds


class Failure(Exception):
    """Something that is not the agents' doing; `kind` is envs.browser.plan.FailureKind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TaskEnv(BrowserEnv):  # type: ignore[misc]
    """BrowserGym's environment, unchanged but for three places where the attempt would end with an exception or not at all."""

    evaluator_error = ""
    connected: Callable[[], bool]
    watch: Watch
    page: Any
    page_history: dict[Any, None]
    last_action_error: str = ""

    @property
    def answered(self) -> bool:
        """Whether the agents' last word stands at the end of the chat."""
        return bool(self.chat.messages and self.chat.messages[-1]["role"] in _ANSWERS)

    def _wait_dom_loaded(self) -> None:
        """A page that was asked for and never comes blocks every look at the old one: it is given the task's own time, then
        stopped."""
        waited = "Page.goto: Timeout" in self.last_action_error
        end = time.monotonic() + (0.0 if waited else float(self.task.timeout or 0) / 1000)
        while self.watch.waiting() and time.monotonic() < end:
            self.page.wait_for_timeout(_POLL)
        if self.watch.waiting():
            self._stop_loading()
        super()._wait_dom_loaded()

    def _stop_loading(self) -> None:
        for page in self.context.pages:
            with contextlib.suppress(playwright.sync_api.Error):
                session = self.context.new_cdp_session(page)
                session.send("Page.stopLoading")
                session.detach()
        self.watch.pending.clear()
        self.last_action_error = self.last_action_error or "TimeoutError: the page did not answer in time and was stopped."

    def _task_validate(self) -> tuple[float, bool, str, dict[str, Any]]:
        """An evaluator that cannot cope with the page gives 0; whether a site is to blame is for the parent to find out."""
        self.evaluator_error = ""
        before, page, history = list(self.context.pages), self.page, dict(self.page_history)
        try:
            found: tuple[float, bool, str, dict[str, Any]] = super()._task_validate()
            return found
        except Exception as error:
            if not self.connected():
                raise
            self.evaluator_error = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            for opened in [other for other in self.context.pages if other not in before]:
                with contextlib.suppress(playwright.sync_api.Error):
                    opened.close()
            self.page, self.page_history = page, history
            return 0.0, self.answered, "", {}

    def _get_obs(self) -> dict[str, Any]:
        """A page that is replaced while it is read is read again; one that can never be read is shown empty."""
        for rest in reversed(range(_TRIES)):
            try:
                found: dict[str, Any] = super()._get_obs()
                return found
            except (playwright.sync_api.Error, ValueError) as error:
                if not self.connected():
                    raise
                if not rest:
                    return self._bare(error)
            time.sleep(_PAUSE)
            self._active_page_check()
        raise AssertionError("unreachable")

    def _bare(self, error: Exception) -> dict[str, Any]:
        self.last_action_error = self.last_action_error or f"This page cannot be read: {str(error).splitlines()[0]}"
        return {
            "axtree_object": None,
            "url": self.page.url,
            "open_pages_urls": tuple(page.url for page in self.context.pages),
            "open_pages_titles": tuple("" for _ in self.context.pages),
            "active_page_index": [self.context.pages.index(self.page)],
            "last_action_error": self.last_action_error,
        }


def actions_of(subsets: list[str], retry_with_force: bool = True) -> HighLevelActionSet:
    return HighLevelActionSet(subsets=subsets, multiaction=False, strict=False, retry_with_force=retry_with_force)


class Engine:
    """Plays one task at a time; `ask` puts a question to the parent."""

    def __init__(self, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._watch = Watch()
        self._ask = ask
        self._playwright: SharedPlaywright | None = None
        self._env: TaskEnv | None = None
        self._plan: dict[str, Any] = {}
        self._judge: JudgeEndpoint | None = None

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "open":
                return {"ok": self.open(request["plan"])}
            case "step":
                return {"ok": self.step(request["action"])}
            case "close":
                self.close()
                return {"ok": {}}
            case "describe":
                found = actions_of(request["subsets"])
                text = found.describe(with_long_description=False, with_examples=True)
                return {"ok": {"actions": list(found.action_set), "describe": text}}
        raise Failure("worker", f"there is no request '{request['op']}'")

    # --- requests -----------------------------------------------------------------------------------------------------
    def open(self, plan: dict[str, Any]) -> dict[str, Any]:
        self.close()
        self._plan = plan
        self._watch.sites = plan["sites"]
        self._watch.take()
        self._watch.pending.clear()
        if plan["judge"]:
            self._judge = self._judge or JudgeEndpoint(self._ask)
            self._judge.start_task(lambda: plan["ask_before_answer"] or (self._env is not None and self._env.answered))
        self._env = self._made(plan)
        try:
            observation, _ = self._env.reset(seed=plan["seed"])
        except Exception as error:
            gone = self._playwright is not None and self._playwright.chromium.browser is not None and not self._connected()
            trouble = "; ".join(f"{url}: {what}" for url, what in self._watch.site_errors[:2])
            self.close()
            said = " ".join(" ".join(str(error).splitlines()[:4]).split())
            raise Failure("browser" if gone else "setup", f"{said}{f' ({trouble})' if trouble else ''}") from error
        return self._page(observation, 0.0, False)

    def _made(self, plan: dict[str, Any]) -> TaskEnv:
        if self._playwright is None:
            try:
                started = playwright.sync_api.sync_playwright().start()
            except Exception as error:
                raise Failure("browser", str(error).splitlines()[0]) from error
            self._playwright = SharedPlaywright(started, self._watch)
            browsergym.core._set_global_playwright(self._playwright)
        module, _, name = plan["entry"].partition(":")
        env = TaskEnv(
            task_entrypoint=getattr(importlib.import_module(module), name),
            task_kwargs=dict(plan["kwargs"]),
            slow_mo=plan["slow_mo"],
            pre_observation_delay=plan["observation_delay"],
            pw_context_kwargs=dict(plan["context"]),
            action_mapping=_mapping(tuple(plan["subsets"]), plan["retry_with_force"]),
        )
        env.connected, env.watch = self._connected, self._watch
        return env

    def _connected(self) -> bool:
        return self._playwright is not None and self._playwright.connected

    def step(self, action: str) -> dict[str, Any]:
        if self._env is None:
            raise Failure("worker", "no task is open")
        self._watch.take()
        try:
            observation, reward, done, _, info = self._env.step(action)
        except Exception as error:
            gone = not self._connected()
            what = "the browser is gone" if gone else f"{type(error).__name__}: {str(error).splitlines()[0]}"
            raise Failure("browser", what) from error
        return self._page(observation, float(reward), bool(done), str(info.get("task_info", {}).get("error", "")))

    def close(self) -> None:
        """Close the task's contexts; its recordings are written by that."""
        if self._env is not None:
            with contextlib.suppress(Exception):
                self._env.close()
            for part in (self._env.chat, self._env.context, self._env.browser):
                if part is not None:  # a setup that broke off leaves some of them open
                    with contextlib.suppress(Exception):
                        part.close()
        self._env = None

    # --- answers ------------------------------------------------------------------------------------------------------
    def _page(self, observation: dict[str, Any], reward: float, done: bool, task_error: str = "") -> dict[str, Any]:
        env = self._env
        assert env is not None
        titles, urls = observation["open_pages_titles"], observation["open_pages_urls"]
        return {
            "tree": self._tree(observation),
            "url": observation["url"],
            "tabs": [list(pair) for pair in zip(titles, urls, strict=True)],
            "active": int(observation["active_page_index"][0]),
            "goal": "\n".join(part["text"] for part in env.goal_object if part["type"] == "text"),
            "error": observation["last_action_error"],
            "reward": reward,
            "done": done,
            "answered": env.answered,
            "evaluator_error": env.evaluator_error,
            "task_error": task_error,
            **self._watch.take(),
        }

    def _tree(self, observation: dict[str, Any]) -> str:
        if observation["axtree_object"] is None:
            return ""
        return str(
            flatten_axtree_to_str(
                observation["axtree_object"],
                extra_properties=observation["extra_element_properties"],
                with_center_coords=self._plan["coordinates"],
                # newer Chromiums repeat every text by line; the one that BrowserGym was published with does not
                ignored_roles=[*IGNORED_AXTREE_ROLES, "InlineTextBox"],
            )
        )


@functools.cache
def _mapping(subsets: tuple[str, ...], retry_with_force: bool) -> Callable[[str], str]:
    """From an action to the code that BrowserGym executes; what is refused raises ValueError."""
    actions = actions_of(list(subsets), retry_with_force)

    def mapped(action: str) -> str:
        code = str(actions.to_python_code(action))
        check_call(code)
        return code

    return mapped
