"""The 812 configurations, read from the installed package, and the choice among them."""

from __future__ import annotations

from collections import Counter

import pytest

from envs.webarena import dataset
from envs.webarena.adapter import WebArena, WebArenaConfig
from harness.errors import ConfigError

pytestmark = pytest.mark.skipif(dataset.path() is None, reason="libwebarena is not installed (make setup-webarena)")


def test_the_evaluators_are_counted_as_published() -> None:
    configs = dataset.configs()
    assert Counter(map(dataset.evaluator, configs)) == {
        "string_match": 325,
        "program_html": 282,
        "url_match+program_html": 129,
        "url_match": 66,
        "string_match+url_match": 10,
    }
    judged = [config for config in configs if dataset.needs_judge(config)]
    impossible = [c for c in judged if c["eval"]["reference_answers"]["fuzzy_match"] == "N/A"]
    assert (len(configs), len(judged), len(impossible)) == (812, 118, 36)


def test_all_812_tasks_load_in_the_order_of_their_numbers() -> None:
    tasks = WebArena().tasks()
    assert [task.index for task in tasks] == list(range(812)) and tasks[27].task_id == "webarena.27"
    assert len({task.family for task in tasks}) == 190
    assert Counter(task.group for task in tasks) == {
        "shopping": 187,
        "shopping_admin": 182,
        "gitlab": 180,
        "map": 109,
        "reddit": 106,
        "gitlab+reddit": 18,
        "map+wikipedia": 17,
        "gitlab+wikipedia": 6,
        "reddit+shopping": 5,
        "map+shopping_admin": 2,
    }
    assert all(task.goal and task.key.startswith(f"{task.group}-") for task in tasks)


def test_tasks_are_chosen_by_number_site_and_judge() -> None:
    assert [task.index for task in WebArena(WebArenaConfig(tasks=[44, 3])).tasks()] == [3, 44]
    groups = {task.group for task in WebArena(WebArenaConfig(groups=["map", "wikipedia"])).tasks()}
    assert groups == {"map", "map+wikipedia"}
    assert len(WebArena(WebArenaConfig(fuzzy=False)).tasks()) == 812 - 118
    digests = {WebArena(WebArenaConfig(tasks=chosen)).data_digest for chosen in ([3], [44], [3, 44])}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"judge": "gpt"}, r"env\.judge is 'gpt'\. There are: gateway, official, none\."),
        ({"reset": "always"}, r"env\.reset is 'always'\. There are: auto, never\."),
        ({"groups": ["redit"]}, r"env\.groups names 'redit'\. Did you mean reddit"),
        ({"tasks": [812]}, r"env\.tasks names 812\. Tasks are numbered 0 to 811\."),
        ({"max_steps": 0}, "must be positive"),
        ({"step_seconds": 0.0}, "must be positive"),
        ({"slow_mo": -1}, "must not be negative"),
    ],
)
def test_bad_values_are_refused(values: dict[str, object], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        WebArenaConfig(**values)  # type: ignore[arg-type]


def test_a_judge_that_is_not_the_official_one_keeps_scores_from_being_compared() -> None:
    said = "118 tasks judged by the model with the key eval_judge (official: gpt-4-1106-preview)"
    assert WebArena(WebArenaConfig()).provenance["departures"] == [said]
    assert WebArena(WebArenaConfig(judge="official")).provenance["departures"] == []
    assert WebArena(WebArenaConfig(fuzzy=False)).provenance["departures"] == []
