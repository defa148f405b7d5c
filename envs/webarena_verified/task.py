"""A verified task as BrowserGym plays it: login, start pages, an answer that ends it. Graded later, from the network's record.

Imported in the browser worker only: BrowserGym reads the addresses (WA_*) when it is made. BrowserGym's own package for these
tasks needs Python 3.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from browsergym.core.task import AbstractBrowserTask
from browsergym.webarena.instance import WebArenaInstance

from envs.webarena.task import check_logins

ANSWERS = ("assistant", "infeasible")


class VerifiedTask(AbstractBrowserTask):  # type: ignore[misc]
    """`start_urls` are real addresses; the first page is the last one opened, as in BrowserGym's WebArena task."""

    def __init__(self, seed: int, sites: Sequence[str], start_urls: Sequence[str], intent: str) -> None:
        super().__init__(seed)
        self.viewport = {"width": 1280, "height": 720}
        self.slow_mo, self.timeout = 1000, 10000  # ms
        self._sites, self._start_urls, self._intent = sites, start_urls, intent

    @classmethod
    def get_task_id(cls) -> str:
        return "webarena_verified"

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        instance = WebArenaInstance()
        check_logins(instance)
        for site in self._sites:
            instance.ui_login(site=site, page=page)
        for place, url in enumerate(self._start_urls):
            if place:
                page = page.context.new_page()
            page.goto(url)
        return self._intent, {}

    def teardown(self) -> None:
        return None

    def validate(self, page: Any, chat_messages: list[dict[str, Any]]) -> tuple[float, bool, str, dict[str, Any]]:
        """Over as soon as the agents have answered."""
        return 0.0, bool(chat_messages) and chat_messages[-1]["role"] in ANSWERS, "", {}
