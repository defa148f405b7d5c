"""`runs` are four fabricated runs, `report` the page made of them, `open_page` opens it in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html_runs import CALL, write_run

from harness.report.html.page import build
from harness.store.view import RunView
from tests.support.browsers import use_installed_browser


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("fabricated")
    unpriced = replace(CALL, cost_usd=None, usage_source="estimate")
    return [
        write_run(root, "none-run", "none", [1, 0, 0, 0, 0, 0, 0, 0]),
        write_run(root, "sepm/run", "sepm", [1, 1, 1, 1, 1, 1, "agent", "infra"]),
        write_run(root, "graded", "metagpt", [0.5, 0, 0.25, 1, 0, 0, 0, 1], unpriced),
        write_run(root, "double", "none", [1, 1], models={"scripted": True}, labels={"models": "scripted", "env": "toy"}),
    ]


@pytest.fixture(scope="session")
def report(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build([RunView(run) for run in runs], tmp_path_factory.mktemp("report")).path


@pytest.fixture(scope="module")  # no longer than it must: while it lives, this thread has a running event loop
def chromium() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        use_installed_browser(patch)
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch()
            yield browser
            browser.close()


@pytest.fixture
def open_page(chromium: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """open_page(address, width=…, scheme=…) → the page; a test in which it complains on its console fails."""
    complaints: list[str] = []
    contexts = []

    def open_(address: str = "", width: int = 1280, scheme: str = "light", file: Path = report) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{file.as_uri()}{address}")
        page.wait_for_selector("main h1", state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
