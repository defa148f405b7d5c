from __future__ import annotations

from collections.abc import Iterator

import pytest

from envs.browser.client import Browser, WorkerSettings
from tests.support.browsers import PageServer, page_server, use_installed_browser


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server() as running:
        yield running


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> WorkerSettings:
    use_installed_browser(monkeypatch)
    return WorkerSettings(step_seconds=20.0)


@pytest.fixture
def browser(settings: WorkerSettings) -> Iterator[Browser]:
    running = Browser(settings)
    yield running
    running.close()
