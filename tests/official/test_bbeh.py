"""BBEH-mini on its real questions; skipped where they are absent."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from envs.bbeh import grade
from envs.bbeh.adapter import Bbeh, BbehConfig
from envs.bbeh.split import sample, train_positions

DATA = Path(os.environ.get("HARNESS_DATA") or Path(__file__).parents[3] / "shared" / "data") / "bbeh"
pytestmark = pytest.mark.skipif(not (DATA / "mini.json").is_file(), reason=f"no BBEH-mini in {DATA}")


@pytest.fixture
def bbeh() -> Bbeh:
    return Bbeh(BbehConfig(data_dir=str(DATA)))


def test_every_gold_is_right_also_with_a_prefix(bbeh: Bbeh) -> None:
    golds = [str(task.payload["target"]) for task in bbeh.tasks()]
    assert sum(grade(gold, gold) for gold in golds) == 460
    assert sum(grade(f"Thus. The answer is: {gold}.", gold) for gold in golds) == 460


def test_every_changed_answer_is_wrong(bbeh: Bbeh) -> None:
    """Shifted: the next question's gold, unless the two are equal for the matcher anyway."""
    golds = [str(task.payload["target"]) for task in bbeh.tasks()]
    assert sum(grade(f"{gold} or so", gold) for gold in golds) == 0
    different = []
    for gold in golds:
        other = next(text for text in golds if not grade(text, gold) and not grade(gold, text))
        different.append(grade(f"The answer is: {other}", gold))
    assert sum(different) == 0


def test_doing_nothing_is_right_once_as_the_official_matcher_has_it(bbeh: Bbeh) -> None:
    assert [task.index for task in bbeh.tasks() if grade("", str(task.payload["target"]))] == [353]


def test_categories_and_the_stored_split(bbeh: Bbeh) -> None:
    tasks = bbeh.tasks()
    assert set(Counter(task.family for task in tasks).values()) == {20} and len({task.family for task in tasks}) == 23
    assert frozenset(sample([task.family for task in tasks])) == train_positions()
    train = Counter(task.family for task in tasks if task.index in train_positions())
    assert set(train.values()) == {4}
