"""`memarena plan` and `run.confirm_above`: what a sweep costs, where each figure comes from, and that nothing is made up."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cell import Cell
from harness.cli import main
from harness.errors import ConfigError, SetupError, UserError
from harness.models.backends.scripted import ScriptedBackend
from harness.plan.consent import require_consent
from harness.plan.estimate import Line, plan_cells
from harness.plan.text import render
from harness.store.view import RunView
from tests.support.build import played, prepared, scripted

NOTHING_TELLS = "unknown: no run and no reported number tells"


def priced(model: str = "gpt-5-mini", name: str = "scripted") -> dict[str, Any]:
    """A test double that costs what `model` costs: 0.25 dollars a million in, 2 out."""
    models = scripted()
    models["name"], models["endpoints"]["main"]["model"] = name, model
    return models


def cell(root: Path, **groups: Any) -> Cell:
    return prepared(root, **{"models": priced(), **groups}).cell


def line(root: Path, **groups: Any) -> Line:
    return plan_cells([cell(root, **groups)]).lines[0]


class TestMeasured:
    def test_a_pilot_tells_what_its_own_rest_costs(self, tmp_path: Path) -> None:
        view = RunView(played(tmp_path, models=priced(), run={"tasks": 2}))
        (used,) = view.usage()
        found = line(tmp_path)
        assert (found.wanted, found.tasks) == (6, 4)
        assert found.source == "measured on 2 tasks of this cell"
        assert found.notes == ("2 of 6 tasks have a result",)
        assert found.calls == pytest.approx(2 * used.calls) and found.tokens == pytest.approx(2 * used.total_tokens)
        assert used.cost_usd is not None and found.usd is not None
        assert found.usd == pytest.approx((2 * used.cost_usd, 2 * used.cost_usd), abs=1e-6)
        seconds = view.seconds()
        assert seconds is not None and found.hours == pytest.approx(2 * seconds / 3600)

    def test_a_finished_cell_costs_nothing_more(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced())
        found = line(tmp_path)
        assert (found.tasks, found.calls, found.tokens, found.usd, found.hours) == (0, 0, 0, (0.0, 0.0), 0)
        assert found.source == "finished"

    def test_another_seed_is_measured_by_the_same_host_method_and_models(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced())
        found = line(tmp_path, run={"seed": 5})
        assert found.tasks == 6 and found.source == "measured on 6 tasks of toy-single-none-scripted-s0"
        assert found.hours is not None

    def test_a_run_with_other_settings_counts_only_where_there_is_no_better_and_is_named(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced(), run={"name": "longer", "limits": {"task": {"calls": 99}}})
        assert line(tmp_path, run={"seed": 5}).source == "measured on 6 tasks of longer, whose settings are others"
        played(tmp_path, models=priced(), run={"name": "same"})
        assert line(tmp_path, run={"seed": 5}).source == "measured on 6 tasks of same"

    def test_another_model_tells_the_tokens_but_not_the_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ScriptedBackend, "scripted", False)  # as if a model had answered
        played(tmp_path, models=priced(name="other"))
        found = line(tmp_path, models=priced("gpt-5.6-terra"))
        assert found.source == "measured on 6 tasks with other" and found.hours is None
        assert found.usd is not None and found.usd[0] > 0

    def test_a_scripts_episodes_say_nothing_of_a_model(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced(name="other"))
        assert line(tmp_path).source == NOTHING_TELLS

    def test_another_method_is_named_and_said_not_to_be_scaled(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced())
        assert line(tmp_path, method={"name": "metagpt"}).source == "measured on 6 tasks of single/none, not scaled"

    def test_or_scaled_by_what_a_paper_reports_for_both(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        from harness.plan.rates import Sources
        from harness.report.reported import load

        number = load("sepm_tokens.csv")[0]
        papers = [
            replace(number, host="single", method="none", env="toy", value="4.4"),
            replace(number, host="single", method="metagpt", env="toy", value="6.6"),
        ]
        monkeypatch.setattr(Sources, "_numbers", papers)
        (used,) = RunView(played(tmp_path, models=priced())).usage()
        found = line(tmp_path, method={"name": "metagpt"})
        assert found.source == "measured on 6 tasks of single/none, scaled by reported tokens (6.6/4.4)"
        assert found.tokens == pytest.approx(1.5 * used.total_tokens)

    def test_replays_and_regraded_runs_are_no_source(self, tmp_path: Path) -> None:
        recording = str(tmp_path / "r.sqlite")
        played(tmp_path / "a", models=priced(), run={"replay": {"mode": "record", "path": recording}})
        played(tmp_path / "b", models=priced(), run={"replay": {"mode": "replay", "path": recording}})
        assert plan_cells([cell(tmp_path / "b", run={"seed": 1})]).lines[0].source == NOTHING_TELLS
        assert plan_cells([cell(tmp_path / "b", run={"seed": 1})], [tmp_path / "a"]).lines[0].source.startswith("measured on 6")


class TestDollars:
    def test_an_unknown_price_is_unknown_and_named(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced("somebody/else"))
        found = plan_cells([cell(tmp_path, models=priced("somebody/else"), run={"seed": 1})])
        assert found.lines[0].usd is None and found.lines[0].tokens is not None
        assert found.lines[0].notes == ("no price is known for somebody/else",)
        assert found.usd is None and found.unknown("usd") == 1
        assert "Not known for 1 cell: cost." in render(found)

    def test_what_is_known_is_summed_and_the_rest_counted(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced())
        found = plan_cells(
            [cell(tmp_path, run={"seed": 1}), cell(tmp_path, run={"seed": 2}, host={"name": "dylan"}, env={"n": 5})]
        )
        one = plan_cells([cell(tmp_path, run={"seed": 1})])
        assert found.lines[1].source == "measured on 6 tasks of single/none, not scaled"
        assert found.total("tasks") == 11 and found.total("tokens") == pytest.approx((one.total("tokens") or 0) * 11 / 6)

    def test_a_script_costs_nothing_even_where_nothing_is_known(self, tmp_path: Path) -> None:
        found = line(tmp_path, models=scripted())
        assert (found.tokens, found.usd, found.source) == (None, (0.0, 0.0), NOTHING_TELLS)

    def test_a_limit_of_the_stream_bounds_it(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced())
        found = line(tmp_path, run={"seed": 1, "limits": {"stream": {"usd": 0.0001}}})
        assert found.usd == (0.0001, 0.0001)
        assert found.notes == ("run.limits.stream.usd=0.0001 stops it before its end",)

    def test_a_directory_of_another_cell_is_said(self, tmp_path: Path) -> None:
        played(tmp_path, models=priced(), run={"name": "x"})
        made = cell(tmp_path, run={"name": "y", "seed": 3})
        made.config.run.name = "x"
        (found,) = plan_cells([made]).lines
        assert found.tasks == 6 and found.notes == ("x holds another cell and would be refused (memarena diff)",)


class TestTheCommand:
    def test_table_1_is_thirty_cells_and_says_what_is_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HARNESS_DATA", str(tmp_path / "nothing"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert main(["plan", "experiment=table1", f"run.root={tmp_path}", "--json", "--root", str(tmp_path)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert len(found["cells"]) == 30 and found["prices"] == "2026-11-01"
        by_name = {one["cell"]: one for one in found["cells"]}
        plain = by_name["alfworld_official-autogen-none-gpt-5-mini-s0"]
        assert plain["source"] == "reported by SEPM (section C.5) for gpt-5-mini: 4.4 M tokens over 134 tasks"
        assert (plain["tasks"], plain["calls"], plain["hours"]) == (134, None, None)
        assert plain["tokens"] == pytest.approx(4.4e6) and plain["usd"] == pytest.approx([1.1, 8.8])
        assert any("134 tasks as reported" in note for note in plain["notes"])
        assert by_name["alfworld_official-dylan-none-gpt-5-mini-s0"]["source"] == NOTHING_TELLS
        assert found["total"]["unknown"] == {"tasks": 0, "calls": 30, "tokens": 25, "hours": 30, "usd": 25}
        assert not list(tmp_path.glob("*s0"))  # nothing was begun

    def test_a_wrong_word_is_one_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plan", "experiment=tabel1"]) == 2
        assert "Did you mean table1" in capsys.readouterr().err

    def test_more_tasks_than_there_are(self, tmp_path: Path) -> None:
        made = cell(tmp_path)
        made.config.run.tasks = 99
        del made.__dict__["tasks"]
        with pytest.raises(ConfigError, match="run.tasks is 99"):
            plan_cells([made])


class TestConsent:
    def dear(self, root: Path, **run: Any) -> list[Cell]:
        """Six tasks that cost about 0.003 dollars."""
        if not root.exists():
            played(root, models=priced(), run={"name": "before"})
        return [cell(root, run={"seed": 1, **run})]

    def answer(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        stdin = io.StringIO(text)
        monkeypatch.setattr(stdin, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", stdin)

    def test_nobody_to_ask_is_one_error_that_says_how(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        with pytest.raises(UserError) as caught:
            require_consent(self.dear(tmp_path / "r", confirm_above=0.0001))
        assert str(caught.value).startswith("This may cost $0.00")
        assert "more than run.confirm_above ($0.0001), and nobody can be asked here." in str(caught.value)
        assert "--yes" in str(caught.value) and "run.confirm_above=null" in str(caught.value)

    def test_yes_goes_on_and_anything_else_does_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cells = self.dear(tmp_path / "r", confirm_above=0.0001)
        self.answer(monkeypatch, "y\n")
        require_consent(cells)
        err = capsys.readouterr().err
        assert "Go on? [y/N]" in err and "measured on 6 tasks of before" in err
        for no in ("n\n", "\n", ""):
            self.answer(monkeypatch, no)
            with pytest.raises(UserError, match="Nothing was begun, nothing was spent"):
                require_consent(cells)

    @pytest.mark.parametrize("run", [{"confirm_above": None}, {"confirm_above": 10.0}])
    def test_nobody_is_asked_below_the_bound_or_without_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        require_consent(self.dear(tmp_path / "r", **run))

    def test_the_option_answers(self, tmp_path: Path) -> None:
        require_consent(self.dear(tmp_path / "r", confirm_above=0.0), yes=True)

    def test_an_unknown_cost_is_said(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        require_consent([cell(tmp_path, run={"confirm_above": 0.0})])
        assert capsys.readouterr().err == "The cost of 1 cell is not known (`memarena plan` says why).\n"

    def test_run_asks_before_anything_is_begun(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("alfworld")
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        words = ["models=gpt-5-mini", "env.source=generated", "run.confirm_above=0.5", f"run.root={tmp_path}"]
        assert main(["run", *words]) == 2
        # 24 tasks at what the paper reports for 134
        assert "This may cost $0.1970 to $1.58, more than run.confirm_above ($0.5000)" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_a_bound_below_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"run\.confirm_above is -1\.0"):
            cell(tmp_path, run={"confirm_above": -1.0})


def test_missing_data_without_a_reported_count_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cell(tmp_path)

    def gone(self: object) -> Any:
        raise SetupError("The panel is not here.", "make data-toy")

    monkeypatch.setattr("tests.support.toy.Toy.tasks", gone)
    for name in ("tasks", "order", "description"):
        made.__dict__.pop(name, None)
    (found,) = plan_cells([made]).lines
    assert (found.wanted, found.tasks, found.tokens, found.usd) == (None, None, None, None)
    assert found.notes == ("its data is not here (The panel is not here)",)
