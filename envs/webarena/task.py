"""BrowserGym's WebArena task with one look more: whether a login has worked. Imported in the browser worker only.

BrowserGym fills in the login form and goes on, whatever comes of it; a task played as a stranger would count as the agents'
failure. So a page that only members see is opened after each login: where it asks for a password, the login has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from browsergym.core.task import AbstractBrowserTask
from browsergym.webarena.instance import WebArenaInstance
from browsergym.webarena.task import GenericWebArenaTask

# a page of each site that leads a stranger to the login form
MEMBERS = {"shopping": "/customer/account/", "shopping_admin": "", "reddit": "/submit", "gitlab": "/dashboard/projects"}


class LoginFailed(Exception):
    """The site still asks for a password after the login."""


def check_logins(instance: Any) -> None:
    """Let every `ui_login` of this instance end with a look at a members' page. Raises LoginFailed out of `ui_login`."""
    login = instance.ui_login

    def checked(site: str, page: Any) -> None:
        try:
            with patient_pages(page.context):
                login(site=site, page=page)
        except Exception as error:
            raise LoginFailed(f"login at {site}: {str(error).splitlines()[0]}") from error
        if site in MEMBERS:
            _look(instance.urls[site] + MEMBERS[site], site, page.context)

    instance.ui_login = checked


@contextmanager
def patient_pages(context: Any) -> Iterator[None]:
    """Let pages that are opened in this block wait for their load before they close.

    `ui_login` closes its page while the answer to the form still comes in, and Chromium sometimes drops a close that meets the
    commit of a new document: Playwright would then wait for the end of the page for ever (one login in a hundred).
    """
    new_page = context.new_page

    def opened() -> Any:
        page = new_page()
        close = page.close

        def patient() -> None:
            page.wait_for_load_state("load")
            close()

        page.close = patient
        return page

    context.new_page = opened
    try:
        yield
    finally:
        del context.new_page


def _look(url: str, site: str, context: Any) -> None:
    page = context.new_page()
    try:
        answer = page.goto(url)
        if answer is not None and answer.status >= 500:
            raise LoginFailed(f"login at {site}: HTTP {answer.status}")
        if page.locator("input[type=password]:visible").count():
            raise LoginFailed(f"login at {site}: the site asks for a password again")
    finally:
        page.close()


class WebArenaTask(GenericWebArenaTask):  # type: ignore[misc]
    """One of the 812; `kwargs` are BrowserGym's (task_id)."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed, **options)
        check_logins(self.webarena_instance)


class LoginProbe(AbstractBrowserTask):  # type: ignore[misc]
    """Logs in at the given sites and ends: what `memarena doctor` tries."""

    def __init__(self, seed: int, sites: list[str]) -> None:
        super().__init__(seed)
        self.viewport, self.slow_mo, self.timeout = {"width": 1280, "height": 720}, 0, 10000
        self._sites = sites

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        instance = WebArenaInstance()
        check_logins(instance)
        for site in self._sites:
            instance.ui_login(site=site, page=page)
        return "", {}

    def validate(self, page: Any, chat_messages: list[Any]) -> tuple[float, bool, str, dict[str, Any]]:
        return 1.0, True, "", {}

    def teardown(self) -> None:
        return None
