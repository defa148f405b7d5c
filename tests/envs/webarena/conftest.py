from __future__ import annotations

import pytest

from envs.webarena.sites import SITES, variable


@pytest.fixture(autouse=True)
def _no_sites_of_the_user(monkeypatch: pytest.MonkeyPatch, _no_user_data: None) -> None:
    for site in (*SITES, "reset"):
        monkeypatch.delenv(variable(site), raising=False)
