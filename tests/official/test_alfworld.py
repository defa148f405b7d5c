"""ALFWorld on its real data. Skipped where `$HARNESS_DATA/alfworld` (default: ../shared/data beside the repository) is absent."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from envs.alfworld.adapter import AlfWorld, AlfWorldConfig
from envs.alfworld.data import GAMES
from envs.alfworld.observation import parse_goal, read_evidence

DATA = Path(os.environ.get("HARNESS_DATA") or Path(__file__).parents[3] / "shared" / "data")
INDEX = DATA / "alfworld" / "alfworld_tasks_suffix.json"

pytestmark = pytest.mark.skipif(
    not (DATA / "alfworld" / GAMES / "valid_unseen").is_dir(), reason=f"no official ALFWorld data in {DATA / 'alfworld'}"
)


@pytest.fixture
def alfworld(monkeypatch: pytest.MonkeyPatch) -> AlfWorld:
    monkeypatch.setenv("HARNESS_DATA", str(DATA))
    return AlfWorld(AlfWorldConfig(source="official"))


def test_all_134_games_are_there_family_by_family(alfworld: AlfWorld) -> None:
    """SEPM-R37: 134 tasks."""
    assert alfworld.check() == []
    short = Counter(task.family.split("_then")[0] for task in alfworld.tasks())
    assert short == {
        "look_at_obj_in_light": 18,
        "pick_and_place_simple": 24,
        "pick_clean": 31,
        "pick_heat": 23,
        "pick_cool": 21,
        "pick_two_obj_and_place": 17,
    }


@pytest.mark.skipif(not INDEX.is_file(), reason=f"no {INDEX.name} to compare with")
def test_the_order_is_that_of_the_published_index(alfworld: AlfWorld) -> None:
    rows = json.loads(INDEX.read_text())
    tasks = alfworld.tasks()
    assert len(tasks) == len(rows) == 134
    for number, (row, task) in enumerate(zip(rows, tasks, strict=True)):
        assert task.index == number and row["gamefile"].endswith(f"valid_unseen/{task.task_id}/game.tw-pddl")
        assert row["goal"] == f"{row['goal'].partition('Your task is to: ')[0]}Your task is to: {task.goal}___{number}"


def test_identity_is_quick_and_says_what_was_played(alfworld: AlfWorld) -> None:
    start = time.monotonic()
    assert len(alfworld.data_digest) == 64
    assert time.monotonic() - start < 10  # 0.1 s here
    assert alfworld.provenance["source"] == "official" and alfworld.provenance["games"] == 134


def test_every_official_goal_is_understood(alfworld: AlfWorld) -> None:
    for task in alfworld.tasks():
        named = parse_goal(task.goal)
        directory = task.task_id.split("/")[0].lower()
        assert "object" in named and all(f"-{name}-" in directory for name in named.values()), task


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_walkthroughs_win_all_games_and_every_answer_is_evidence(alfworld: AlfWorld) -> None:
    """About a minute: the engine translates each game once."""
    for task in alfworld.tasks():
        solution = alfworld.oracle(task)
        assert solution is not None and 3 <= len(solution) <= alfworld.max_steps
        with alfworld.open(task, task.index) as session:
            assert session.observation.endswith(f"Your task is to: {task.goal}")
            assert not session.step("juggle").evidence and not session.outcome().success
            for action in solution:
                assert action in session.choices
                result = session.step(action)
                assert result.evidence == read_evidence(result.observation, result.done, result.evidence[0].observed_at[0])
            assert result.done and session.outcome().score == 1.0, task


@pytest.mark.slow
def test_doing_nothing_wins_none_of_every_tenth_game(alfworld: AlfWorld) -> None:
    """All 134 take a minute and a half (`python -m envs.alfworld noop`); these stand for them."""
    for task in alfworld.tasks()[::10]:
        with alfworld.open(task, task.index) as session:
            for _ in range(alfworld.max_steps):
                assert not session.step(session.noop_action).done
            assert session.outcome().score == 0.0
