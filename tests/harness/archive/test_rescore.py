"""`memarena diff` and `memarena rescore`: what still holds of a run, and a run under another grader without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.archive.differing import against_now, between, grading_keys, render, verdict
from harness.archive.replaying import replay
from harness.archive.rescoring import rescore
from harness.cli import main
from harness.errors import ConfigError, IdentityError, UserError
from harness.models.backends.scripted import ScriptedBackend
from harness.report.measure import Run
from harness.report.tables import build
from harness.store.view import RunView
from tests.support.build import played, prepared, scripted

# presses the last button of toy-0 (green) and no other: right for no task, half right for some
GREEN = scripted("replies", replies=["press green"])


@pytest.fixture(autouse=True)
def graded_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    from envs.catalogue import CATALOGUE

    monkeypatch.setitem(CATALOGUE, "gradedtoy", "tests.support.graded_toy:GradedToy")
    # these runs were not composed from the YAMLs of conf/, so that there is nothing of today's to lay over them
    monkeypatch.setattr("harness.archive.differing.bases_of", lambda choices: {})


def run(root: Path, name: str = "r", models: dict[str, Any] = GREEN, **env: Any) -> RunView:
    made = {"name": "gradedtoy", "max_steps": 3, **env}
    return RunView(played(root, env=made, models=models, method={"name": "generative"}, run={"name": name}))


class TestDiff:
    def test_the_adapters_declare_what_only_concerns_grading(self) -> None:
        assert grading_keys({"name": "officebench"}) == grading_keys({"name": "kramabench"}) == {"env.grader"}
        assert grading_keys({"name": "alfworld"}) == frozenset()
        assert grading_keys({"name": "of a package that is not here"}) == frozenset()

    def test_a_run_is_reused_where_nothing_differs(self, tmp_path: Path) -> None:
        view = run(tmp_path)
        assert against_now(view) == [] == between(view, view)
        assert render([]) == "REUSE: nothing differs."

    def test_another_grader_means_rescore(self, tmp_path: Path) -> None:
        (change,) = against_now(run(tmp_path), ["env.grader=lenient"])
        assert (change.key, change.old, change.new, change.verdict) == ("env.grader", "strict", "lenient", "RESCORE")

    @pytest.mark.parametrize(
        ("word", "key"),
        [
            ("env.max_steps=4", "env.max_steps"),
            ("run.seed=3", "run.seed"),
            ("host.max_attempts=9", "host.max_attempts"),
            ("env.n=5", "data_digest"),
            ("run.order=shuffled:1", "task_ids_sha256"),
        ],
    )
    def test_what_changes_a_score_means_rerun(self, tmp_path: Path, word: str, key: str) -> None:
        found = against_now(run(tmp_path), [word, "env.grader=lenient"])
        assert key in {change.key for change in found if change.verdict == "RERUN"}
        assert verdict(found) == "RERUN"
        assert render(found).startswith("RERUN: ") and "1 × RESCORE" in render(found)

    def test_n_of_a_code_version_means_rerun_and_x_reuse(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        view = run(tmp_path)
        monkeypatch.setattr("tests.support.toy.Toy.version", "1-B")
        assert [(change.key, change.verdict) for change in against_now(view)] == [("environment.version", "REUSE")]
        monkeypatch.setattr("methods.hosts.single.SingleAgent.version", "7-A")
        assert ("code.host", "RERUN") in [(change.key, change.verdict) for change in against_now(view)]

    def test_the_yaml_of_today_counts_except_where_the_run_deviated(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        view = run(tmp_path)
        view.manifest["labels"]["variant"] = "method.successful_topk=1"
        monkeypatch.setattr(
            "harness.archive.differing.bases_of",
            lambda choices: {
                "env": {"name": "gradedtoy", "max_steps": 5},
                "method": {"name": "generative", "successful_topk": 7},
            },
        )
        assert [change.key for change in against_now(view)] == ["env.max_steps"]

    def test_two_runs(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        first, second = run(tmp_path, "a"), run(tmp_path, "b", grader="lenient")
        assert [change.verdict for change in between(first, second)] == ["RESCORE"]
        assert main(["diff", "a", "b", "--root", str(tmp_path)]) == 0
        out = capsys.readouterr().out
        assert out.startswith("RESCORE: 1 × RESCORE\n  RESCORE  env.grader  strict → lenient  only concerns grading")
        assert main(["diff", "a", "env.grader=lenient", "--root", str(tmp_path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == "RESCORE"
        assert main(["diff", "a", "b", "c", "--root", str(tmp_path)]) == 2

    @pytest.mark.parametrize(
        ("word", "said"),
        [
            ("grader=lenient", "'grader=lenient' is no value of the configuration"),
            ("evn.grader=lenient", "Unknown key evn.grader. Did you mean env?"),
            ("env.gradr=lenient", "Unknown key env.gradr. Did you mean grader?"),
        ],
    )
    def test_a_wrong_word_is_one_error(self, tmp_path: Path, word: str, said: str) -> None:
        with pytest.raises(ConfigError) as caught:
            against_now(run(tmp_path), [word])
        assert said in str(caught.value)


class TestRescore:
    def test_the_new_grader_needs_no_model_and_changes_nothing_of_the_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        view = run(tmp_path)
        before = {path.name: path.read_bytes() for path in view.directory.iterdir()}

        def asked(*args: object) -> None:
            raise AssertionError("a model was asked")

        monkeypatch.setattr(ScriptedBackend, "complete", asked)
        found = rescore(view, ["env.grader=lenient"])
        made = RunView(tmp_path / "r-rescored-grader-lenient")
        assert found["run"] == str(made.directory) and found["grading"] == ["env.grader: strict → lenient"]
        # red, green, blue, white: green is the last of two buttons at toy-0 and toy-4
        assert [row.score for row in made.tasks()] == [0.5, 0, 0, 0, 0.5, 0]
        assert [row.feedback for row in made.tasks()][:2] == ["Half of it.", "You did not win."]
        assert found["changed"] == [{"task_id": "toy-0", "old": 0.0, "new": 0.5}, {"task_id": "toy-4", "old": 0.0, "new": 0.5}]
        assert found["differing_observations"] == 0
        assert made.manifest["identity"] != view.manifest["identity"] and made.manifest["cell"]["env"]["grader"] == "lenient"
        assert made.usage() == view.usage() and made.attempts() == view.attempts()
        after = {path.name: path.read_bytes() for path in view.directory.iterdir()}
        assert before.items() <= after.items()

    def test_it_equals_a_run_that_was_played_with_that_grader_where_no_memory_learns(self, tmp_path: Path) -> None:
        env = {"name": "gradedtoy", "max_steps": 3}
        old = RunView(played(tmp_path, env=env, models=GREEN, run={"name": "old"}))
        new = RunView(played(tmp_path, env={**env, "grader": "lenient"}, models=GREEN, run={"name": "new"}))
        rescore(old, ["env.grader=lenient"], "anew")
        anew = RunView(tmp_path / "anew")
        assert anew.tasks() == new.tasks() and anew.manifest["identity"] == new.manifest["identity"]

    def test_reports_say_where_it_comes_from(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rescore", str(run(tmp_path).directory), "env.grader=lenient"]) == 0
        out = capsys.readouterr().out
        assert (
            "6 tasks graded anew (env.grader: strict → lenient), no model asked\n  mean score 0.00 → 16.67; 2 scores changed\n    toy-0: 0 → 0.5"
            in out
        )
        said = "graded anew (env.grader: strict → lenient) from the run r: its memory learnt from the old scores"
        assert said in Run(RunView(tmp_path / "r-rescored-grader-lenient")).departures()

    def test_what_a_tool_asked_is_answered_from_the_log(self, tmp_path: Path) -> None:
        view = run(tmp_path, models=scripted("replies", replies=["press white"]))
        found = rescore(view, ["env.grader=lenient"])
        assert found["differing_observations"] == 0 and found["tasks"] == 6

    def test_a_judge_that_was_never_asked_refuses_it_and_leaves_nothing(self, tmp_path: Path) -> None:
        view = run(tmp_path)
        with pytest.raises(UserError, match=r"Grading task toy-0 needs a model: 'env\.judge' was never asked this in the run"):
            rescore(view, ["env.grader=judge"])
        assert [path.name for path in tmp_path.iterdir()] == ["r"]

    def test_a_judged_run_is_graded_by_type_without_the_judge(self, tmp_path: Path) -> None:
        found = rescore(run(tmp_path, grader="judge"), ["env.grader=strict"])
        assert (found["old_mean"], found["new_mean"]) == (1.0, 0.0)

    def test_observations_that_differ_are_counted_and_said(self, tmp_path: Path) -> None:
        view = run(tmp_path)
        log = view.directory / "events.jsonl"
        log.write_text(log.read_text().replace('"observation":"You press the green', '"observation":"You hold the green', 2))
        found = rescore(view, ["env.grader=lenient"])
        assert (found["differing_observations"], found["differing_tasks"]) == (2, 1)
        made = Run(RunView(Path(found["run"])))
        assert "2 observations on regrading not those of the run" in made.departures()

    def test_agent_failures_stay_what_they_are(self, tmp_path: Path) -> None:
        env = {"name": "gradedtoy", "max_steps": 3}
        limits = {"name": "r", "limits": {"task": {"calls": 1}}}
        view = RunView(played(tmp_path, env=env, models=GREEN, run=limits))
        rescore(view, ["env.grader=lenient"], "anew")
        assert RunView(tmp_path / "anew").tasks() == view.tasks()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "Nothing changes for "),
            (["env.grader=strict"], "Nothing changes for "),
            (["env.max_steps=9"], "More than the grading would change: env.max_steps: 3 → 9."),
            (["env.grader=lenient", "run.tasks=1"], "run.tasks=1 says how a run is played. Name only what to grade by"),
            (["env.grader=lenient", "run.seed=1"], "More than the grading would change: run.seed: 0 → 1."),
        ],
    )
    def test_only_grading_may_change(self, tmp_path: Path, words: list[str], said: str) -> None:
        with pytest.raises(UserError) as caught:
            rescore(run(tmp_path), words)
        assert said in str(caught.value)

    def test_a_world_that_cannot_be_rebuilt_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        view = run(tmp_path)
        monkeypatch.setattr("tests.support.toy.Toy.unrepeatable", "the sites are hosted by others", raising=False)
        with pytest.raises(
            UserError, match="gradedtoy cannot be graded anew from recorded actions: the sites are hosted by others"
        ):
            rescore(view, ["env.grader=lenient"])

    def test_a_log_without_the_actions_is_refused(self, tmp_path: Path) -> None:
        view = run(tmp_path)
        (view.directory / "events.jsonl").unlink()
        with pytest.raises(UserError, match="The event log holds 0 of the 3 actions of task toy-0"):
            rescore(view, ["env.grader=lenient"])

    def test_nothing_is_overwritten_or_played_on(self, tmp_path: Path) -> None:
        view = run(tmp_path)
        rescore(view, ["env.grader=lenient"], "anew")
        with pytest.raises(UserError, match="anew exists"):
            rescore(view, ["env.grader=lenient"], "anew")
        anew = RunView(tmp_path / "anew")
        with pytest.raises(UserError, match="was graded anew itself"):
            rescore(anew, ["env.grader=strict"])
        with pytest.raises(UserError, match="was graded anew, not played"):
            replay(anew.directory)
        content = json.loads((anew.directory / "manifest.json").read_text())
        env = {"name": "gradedtoy", "max_steps": 3, "grader": "lenient"}
        rest = {"method": {"name": "generative"}, "models": GREEN, "run": {"name": "anew"}}
        assert prepared(tmp_path, env=env, **rest).finished
        (anew.directory / "stream.sqlite").unlink()
        with pytest.raises(IdentityError, match="was graded anew from r; it is no stream that could go on"):
            prepared(tmp_path, env=env, **rest)
        assert content["rescored"]["from"] == "r"

    def test_a_table_shows_it_with_a_footnote(self, tmp_path: Path) -> None:
        rescore(run(tmp_path), ["env.grader=lenient"])
        definition = tmp_path / "mine.yaml"
        definition.write_text(
            "title: Mine\nhead: [Host, Method]\nreported: [sepm_table1.csv]\ncolumns:\n  - {label: Toy, select: {env: gradedtoy}}\n"
            "rows:\n  - {group: One, label: Any, select: {host: single}, reported: {host: autogen, method: none, env: alfworld}}\n"
        )
        text = build(str(definition), tmp_path).to_markdown()
        assert "graded anew (env.grader: strict → lenient) from the run r: its memory learnt from the old scores" in text


def test_the_environments_with_sites_of_others_say_that_their_world_is_not_the_same_twice() -> None:
    from harness.contracts import Unrepeatable
    from harness.registry import environments

    said = {name for name in environments().names() if isinstance(environments().load(name), Unrepeatable)}
    assert said == {"webarena", "webarena_verified"}
