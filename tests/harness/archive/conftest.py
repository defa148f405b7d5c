"""A recorded run on the toy, made once, and copies of it to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.build import played

RECORD = {"replay": {"mode": "record"}}


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from envs.catalogue import CATALOGUE

    CATALOGUE["toy"] = "tests.support.toy:Toy"
    try:
        return played(tmp_path_factory.mktemp("recorded"), method={"name": "generative"}, run={**RECORD, "name": "r"})
    finally:
        del CATALOGUE["toy"]


@pytest.fixture
def recorded(recorded_once: Path, tmp_path: Path) -> Path:
    """A finished and recorded run of six tasks with a memory, to be done with as one likes."""
    return Path(shutil.copytree(recorded_once, tmp_path / "runs" / "r"))
