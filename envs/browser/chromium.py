"""One Chromium for all tasks of a worker, and what happens in its contexts besides the page: dialogs, downloads, failing sites.

BrowserGym starts two browsers a task, one for the page and one for its chat window, by the `launch` of a global Playwright.
The one given to it here starts Chromium once and lends it out: a task gets contexts of its own (cookies, storage, tabs), which
are closed when BrowserGym closes "its" browser.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Collection
from typing import Any


class Watch:
    """What happened since the last `take`, beside what the page shows."""

    def __init__(self) -> None:
        self.sites: Collection[str] = ()
        self.dialogs: list[tuple[str, str]] = []
        self.downloads: list[str] = []
        self.site_errors: list[tuple[str, str]] = []
        self.pending: set[Any] = set()  # requests for whole pages (frames too) that nobody has answered yet

    def attach(self, context: Any) -> None:
        context.on("dialog", self._dialog)
        context.on("page", lambda page: page.on("download", self._download))
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("requestfailed", self._failed)

    def waiting(self) -> bool:
        """Whether a page that is still open has been asked for and has not come."""
        self.pending = {request for request in self.pending if _has_a_page(request)}
        return bool(self.pending)

    def take(self) -> dict[str, Any]:
        """What was seen, and forget it."""
        seen = {"dialogs": self.dialogs, "downloads": self.downloads, "site_errors": self.site_errors}
        self.dialogs, self.downloads, self.site_errors = [], [], []
        return seen

    def _dialog(self, dialog: Any) -> None:
        """As Playwright does where nobody listens: a page that is left may go, everything else is dismissed."""
        self.dialogs.append((dialog.type, dialog.message))
        with contextlib.suppress(Exception):  # its page may be gone by now
            dialog.accept() if dialog.type == "beforeunload" else dialog.dismiss()

    def _download(self, download: Any) -> None:
        self.downloads.append(download.suggested_filename)

    def _request(self, request: Any) -> None:
        if request.is_navigation_request():
            self.pending.add(request)

    def _response(self, response: Any) -> None:
        self.pending.discard(response.request)
        if response.status >= 500 and self._of_a_site(response.request):
            self.site_errors.append((response.url, f"HTTP {response.status}"))

    def _failed(self, request: Any) -> None:
        self.pending.discard(request)
        failure = request.failure or ""
        if self._of_a_site(request) and "ERR_ABORTED" not in failure:  # what the agent itself broke off, and downloads
            self.site_errors.append((request.url, failure))

    def _of_a_site(self, request: Any) -> bool:
        return request.is_navigation_request() and urllib.parse.urlparse(request.url).netloc in self.sites


def _has_a_page(request: Any) -> bool:
    """False for a request of a tab or frame that is gone: nobody will tell its end."""
    try:
        return not request.frame.page.is_closed() and not request.frame.is_detached()
    except Exception:  # Playwright raises where the frame is not known (any more)
        return False


class _Lease:
    """A browser as BrowserGym sees it: closing it closes the contexts that it has opened."""

    def __init__(self, browser: Any, watch: Watch) -> None:
        self._browser, self._watch = browser, watch
        self._contexts: list[Any] = []

    def new_context(self, **options: Any) -> Any:
        context = self._browser.new_context(**options)
        self._contexts.append(context)
        self._watch.attach(context)
        return context

    def close(self) -> None:
        for context in self._contexts:
            with contextlib.suppress(Exception):
                context.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser, name)


class _Launcher:
    """Playwright's browser type; the first launch decides about the options, which are the same for all tasks of a worker."""

    def __init__(self, real: Any, watch: Watch) -> None:
        self._real, self._watch = real, watch
        self.browser: Any = None

    def launch(self, **options: Any) -> _Lease:
        if self.browser is None or not self.browser.is_connected():
            self.browser = self._real.launch(**options)
        return _Lease(self.browser, self._watch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class SharedPlaywright:
    """A Playwright whose Chromium is started once and again only after it was lost."""

    def __init__(self, real: Any, watch: Watch) -> None:
        self._real = real
        self.chromium = _Launcher(real.chromium, watch)

    @property
    def connected(self) -> bool:
        browser = self.chromium.browser
        return browser is not None and bool(browser.is_connected())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
