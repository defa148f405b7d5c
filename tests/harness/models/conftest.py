"""The back-end `told` is a name like any other in these tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def told_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.models.backends.catalogue import CATALOGUE

    monkeypatch.setitem(CATALOGUE, "told", "models_doubles:ToldBackend")
