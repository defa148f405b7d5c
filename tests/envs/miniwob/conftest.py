from __future__ import annotations

import pytest

from tests.support.browsers import use_installed_browser


@pytest.fixture(autouse=True)
def _browser(monkeypatch: pytest.MonkeyPatch, _no_user_data: None) -> None:
    use_installed_browser(monkeypatch)
