"""The double's task list: WebArena's own format, and every kind of evaluator in it. No browser."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from envs.webarena_local import tasks
from envs.webarena_local.adapter import WebArenaLocal, WebArenaLocalConfig
from envs.webarena_local.scripts import action, moves
from envs.webarena_local.site.world import SITES
from harness.contracts import Call
from harness.errors import ConfigError
from harness.models.backends.scripted_roles import role_answer

WRONG = json.loads(Path(__file__).with_name("wrong.json").read_text())
CONFIGS = {config["task_id"]: config for config in tasks.configs()}


def kinds(config: dict[str, Any]) -> set[str]:
    """The kinds of grading in a configuration, in our words."""
    grading = config["eval"]
    found = {"+".join(grading["eval_types"])}
    for name, reference in (grading["reference_answers"] or {}).items():
        found.add("N/A" if reference == "N/A" else name)
    if " |OR| " in grading["reference_url"]:
        found.add("url |OR|")
    if "?" in grading["reference_url"]:
        found.add("url query")
    for target in grading["program_html"]:
        found |= {f"contents {name}" for name in target["required_contents"]}
        found.add("locator " + ("func" if target["locator"].startswith("func:") else "js" if target["locator"] else "page"))
        found.add("url " + ("func" if target["url"].startswith("func:") else "last" if target["url"] == "last" else "given"))
        found |= {"prep_actions"} & set(target)
        if any(" |OR| " in content for content in target["required_contents"].get("must_include", ())):
            found.add("contents |OR|")
    return found


def test_every_kind_of_evaluator_occurs() -> None:
    assert set().union(*(kinds(config) for config in CONFIGS.values())) == {
        "string_match", "url_match", "program_html", "url_match+program_html", "string_match+url_match",
        "exact_match", "must_include", "fuzzy_match", "N/A", "url |OR|", "url query", "prep_actions",
        "contents exact_match", "contents must_include", "contents |OR|",
        "locator js", "locator func", "locator page", "url func", "url last", "url given",
    }  # fmt: skip


def test_the_numbers_of_tasks() -> None:
    assert list(CONFIGS) == list(range(9000, 9044))
    assert Counter(site for config in CONFIGS.values() for site in config["sites"]) == {
        "shopping": 15, "shopping_admin": 7, "reddit": 7, "gitlab": 7, "wikipedia": 4, "map": 6,
    }  # fmt: skip
    families = Counter(config["intent_template_id"] for config in CONFIGS.values())
    assert sum(count >= 2 for count in families.values()) == 19 and len(families) == 23
    assert sum(" |AND| " in config["start_url"] for config in CONFIGS.values()) == 2


@pytest.mark.skipif(find_spec("webarena") is None, reason="the extra webarena is not installed")
def test_the_format_is_the_official_one() -> None:
    spec = find_spec("webarena")
    assert spec is not None and spec.submodule_search_locations
    official = json.loads((Path(next(iter(spec.submodule_search_locations))) / "test.raw.json").read_text())
    keys = {frozenset(config) for config in official}
    grading = set().union(*(config["eval"] for config in official))
    assert {frozenset(config) for config in CONFIGS.values()} <= keys
    assert set().union(*(config["eval"] for config in CONFIGS.values())) <= grading
    goals = {config["intent"] for config in official} & {config["intent"] for config in CONFIGS.values()}
    assert not goals


def test_every_task_has_a_script_and_a_wrong_one() -> None:
    assert all(moves(str(number)) for number in CONFIGS)
    assert set(WRONG) == set(map(str, CONFIGS))
    assert all(list(moves(number)) != WRONG[number] for number in WRONG)


def test_a_move_finds_its_element_by_role_and_name() -> None:
    tree = "RootWebArea 'Shop'\n\t[7] link 'Home'\n\t[12] textbox 'Search', value='x'\n"
    assert action(["click", "link", "Home"], tree) == "click('7')"
    assert action(["fill", "textbox", "Search", "it's"], tree) == "fill('12', \"it's\")"
    assert action(["tab_focus", 1], tree) == "tab_focus(1)"
    with pytest.raises(LookupError, match=r"^no link 'Cart' on this page$"):
        action(["click", "link", "Cart"], tree)


def test_addresses_are_filled_in_for_every_site() -> None:
    urls = {site: f"http://{site}" for site in SITES}
    filled = tasks.with_addresses(CONFIGS[9038], urls)
    assert filled["start_url"] == "http://wikipedia |AND| http://map"
    left = json.dumps([tasks.with_addresses(config, urls) for config in CONFIGS.values()])
    assert re.findall(r"__[A-Z_]+__", left) == []


def test_a_task_of_the_contract() -> None:
    task = tasks.task(CONFIGS[9001], 1)
    assert (task.task_id, task.index, task.family, task.group) == ("webarena_local.9001", 1, "template-1", "shopping")
    assert task.goal == "What does the Copper Kettle cost in the shop?"
    assert task.key == "shopping-What does the Copper Kettle cost in the shop?"


def test_the_package_holds_its_pages() -> None:
    assert resources.files("envs.webarena_local.site").joinpath("templates/base.html").is_file()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tasks": [44]}, "env.tasks names 44. Tasks are numbered 9000 to 9043."),
        ({"groups": ["shoping"]}, "env.groups names 'shoping'. Did you mean shopping or shopping_admin?"),
        ({"judge": "me"}, "env.judge is 'me'. There are: gateway, official, none."),
        ({"max_steps": 0}, "env.max_steps and observation_tokens must be positive."),
        ({"step_seconds": 0.0}, "env.reset_seconds and step_seconds must be positive."),
        ({"grader_pause": -1.0}, "env.grader_pause, observation_delay and slow_mo must not be negative."),
    ],
)
def test_wrong_values_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        WebArenaLocalConfig(**values)
    assert str(error.value) == message


def test_choices_keep_their_index() -> None:
    def numbers(**values: Any) -> list[int]:
        return [task.index for task in WebArenaLocal(WebArenaLocalConfig(**values)).tasks()]

    assert numbers(tasks=[9043, 9000]) == [0, 43]
    assert numbers(groups=["wikipedia", "map"], fuzzy=False) == [40, 41, 42, 43]
    assert len(numbers()) == 44 and len(numbers(fuzzy=False)) == 36
    problems = WebArenaLocal(WebArenaLocalConfig(judge="none")).check()
    assert "8 of the chosen tasks are graded by a model, and env.judge is none" in [problem.what for problem in problems]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("reference answer: The Zoning Board\nstudent answer: it was the zoning board.", "correct"),
        ("reference answer: the zoning board\nstudent answer: a board", "incorrect"),
        ("actual unachievable reason: No phone.\nreported unachievable reason: there is no phone", "same"),
        ("actual unachievable reason: No phone.\nreported unachievable reason: n/a", "different"),
        ("Correct answer: 5\nGiven answer: 5", "Score: 1"),
    ],
)
def test_what_a_scripted_judge_says(lines: str, said: str) -> None:
    call = Call("env.judge", ({"role": "user", "content": f"Grade this.\n{lines}\nConclude."},), "eval_judge", "judge")
    assert role_answer(call, "0" * 8) == said
