"""WebArena-Verified without a browser: its tasks, and grading of answers with records that are made here.

What a task expects is read from the installed package, never written down.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from envs.webarena_verified.adapter import WebArenaVerified, WebArenaVerifiedConfig, with_address
from envs.webarena_verified.dataset import Dataset, folder, task_type
from envs.webarena_verified.grading import grade
from envs.webarena_verified.session import answer_of
from harness.errors import ConfigError, EnvironmentCrashed, SetupError

pytestmark = [
    pytest.mark.skipif(folder() is None, reason="the extra webarena is not installed"),
    # of url_normalize, which webarena-verified uses
    pytest.mark.filterwarnings("ignore:Transitional processing is deprecated:DeprecationWarning"),
]

GITLAB = "http://127.0.0.1:8023"
URLS = {"gitlab": GITLAB}
NAVIGATE = 44  # the prototype's task: a page of the code host to be opened


def record_of(path: Path, *requests: tuple[str, str]) -> Path:
    """A HAR file with these (method, address)."""
    headers = [{"name": "accept", "value": "text/html"}]
    entries = [
        {
            "request": {"method": method, "url": url, "headers": headers, "queryString": []},
            "response": {"status": 200, "headers": [], "cookies": [], "content": {}, "redirectURL": ""},
        }
        for method, url in requests
    ]
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return path


def wanted_url(number: int) -> str:
    (row,) = Dataset("all", [number], ("gitlab",), ("navigate",)).rows
    urls = next(part["expected"]["url"] for part in row["eval"] if part["evaluator"] == "NetworkEventEvaluator")
    return with_address(urls if isinstance(urls, str) else urls[0], URLS)


def answer(status: str = "SUCCESS", kind: str = "NAVIGATE", data: Any = None) -> str:
    return json.dumps({"task_type": kind, "status": status, "retrieved_data": data, "error_details": None})


class TestTasks:
    def test_all_load_by_number_and_type(self) -> None:
        tasks = WebArenaVerified().tasks()
        assert [task.index for task in tasks] == list(range(812))
        assert Counter(task.payload["task_type"] for task in tasks) == {"mutate": 374, "retrieve": 325, "navigate": 113}
        assert len({task.family for task in tasks}) == 190
        assert tasks[44].task_id == "webarena_verified.44" and tasks[44].group == "gitlab"

    def test_the_hard_subset_and_choices(self) -> None:
        assert len(WebArenaVerified(WebArenaVerifiedConfig(subset="hard")).tasks()) == 258
        some = WebArenaVerified(WebArenaVerifiedConfig(groups=["map", "wikipedia"], task_types=["navigate"])).tasks()
        assert some and {task.group for task in some} <= {"map", "wikipedia", "map+wikipedia"}
        assert {task.payload["task_type"] for task in some} == {"navigate"}
        assert [task.index for task in WebArenaVerified(WebArenaVerifiedConfig(tasks=[44, 7])).tasks()] == [7, 44]

    def test_the_digest_follows_the_choice_and_a_task_holds_no_gold(self) -> None:
        assert WebArenaVerified().data_digest != WebArenaVerified(WebArenaVerifiedConfig(subset="hard")).data_digest
        assert set(WebArenaVerified().tasks()[44].payload) == {"sites", "start_urls", "task_type"}

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"subset": "hardest"}, "env.subset is 'hardest'. Did you mean hard?"),
            ({"groups": ["redit"]}, "env.groups is 'redit'. Did you mean reddit?"),
            ({"task_types": ["mutat"]}, "env.task_types is 'mutat'. Did you mean mutate?"),
            ({"tasks": [812]}, "env.tasks names 812. Tasks are numbered 0 to 811."),
            ({"max_steps": 0}, "env.max_steps and observation_tokens must be positive."),
        ],
    )
    def test_wrong_values_are_named(self, values: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError) as error:
            WebArenaVerifiedConfig(**values)
        assert str(error.value).startswith(message)

    def test_a_missing_package_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("envs.webarena_verified.dataset.folder", lambda: None)
        with pytest.raises(
            SetupError, match=r"^The package webarena-verified is not installed\. Mend it with: make setup-webarena\.$"
        ):
            WebArenaVerified().tasks()


class TestGrading:
    def test_the_right_page_and_the_right_answer(self, tmp_path: Path) -> None:
        visited = record_of(tmp_path / "a.har", ("GET", GITLAB), ("GET", wanted_url(NAVIGATE)))
        assert grade(NAVIGATE, answer(), visited, URLS).score == 1.0
        assert grade(NAVIGATE, json.loads(answer()), visited, URLS).score == 1.0
        assert grade(NAVIGATE, f"```json\n{answer()}\n```", visited, URLS).score == 1.0

    def test_a_wrong_status_type_or_page_is_no_success(self, tmp_path: Path) -> None:
        visited = record_of(tmp_path / "a.har", ("GET", wanted_url(NAVIGATE)))
        elsewhere = record_of(tmp_path / "b.har", ("GET", f"{GITLAB}/explore"))
        wrong = [
            grade(NAVIGATE, answer("NOT_FOUND_ERROR"), visited, URLS),
            grade(NAVIGATE, answer(kind="MUTATE"), visited, URLS),
            grade(NAVIGATE, answer(), elsewhere, URLS),
        ]
        assert [found.score for found in wrong] == [0.0, 0.0, 0.0]
        assert all(found.reasons and not found.error for found in wrong)
        assert all(found.reasons[0].startswith("AgentResponseEvaluator") for found in wrong[:2])
        assert wrong[2].reasons[0].startswith("NetworkEventEvaluator")

    @pytest.mark.parametrize(
        "nonsense",
        [
            "",
            "done",
            "{",
            "[]",
            "null",
            "5",
            '{"status": 5}',
            '{"task_type": null, "status": null}',
            "[" * 400 + "]" * 400,
            "\x00",
        ],
    )
    def test_a_nonsense_answer_is_the_agents_failure(self, nonsense: str, tmp_path: Path) -> None:
        visited = record_of(tmp_path / "a.har", ("GET", wanted_url(NAVIGATE)))
        assert grade(NAVIGATE, nonsense, visited, URLS).score == 0.0

    def test_a_missing_record_is_infrastructure(self, tmp_path: Path) -> None:
        with pytest.raises(
            EnvironmentCrashed, match=r"^The browser has left no network record of this task: it cannot be graded\.$"
        ):
            grade(NAVIGATE, answer(), tmp_path / "never.har", URLS)

    @pytest.mark.parametrize(
        "content",
        ["", '{"log": {"entries": [{"reque', "[]", '{"log": {}}', '{"log": {"entries": []}}', '{"log": {"entries": [{}]}}'],
    )
    def test_a_damaged_record_is_infrastructure(self, content: str, tmp_path: Path) -> None:
        path = tmp_path / "a.har"
        path.write_text(content)
        with pytest.raises(EnvironmentCrashed, match=r"^The network record of this task is .*: it cannot be graded\.$"):
            grade(NAVIGATE, answer(), path, URLS)

    def test_every_type_of_task_fails_on_an_empty_visit(self, tmp_path: Path) -> None:
        visited = record_of(tmp_path / "a.har", ("GET", f"{GITLAB}/nowhere"))
        rows = Dataset("all", (), ("gitlab",), ("navigate", "mutate")).rows[:20]
        assert {task_type(row) for row in rows} == {"navigate", "mutate"}
        assert [grade(row["task_id"], answer(kind="RETRIEVE"), visited, URLS).score for row in rows] == [0.0] * 20

    def test_an_unknown_task_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"^5000 is no task of WebArena-Verified\.$"):
            grade(5000, answer(), record_of(tmp_path / "a.har", ("GET", GITLAB)), URLS)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("send_msg_to_user('{\"a\": 1}')", '{"a": 1}'),
        ("send_msg_to_user(text='x')", "x"),
        ("report_infeasible('no such thing')", "no such thing"),
        ("send_msg_to_user(5)", "5"),
        ("send_msg_to_user()", ""),
        ("click('5')", ""),
        ("send_msg_to_user(open('x'))", ""),
        ("send_msg_to_user('a'", ""),
    ],
)
def test_the_answer_in_an_action(action: str, text: str) -> None:
    assert answer_of(action) == text
