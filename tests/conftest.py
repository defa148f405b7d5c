"""Fixtures for all tests: the toy environment is a name like any other."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def toy_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy as `env=toy` for the test's process."""
    from envs.catalogue import CATALOGUE

    monkeypatch.setitem(CATALOGUE, "toy", "tests.support.toy:Toy")
