"""Official tasks by the adapter and BrowserGym's own task class in a real browser. The sites are those of webarena_local, whose
front pages and logins are like the real ones: what the tasks ask for is not there, so that only a wrong end can be played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from envs.webarena.adapter import WebArena, WebArenaConfig
from envs.webarena.sites import SiteAddresses
from envs.webarena_local.sites import Sites
from harness.contracts import Call, Reply, Usage
from harness.errors import EnvironmentCrashed, SetupError
from tests.support.browsers import use_installed_browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def double() -> Iterator[Sites]:
    sites = Sites()
    yield sites
    sites.close()


@pytest.fixture
def made(double: Sites, monkeypatch: pytest.MonkeyPatch) -> Any:
    use_installed_browser(monkeypatch, webarena=True)

    def make(*tasks: int, **values: Any) -> WebArena:
        addresses = SiteAddresses(**double.urls())
        return WebArena(WebArenaConfig(tasks=list(tasks), sites=addresses, reset="never", observation_delay=0.05, **values))

    return make


class Judge:
    def __init__(self, text: str) -> None:
        self.text, self.calls = text, list[Call]()

    def complete(self, call: Call) -> Reply:
        self.calls.append(call)
        return Reply(self.text, Usage(), "judge")


def test_a_task_begins_logged_in_and_a_wrong_answer_ends_it(made: Any) -> None:
    environment = made(0)
    assert environment.check() == [] and environment.probe() == []
    task = environment.tasks()[0]
    with environment.open(task, 0) as session:
        assert session.observation.startswith(f"Your task: {task.goal}\nURL: http://127.0.0.1:")
        assert "password" not in session.observation.lower()
        assert session.facts == {f"family={task.family}", "site=shopping_admin"}
        result = session.step("send_msg_to_user('nothing')")
        assert result.done and session.outcome().score == 0.0 and session.outcome().metrics["judge_calls"] == 0


def test_the_fuzzy_evaluator_asks_the_runs_own_judge(made: Any) -> None:
    """Two attempts at a judged task; the verdict is the judge's."""
    from envs.webarena import dataset

    number = next(
        c["task_id"]
        for c in dataset.configs()
        if dataset.evaluator(c) == "string_match"
        and list(c["eval"]["reference_answers"]) == ["fuzzy_match"]
        and c["sites"] == ["map"]
    )
    environment = made(number)
    for verdict, score in (("Correct", 1.0), ("partially correct", 0.0)):
        with environment.open(environment.tasks()[0], 0) as session:
            judge = Judge(verdict)
            session.use_models(judge)
            assert not session.step("noop(1)").done and judge.calls == []
            assert session.step("send_msg_to_user('by the river')").done
            assert session.outcome().score == score and judge.calls
            assert "by the river" in judge.calls[0].messages[-1]["content"]
    with pytest.raises(SetupError, match="graded by a model"), made(number, judge="none").open(environment.tasks()[0], 0):
        pass


def test_leaving_the_sites_ends_a_task(made: Any) -> None:
    environment = made(44)
    with environment.open(environment.tasks()[0], 0) as session:
        assert session.step("goto('about:blank')").done is False  # no host at all is allowed
        assert session.step("goto('http://localhost:1/')").done
        assert session.outcome().feedback.endswith("The benchmark ended the task: Unauthorized url, terminating task.")


@pytest.mark.parametrize(("kind", "error"), [("error", "could not be started|is not well"), ("login", "login at gitlab")])
def test_a_site_or_login_that_fails_is_infrastructure(made: Any, double: Sites, kind: str, error: str) -> None:
    environment = made(44)
    double.plant("gitlab", kind)
    try:
        with pytest.raises(EnvironmentCrashed, match=error), environment.open(environment.tasks()[0], 0):
            pass
        if kind == "login":
            assert error in environment.probe()[0].what
    finally:
        double.plant("gitlab", None)
    with environment.open(environment.tasks()[0], 0) as session:
        assert not session.step("noop(1)").done


def test_table_1_has_the_column_and_says_how_many_of_the_812_were_played(
    double: Sites, made: Any, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    made(44)
    from harness.cli import main
    from tests.support.build import played, scripted

    env = {
        "name": "webarena",
        "sites": double.urls(),
        "reset": "never",
        "observation_delay": 0.05,
    }
    models = scripted("replies", replies=["send_msg_to_user('nothing')"])
    run = {"tasks": 2, "name": "webarena-autogen"}
    played(tmp_path, env=env, host={"name": "autogen"}, models=models, run=run)
    capsys.readouterr()
    assert main(["table", "table1", "--env", "webarena", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("| AutoGen") and "No added memory" in line)
    assert "WebArena reported" in out and "n=2" in row and "2 of 812 tasks" in out and "scripted" in out, out
