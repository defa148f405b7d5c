"""KramaBench on its real questions and data files; skipped where they or the sandbox are absent."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from envs.kramabench import grade
from envs.kramabench.adapter import DOMAINS, KramaBench, KramaBenchConfig
from envs.kramabench.notes import DUBIOUS
from harness.store.view import RunView
from tests.support.build import played

DATA = Path(os.environ.get("HARNESS_DATA") or Path(__file__).parents[3] / "shared" / "data") / "kramabench"
pytestmark = pytest.mark.skipif(not (DATA / "legal.json").is_file(), reason=f"no KramaBench in {DATA}")
WITH_FILES = ["biomedical", "environment", "legal", "wildfire"]


@pytest.fixture(scope="module")
def tasks() -> list[dict[str, Any]]:
    return [row for domain in DOMAINS for row in json.loads((DATA / f"{domain}.json").read_text())]


def test_every_gold_scores_one_also_as_text(tasks: list[dict[str, Any]]) -> None:
    assert len(tasks) == 104
    assert sum(grade(task["answer"], task) == 1.0 for task in tasks) == 104
    assert sum(grade(str(task["answer"]), task) == 1.0 for task in tasks) == 104


def test_every_perturbed_gold_fails(tasks: list[dict[str, Any]]) -> None:
    def perturbed(gold: Any) -> Any:
        if isinstance(gold, list):
            return [perturbed(gold[0]), *gold[1:]]
        return gold * 1.5 + 1 if isinstance(gold, int | float) else f"{gold} never"

    assert sum(grade(perturbed(task["answer"]), task) >= 1.0 for task in tasks) == 0


def test_the_split_is_that_of_the_paper_and_notes_name_real_tasks() -> None:
    config = {"data_dir": str(DATA), "sandbox": "process"}
    train = KramaBench(KramaBenchConfig(split="train", **config)).tasks()  # type: ignore[arg-type]
    test = KramaBench(KramaBenchConfig(split="test", **config)).tasks()  # type: ignore[arg-type]
    assert [Counter(task.group for task in train)[domain] for domain in DOMAINS] == [4, 4, 3, 5, 7, 5]
    assert [Counter(task.group for task in test)[domain] for domain in DOMAINS] == [8, 8, 6, 15, 23, 16]
    assert set(DUBIOUS) <= {task.task_id for task in [*train, *test]}


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["docker", "bubblewrap"])
def test_the_oracle_plays_real_tasks_through_host_and_sandbox(sandbox: str, tmp_path: Path) -> None:
    config = {"data_dir": str(DATA), "sandbox": sandbox, "domains": WITH_FILES}
    environment = KramaBench(KramaBenchConfig(**config))  # type: ignore[arg-type]
    if problems := environment.check():
        pytest.skip(problems[0].what)
    view = RunView(played(tmp_path, env={"name": "kramabench", **config}, host={"name": "autogen"}, run={"tasks": 12}))
    assert [row.score for row in view.tasks()] == [1.0] * 12
    events = (tmp_path / next(tmp_path.iterdir()).name / "events.jsonl").read_text()
    assert ".csv" in events or ".xlsx" in events  # the files were seen inside
