"""The whole ALFWorld stream on the official data: 134 tasks through host and store, killed once on the way, and resumed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.store.view import RunView
from tests.harness.test_kill import finish, kill_at_random, point
from tests.official.test_alfworld import DATA, INDEX
from tests.support.build import values


@pytest.mark.slow
@pytest.mark.skipif(not INDEX.is_file(), reason=f"no official ALFWorld data in {DATA / 'alfworld'}")
def test_all_134_tasks_are_played_in_order_and_a_kill_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_DATA", str(DATA))
    content = values(tmp_path, host={"name": "autogen"}, run={"name": "x"}) | {"env": {"name": "alfworld", "source": "official"}}
    config = point(tmp_path / "x.json", content)
    assert kill_at_random(config, tmp_path / "x", random.Random(5), longest=15.0)
    assert len(RunView(tmp_path / "x").tasks()) < 134
    finish(config)
    rows = RunView(tmp_path / "x").tasks()
    assert [row.task_index for row in rows] == list(range(134))
    assert sum(row.success for row in rows) == 134
    # RUN-R3, base seed 0
    assert [row.seed for row in rows] == list(range(134))
