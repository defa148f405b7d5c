"""Fixtures of the adapters' tests: a dozen real ALFWorld games, made once a session, and no data of this machine's user."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.alfworld.adapter import AlfWorld, AlfWorldConfig
from envs.alfworld.data import Game, read_games
from envs.alfworld.generate import Recipe, ensure

SEED, PER_FAMILY = 11, 2


@pytest.fixture(autouse=True)
def _no_user_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HARNESS_DATA", raising=False)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "no-alfworld-data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("alfworld-cache")


@pytest.fixture(scope="session")
def games_root(cache_dir: Path) -> Path:
    """Two games of each family, each with a goal of its own."""
    return ensure(cache_dir, Recipe(SEED, PER_FAMILY, repeat=1))


@pytest.fixture(scope="session")
def games(games_root: Path) -> list[Game]:
    return read_games(games_root, "valid_unseen")


@pytest.fixture
def config(cache_dir: Path, games_root: Path) -> AlfWorldConfig:
    return AlfWorldConfig(
        source="generated", generated_seed=SEED, games_per_family=PER_FAMILY, repeat=1, cache_dir=str(cache_dir)
    )


@pytest.fixture
def alfworld(config: AlfWorldConfig) -> AlfWorld:
    return AlfWorld(config)
