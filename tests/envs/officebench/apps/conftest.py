"""A workspace and a way to act in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envs.officebench.apps.dispatch import perform
from envs.officebench.apps.workspace import Workspace

Act = Callable[..., str]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bed" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "bed")
    return tmp_path / "bed"


@pytest.fixture
def act(testbed: Path) -> Act:
    """`act("app.action", name=value, …)`: the observation of an action that works, "! …" of one that does not."""

    def call(name: str, **arguments: Any) -> str:
        app, _, action = name.partition(".")
        observation, ok = perform(Workspace(testbed), app, action, arguments)
        return observation if ok else f"! {observation}"

    return call
