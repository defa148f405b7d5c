"""Official tasks of the sandboxed benchmarks and of BBEH through `kill -9`: a resumed stream equals an uninterrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envs.bbeh.adapter import Bbeh, BbehConfig
from envs.kramabench.adapter import KramaBench, KramaBenchConfig
from envs.officebench.adapter import OfficeBench, OfficeBenchConfig
from harness.contracts import Environment
from harness.store.view import RunView
from tests.harness.test_kill import killed_and_resumed_equals_uninterrupted
from tests.official.test_alfworld import DATA
from tests.support.build import values

OFFICE = {"name": "officebench", "data_dir": str(DATA / "officebench"), "sandbox": "docker", "apps": [2]}
KRAMA = {"name": "kramabench", "data_dir": str(DATA / "kramabench"), "sandbox": "docker", "domains": ["legal"]}
BBEH = {"name": "bbeh", "data_dir": str(DATA / "bbeh")}


def environments() -> dict[str, tuple[dict[str, Any], Environment]]:
    return {
        "officebench": (OFFICE, OfficeBench(OfficeBenchConfig(**OFFICE))),  # type: ignore[arg-type]
        "kramabench": (KRAMA, KramaBench(KramaBenchConfig(**KRAMA))),  # type: ignore[arg-type]
        "bbeh": (BBEH, Bbeh(BbehConfig(**BBEH))),  # type: ignore[arg-type]
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["officebench", "kramabench", "bbeh"])
def test_ten_tasks_through_kills_are_those_of_an_uninterrupted_run(name: str, tmp_path: Path) -> None:
    env, environment = environments()[name]
    if problems := environment.check():
        pytest.skip(problems[0].what)
    content = {**values(tmp_path, method={"name": "generative"}, host={"name": "autogen"}, run={"tasks": 10}), "env": env}
    kills = killed_and_resumed_equals_uninterrupted(tmp_path, content, longest=4.0 if name != "bbeh" else 1.0, seed=4, repeats=3)
    assert kills >= 1
    assert [row.score for row in RunView(tmp_path / "killed").tasks()] == [1.0] * 10
