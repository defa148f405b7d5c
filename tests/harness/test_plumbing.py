"""The memory's text reaches the agents: shown by a scripted reader that acts well only if it finds one in its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Guidance, Member, Task
from harness.store.view import RunView
from methods.generative import Generative
from methods.metagpt import MetaGPT
from tests.support.build import played, scripted


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Generated games with repeated goals: 3 families × 4 games, two of each goal."""
    families = ["pick_and_place_simple", "look_at_obj_in_light", "pick_clean_then_place_in_recep"]
    cache = str(tmp_path_factory.mktemp("games"))
    return {
        "name": "alfworld",
        "source": "generated",
        "cache_dir": cache,
        "families": families,
        "games_per_family": 4,
        "repeat": 2,
    }


def scores(root: Path, games: dict[str, Any], method: str, name: str) -> list[float]:
    directory = played(
        root,
        env=games,
        host={"name": "autogen"},
        method={"name": method},
        models=scripted("reader", luck=0.4),
        run={"name": name},
    )
    return [row.score for row in RunView(directory).tasks()]


class Cut:
    """A mix-in: the memory works as ever, but nothing of it is put into the prompt."""

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        super().on_task_start(task, facts, team)  # type: ignore[misc]
        return Guidance()


@pytest.mark.slow
def test_the_reader_does_better_with_a_memory_and_no_better_when_its_text_is_cut(
    tmp_path: Path, games: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = scores(tmp_path, games, "none", "none")
    for method, kind in (("metagpt", MetaGPT), ("generative", Generative)):
        assert sum(scores(tmp_path, games, method, method)) > sum(baseline) > 0
        with monkeypatch.context() as patch:
            patch.setattr(f"methods.{method}.{kind.__name__}", type(kind.__name__, (Cut, kind), {}))
            assert scores(tmp_path, games, method, f"{method}-cut") == baseline
