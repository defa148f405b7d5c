"""MiniWoB++: the list of kinds, sessions on the real pages, scripted solutions, whole streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envs import cli
from envs.miniwob.adapter import MiniWob, MiniWobConfig, family, kinds, task_class
from envs.miniwob.scripts import SCRIPTS
from harness.errors import ConfigError
from harness.seeds import case_seed
from harness.store.view import RunView
from tests.support.build import played, scripted

# cheap kinds for streams: a click, a text, a choice
FEW = ["click-test-2", "enter-text", "click-option"]


class TestTasks:
    def test_the_kinds_are_those_of_the_installed_package_in_its_order(self) -> None:
        from importlib import metadata

        source = Path(str(metadata.distribution("browsergym-miniwob").locate_file("browsergym/miniwob/__init__.py"))).read_text()
        listed = source.split("ALL_MINIWOB_TASKS = [")[1].split("]")[0]
        assert [name.strip(" \n,").removeprefix("all.") for name in listed.split("\n") if name.strip()] == [
            task_class(kind) for kind in kinds()
        ]
        assert len(kinds()) == len(set(kinds())) == 125

    def test_every_task_has_a_place_of_its_own_whatever_is_chosen(self) -> None:
        few = MiniWob(MiniWobConfig(tasks=["enter-text", "click-test"], repeat=2)).tasks()
        assert [(task.task_id, task.index) for task in few] == [
            ("click-test", 38),
            ("enter-text", 70),
            ("click-test.2", 163),
            ("enter-text.2", 195),
        ]
        every = MiniWob().tasks()
        assert [task.index for task in every] == list(range(125)) and every[38] == few[0]

    def test_the_provenance_says_how_much_of_the_benchmark_is_played(self) -> None:
        assert MiniWob(MiniWobConfig(repeat=2)).provenance["source"] == "official"
        few = MiniWob(MiniWobConfig(tasks=FEW, repeat=2)).provenance
        assert (few["source"], few["tasks"]) == ("official, 3 of 125 kinds", 6)
        assert few["packages"]["playwright"] and few["packages"]["browser"] != "unknown"

    def test_variants_of_a_kind_are_one_family(self) -> None:
        assert family("email-inbox-forward-nl-turk") == "email-inbox-forward"
        assert family("click-checkboxes-large") == family("click-checkboxes") == "click-checkboxes"
        assert family("click-tab-2-hard") == "click-tab"

    @pytest.mark.parametrize(
        ("values", "error"),
        [
            ({"tasks": ["click-tset"]}, "env.tasks names 'click-tset'. Did you mean click-test or click-test-2?"),
            ({"max_steps": 0}, "env.max_steps, repeat and observation_tokens must be positive."),
            ({"observation_tokens": 0}, "env.max_steps, repeat and observation_tokens must be positive."),
            ({"step_seconds": 0}, "env.reset_seconds and step_seconds must be positive"),
        ],
    )
    def test_bad_values_are_refused(self, values: dict[str, Any], error: str) -> None:
        with pytest.raises(ConfigError, match=error.replace(".", r"\.").replace("?", r"\?")):
            MiniWobConfig(**values)

    def test_what_is_missing_is_named_with_the_command_that_mends_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
        monkeypatch.setenv("MINIWOB_URL", f"file://{tmp_path}/pages/")
        problems = MiniWob().check()
        assert [problem.fix for problem in problems] == ["make setup-webarena"] * 2
        assert "There is no browser at" in problems[0].what and problems[1].what == "MiniWoB++'s pages are not there."


class TestSession:
    def test_the_goal_stands_before_the_page_and_no_folder_of_this_machine_is_shown(self) -> None:
        made = MiniWob(MiniWobConfig(tasks=["click-test-2"]))
        with made.open(made.tasks()[0], 1) as session:
            lines = session.observation.splitlines()
            assert lines[0] == "Your task: Click button ONE." and lines[1] == "URL: miniwob/click-test-2.html"
            assert "file:" not in session.observation
            assert "click(bid: str" in session.instructions and session.facts == {"kind=click-test-2", "family=click-test"}

    def test_the_seed_decides_what_the_page_asks(self) -> None:
        made = MiniWob(MiniWobConfig(tasks=["enter-text"]))
        first: list[str] = []
        for seed in (1, 1, 2, 2**40):
            with made.open(made.tasks()[0], seed) as session:
                first.append(session.observation)
        assert first[0] == first[1] != first[2] and first[3] not in first[:3]

    def test_a_wrong_click_ends_the_task_without_success(self) -> None:
        made = MiniWob(MiniWobConfig(tasks=["click-test-2"]))
        with made.open(made.tasks()[0], 1) as session:
            result = session.step("click('14')")
            assert result.done and result.reward == 0.0
            outcome = session.outcome()
            assert (outcome.score, outcome.success, outcome.status) == (0.0, False, "failed")
            with pytest.raises(RuntimeError, match="The episode is over"):
                session.step("noop(1)")

    def test_a_task_without_an_end_is_unresolved_and_refused_actions_are_counted(self) -> None:
        made = MiniWob(MiniWobConfig(tasks=["click-test-2"]))
        with made.open(made.tasks()[0], 1) as session:
            result = session.step("fly('to', 'the moon')")
            assert result.reward == -1.0 and result.error == "NameError: Invalid action type 'fly'."
            assert "Error of the last action: NameError" in result.observation
            outcome = session.outcome()
        assert (outcome.status, outcome.metrics["refused_actions"], outcome.metrics["steps"]) == ("unresolved", 1, 1)

    def test_a_page_beyond_the_budget_is_cut_and_the_cut_is_counted(self) -> None:
        made = MiniWob(MiniWobConfig(tasks=["click-checkboxes-large"], observation_tokens=50))
        with made.open(made.tasks()[0], 1) as session:
            assert session.observation.splitlines()[-1].startswith("[cut: ")
            assert session.outcome().metrics["cut_observations"] == 1

    def test_a_script_waits_for_its_own_action_and_gives_up_when_it_is_lost(self) -> None:
        made = MiniWob(MiniWobConfig(tasks=["enter-text"]))
        with made.open(made.tasks()[0], 1) as session:
            first = session.oracle_action()
            assert first is not None and first.startswith("fill(") and session.oracle_action() == first
            session.step("noop(1)")
            assert session.oracle_action() == first
            session.step(first)
            assert str(session.oracle_action()).startswith("click(")


@pytest.mark.slow
def test_the_scripts_solve_a_kind_of_each_family(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = list({family(kind): kind for kind, _ in reversed(SCRIPTS)}.values())
    assert (len(SCRIPTS), len(chosen)) == (36, 25)
    assert cli.main(MiniWob, ["oracle", "--set", f"tasks={json.dumps(chosen)}", "--seed", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["solved"], found["score"]) == (25, 25, 1.0)


def test_doing_nothing_solves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["noop", "--set", f"tasks={json.dumps(FEW)}", "--set", "max_steps=1", "--set", "observation_delay=0", "--json"]
    assert cli.main(MiniWob, arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["solved"], found["score"]) == (3, 0, 0.0)


def test_a_kind_without_a_script_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(MiniWob, ["oracle", "--set", "tasks=[click-shape]"]) == 2
    assert capsys.readouterr().err.startswith("error: There is no oracle for task 32 (click-shape)")


def _steps(directory: Path) -> list[tuple[Any, ...]]:
    events = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
    return [(e["action"], e["observation"], e["reward"], e["done"]) for e in events if e.get("kind", e.get("event")) == "step"]


@pytest.mark.slow
@pytest.mark.parametrize("host", ["autogen", "dylan"])
def test_a_recorded_stream_is_replayed_to_the_same_steps_and_scores(tmp_path: Path, host: str) -> None:
    env = {"name": "miniwob", "tasks": FEW}
    recording = str(tmp_path / "recordings.sqlite")
    found = []
    for mode in ("record", "replay"):
        run = {"name": mode, "replay": {"mode": mode, "path": recording}}
        directory = played(tmp_path / "runs", env=env, host={"name": host}, method={"name": "gmemory"}, run=run)
        rows = [(r.task_id, r.score, r.steps, r.seed, r.kind) for r in RunView(directory).tasks()]
        found.append((rows, _steps(directory)))
    rows, steps = found[0]
    assert rows == [
        ("click-option", 1.0, rows[0][2], case_seed(0, 27), "scored"),
        ("click-test-2", 1.0, 1, case_seed(0, 39), "scored"),
        ("enter-text", 1.0, 2, case_seed(0, 70), "scored"),
    ]
    assert found[0] == found[1] and len(steps) >= 5


def test_agents_that_write_nonsense_fail_and_the_stream_goes_on(tmp_path: Path) -> None:
    models = scripted("replies", replies=["I do not know what to do"])
    env = {"name": "miniwob", "tasks": FEW, "max_steps": 2}
    view = RunView(played(tmp_path / "runs", env=env, models=models))
    assert [(row.kind, row.score, row.steps, row.metrics["refused_actions"]) for row in view.tasks()] == [
        ("scored", 0.0, 2, 2)
    ] * 3


@pytest.mark.slow
@pytest.mark.parametrize(("deaths", "scores"), [(1, [1.0, 1.0, 1.0]), (2, [1.0, 1.0])])
def test_a_stream_outlives_its_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int, scores: list[float]) -> None:
    """Killed in the middle of its first task, once (the task is retried) or in the retry too (it is set aside)."""
    import os
    import signal

    from envs.browser.client import Browser
    from envs.browser.plan import Page
    from harness.run import play
    from tests.support.build import prepared

    step, killed = Browser.step, list[int]()

    def deadly(browser: Browser, action: str) -> Page:
        if len(killed) < deaths and browser.process_id is not None:
            killed.append(browser.process_id)
            os.kill(browser.process_id, signal.SIGKILL)
        return step(browser, action)

    monkeypatch.setattr(Browser, "step", deadly)
    ready = prepared(tmp_path, env={"name": "miniwob", "tasks": FEW}, run={"infra_retries": 1})
    assert play(ready) == (0 if deaths == 1 else 1)
    view = RunView(ready.directory)
    assert [row.score for row in view.tasks()] == scores and len(set(killed)) == deaths
    assert len(view.infra_failures()) == (0 if deaths == 1 else 1)
