"""One environment for all tests here: its sites and its browser are started once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from envs.webarena_local.adapter import Stage, WebArenaLocal, WebArenaLocalConfig
from envs.webarena_local.site.world import SITES
from tests.support.browsers import use_installed_browser


class Observed(WebArenaLocal):
    """The environment, with a hand on the sites behind the task in play."""

    now: Stage | None = None

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        with super().stage() as stage:
            self.now = stage
            try:
                yield stage
            finally:
                self.now = None

    def plant(self, site: str, kind: str | None, path: str = "/", seconds: float = 0.0) -> None:
        """A fault for the task in play, or for the next one."""
        if self.now is not None:
            self.now.sites.plant(site, kind, path, seconds)
        else:
            with super().stage() as stage:
                stage.sites.plant(site, kind, path, seconds)

    def mend(self) -> None:
        for site in SITES:
            self.plant(site, None)


@pytest.fixture(scope="module")
def kept() -> Iterator[Observed]:
    environment = Observed(WebArenaLocalConfig(grader_pause=0.0, observation_delay=0.05))
    yield environment
    environment.close()


@pytest.fixture
def local(kept: Observed, monkeypatch: pytest.MonkeyPatch) -> Observed:
    use_installed_browser(monkeypatch, webarena=True)
    assert kept.check() == []
    kept.mend()
    return kept
