"""Tables over fabricated runs: measured beside reported, never in its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_runs import LEDGER, manifest, play
from report_tables import SMALL, Write, cells_of, rows_of

from harness.errors import ConfigError, UserError
from harness.report.definition import names
from harness.report.tables import build
from harness.store.database import Store


# --- measured numbers -------------------------------------------------------------------------------------------------
def test_a_full_official_run_is_not_marked(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0] * 80 + [0.0] * 54)
    found = cells_of(build("table1", tmp_path / "runs", env="alfworld"))
    assert found["AutoGen No added memory", "ALFWorld measured"] == "59.70 [51.24, 67.62] n=134 (a)"
    assert found["AutoGen No added memory", "ALFWorld tokens measured"] == "16,080"


def test_a_memory_that_no_row_asks_for_does_not_vanish_silently(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0] * 3)
    said = "There are runs that fit no row here (my_memory); docs/reports.md tells how to make a table of your own."
    assert said not in build("table1", tmp_path / "runs", env="alfworld").notes
    write_run("mine", [1.0] * 3, labels__method="my_memory")
    assert said in build("table1", tmp_path / "runs", env="alfworld").notes
    assert said not in build("table1", tmp_path / "runs", env="webarena").notes


@pytest.mark.parametrize("name", ["table1", "tokens"])
def test_official_data_that_is_not_complete_is_marked(name: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0] * 37)
    table = build(name, tmp_path / "runs", env="alfworld")
    assert all("≠ (a)" in cell for cell, head in zip(table.lines[0], table.heads, strict=True) if head.label == "measured")
    assert "all 37 tasks; the paper has 134 tasks" in table.notes[-1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"environment__provenance": {"source": "generated"}}, "generated tasks instead of the official data"),
        ({"environment__provenance": {"source": "official, 93 of 300 tasks"}}, "93 of 300 tasks"),
        ({"environment__provenance": {"source": "official", "departures": ["another judge"]}}, "another judge"),
        ({"environment__max_steps": 10}, "at most 10 steps (official: 30)"),
        ({"tasks__total": 134}, "2 of 134 tasks"),
        ({}, "the paper has 134 tasks"),
        ({"models__constrain_actions": True}, "answers held to the admissible actions"),
        ({"models__scripted": True}, "scripted answers, no model"),
        ({"tasks__order": "shuffled:3"}, "task order shuffled:3"),
    ],
)
def test_a_run_off_the_papers_protocol_is_marked_with_the_reason(
    small: str, write_run: Write, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    write_run("none", [1.0, 0.0], **change)
    table = build(small, tmp_path / "runs")
    assert "≠ (a)" in table.lines[0][4]
    assert reason in table.notes[-1]
    assert any(note.startswith("≠ not comparable") for note in table.notes)


def test_a_scripted_run_is_labelled_in_cell_and_line(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0], models__scripted=True)
    line = build(small, tmp_path / "runs").lines[0]
    assert line[2] == "SmolLM2-135M-Instruct (embedded), seed 0 (scripted)"
    assert " scripted " in line[4]


def test_every_run_has_a_line_of_its_own(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("a", [1.0, 1.0])
    write_run("b", [0.0, 0.0], seed=1)
    write_run("c", [1.0, 0.0], labels__variant="env.max_steps=10")
    write_run("d", [1.0, 0.0], labels__models="big", labels__models_label="Big model")
    write_run("e", [0.0, 0.0])
    table = build(small, tmp_path / "runs")
    held = [line for line in table.lines if line[2] != "–"]
    assert [(line[1], line[2], line[4].split()[0]) for line in held] == [
        ("No added memory", "Big model, seed 0", "50.00"),
        ("", "SmolLM2-135M-Instruct (embedded), seed 0", "100.00"),
        ("", "SmolLM2-135M-Instruct (embedded), seed 0", "0.00"),
        ("", "SmolLM2-135M-Instruct (embedded), seed 0 [env.max_steps=10]", "50.00"),
        ("", "SmolLM2-135M-Instruct (embedded), seed 1", "0.00"),
    ]
    assert [line[3] for line in held] == ["59.70", "", "", "", ""]
    assert sorted(row["run"] for row in rows_of(table) if row["run"]) == ["a", "b", "c", "d", "e"]


def test_infrastructure_failures_and_unfinished_runs_are_shown_and_leave_n(small: str, tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "broken"
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps(manifest("broken", 3)))
    with Store(directory) as store:
        play(store, 0, 1.0, [LEDGER])
        play(store, 1, 0.0, [LEDGER], end="infra_failure")
    line = build(small, tmp_path / "runs").lines[0]
    assert line[4] == "100.00 [20.65, 100.00] n=1 +1 infra incomplete ≠ (a)"


def test_a_run_without_a_result_measures_nothing_but_is_named(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("young", [], planned=3)
    table = build(small, tmp_path / "runs")
    assert table.lines[0][4] == "– incomplete ≠ (a)"
    assert "incomplete: 0 of 3 tasks have a result" in table.notes[-1]


def test_the_change_is_taken_on_common_tasks_and_never_to_a_reported_number(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("sepm", [1.0, 1.0], labels__method="sepm")
    assert all(head.label != "measured Δ" for head in build(small, tmp_path / "runs").heads)
    write_run("none", [1.0, 0.0, 0.0, 0.0])
    sepm = rows_of(build(small, tmp_path / "runs"))[1]
    assert (sepm["change"], sepm["pairs"]) == ("50.0", "2")


def test_runs_that_differ_in_more_than_the_method_are_not_compared(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0], cell__env={"max_steps": 30})
    write_run("sepm", [1.0, 1.0], labels__method="sepm", cell__env={"max_steps": 10})
    table = build(small, tmp_path / "runs")
    assert rows_of(table)[1]["change"] == ""
    assert "not compared: the baseline run none differs in more than the method (env.max_steps: 30 → 10)" in table.notes[-1]


def test_of_several_baselines_the_unchanged_one_with_most_common_tasks_is_taken_and_named(
    small: str, write_run: Write, tmp_path: Path
) -> None:
    write_run("a-changed", [0.0] * 4, labels__variant="method.x=1", cell__method={"x": 1})
    write_run("b-short", [0.0] * 2)
    write_run("c-long", [0.0] * 4)
    write_run("sepm", [1.0] * 4, labels__method="sepm")
    table = build(small, tmp_path / "runs")
    sepm = next(row for row in rows_of(table) if row["run"] == "sepm")
    assert (sepm["baseline_run"], sepm["pairs"]) == ("c-long", "4")
    assert any("compared with c-long, one of 3 baseline runs" in note for note in table.notes)


def test_a_run_without_a_result_is_compared_with_nothing(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0])
    write_run("sepm", [], planned=1, labels__method="sepm")
    assert all(head.label != "measured Δ" for head in build(small, tmp_path / "runs").heads)


def test_holm_spans_the_methods_with_the_same_baseline(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [0.0] * 8)
    write_run("sepm", [1.0] * 8, labels__method="sepm")
    write_run("gmemory", [1.0] * 6 + [0.0] * 2, labels__method="gmemory")
    write_run("metagpt", [0.0] * 8, labels__method="metagpt")
    rows = {row["row"]: row for row in rows_of(build("table1", tmp_path / "runs", env="alfworld")) if row["p_holm"]}
    assert {name: float(row["p_mcnemar"]) for name, row in rows.items()} == {"SEPM": 2 / 256, "G-Memory": 2 / 64, "MetaGPT": 1.0}
    assert {name: float(row["p_holm"]) for name, row in rows.items()} == {"SEPM": 6 / 256, "G-Memory": 4 / 64, "MetaGPT": 1.0}


def test_measured_tokens_stand_beside_reported_ones(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0])
    write_run("sepm", [1.0, 1.0], calls=[LEDGER, replace(LEDGER, key="eval_judge"), LEDGER], labels__method="sepm")
    found = cells_of(build("tokens", tmp_path / "runs"))
    assert found["SEPM", "Tokens measured"] == "480 (240 a task [–], n=2) ≠ (a)"
    assert found["SEPM", "Tokens measured Δ"] == "+100.0 % pairs=2"
    assert ("SEPM", "Tokens McNemar p (Holm)") not in found


def test_combined_rows_are_measured_task_by_task_from_runs_of_one_cell(write_run: Write, tmp_path: Path) -> None:
    parts = {
        "BMA": (True, True, [1, 1, 1, 1]),
        "BM": (True, False, [1, 1, 0, 0]),
        "BA": (False, True, [1, 0, 1, 0]),
        "B": (False, False, [0, 0, 0, 1]),
    }
    for name, (memory, alignment, scores) in parts.items():
        method = {"procedural": memory, "alignment": alignment, "graph": "explicit"}
        write_run(name, map(float, scores), labels__method="sepm", cell__method=method)
    other_seed = {"procedural": True, "alignment": True, "graph": "explicit"}
    write_run("other", [0.0] * 4, seed=1, labels__method="sepm", cell__method=other_seed)
    records = rows_of(build("table5", tmp_path / "runs", env="alfworld"))
    assert len(records) == 5
    rows = {row["row"]: row for row in records}
    assert (rows["Add memory to blackboard"]["measured"], rows["Add memory to blackboard"]["n"]) == ("25.0", "4")
    assert rows["Interaction I"]["measured"] == "25.0"  # 100 - 50 - 50 + 25
    assert rows["Interaction I"]["run"] == "BMA BM BA B"
    assert float(rows["Interaction I"]["low"]) <= 25 <= float(rows["Interaction I"]["high"])
    components = cells_of(build("components", tmp_path / "runs", env="alfworld"))
    assert components["Blackboard + alignment", "ALFWorld measured"].startswith("50.00")


def test_models_are_matched_by_the_acting_model_and_others_have_a_row_of_their_own(write_run: Write, tmp_path: Path) -> None:
    endpoints = {"main": {"model": "openai/qwen3.5-2b"}}
    write_run("q", [1.0], labels__method="sepm", models__keys={"actor": "main"}, models__endpoints=endpoints)
    write_run("s", [0.0], labels__method="sepm")
    found = cells_of(build("table2", tmp_path / "runs", env="alfworld"))
    assert found["qwen3.5-2b", "ALFWorld measured"].startswith("100.00")
    assert found["qwen3.5-27b", "ALFWorld measured"] == "–"
    assert found["other models", "ALFWorld measured"].startswith("0.00")
    assert found["other models", "ALFWorld reported"] == "–"


def test_metrics_of_an_environment_are_measured_by_name(tmp_path: Path) -> None:
    directory = tmp_path / "mab"
    directory.mkdir()
    held = manifest("mab", 2, labels__env="multiagentbench", cell__env={"scenario": "coding"})
    (directory / "manifest.json").write_text(json.dumps(held))
    with Store(directory) as store:
        play(store, 0, 0.5, metrics={"task_score": 40.0, "communication_score": 60.0})
        play(store, 1, 0.5, metrics={"task_score": 50.0})
    found = cells_of(build("table4", tmp_path))
    assert found["No added memory", "Coding TS measured"].startswith("45.00 [40.00, 50.00] n=2")
    assert found["No added memory", "Coding CS measured"].startswith("60.00 [–] n=1")
    assert found["No added memory", "Research TS measured"] == "–"


def test_variants_of_an_environments_configuration_stand_in_its_column(small: str, write_run: Write, tmp_path: Path) -> None:
    directory = write_run("none", [1.0], labels__env="alfworld-demo")
    text = (directory / "manifest.json").read_text().replace('"env": {"name": "alfworld-demo"}', '"env": {"name": "alfworld"}')
    (directory / "manifest.json").write_text(text)
    assert build(small, tmp_path / "runs").lines[0][4].startswith("100.00")


def test_the_models_filter_keeps_one_model_set(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("a", [1.0])
    write_run("b", [0.0], labels__models="big", labels__models_label="Big model")
    assert build(small, tmp_path / "runs", models="big").lines[0][2] == "Big model, seed 0"
    table = build(small, tmp_path / "runs", models="none-such")
    assert "has the model set 'none-such'" in table.notes[-1] and "There are: big, embedded" in table.notes[-1]


def test_an_unreadable_run_is_named_and_left_out(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0])
    (tmp_path / "runs" / "zz").mkdir()
    (tmp_path / "runs" / "zz" / "manifest.json").write_text("{")
    assert "Left out, unreadable" in build(small, tmp_path / "runs").notes[-1]


# --- definitions ------------------------------------------------------------------------------------------------------
def test_unknown_names_get_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Unknown table 'table_1'.*Did you mean table1"):
        build("table_1", tmp_path)
    with pytest.raises(ConfigError, match="Did you mean alfworld"):
        build("table1", tmp_path, env="alfwrld")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("baseline: none", "baseline: nune", "unknown row 'nune'.*none"),
        ("select: {env: alfworld}", "select: {envs: alfworld}", "selected by 'envs'.*env"),
        ("title:", "titel:", "titel.*title"),
        ("label: ALFWorld", "change: steps, label: ALFWorld", "points or percent"),
        ("label: ALFWorld", "measure: tokins, label: ALFWorld", "tokins.*tokens"),
        ("{host: dylan, method: sepm}", "{host: dylan}", "5 reported numbers fit row 'SEPM', column 'ALFWorld'"),
        ("notes: [", "notes: [[", "is no YAML"),
        ("[Host, Method]", "[Host]", "head has 1"),
        ("sepm_table1.csv", "sepm_table_1.csv", "Did you mean sepm_table1.csv"),
    ],
)
def test_a_wrong_definition_is_one_clear_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "bad.yaml"
    assert old in SMALL
    path.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        build(str(path), tmp_path)


def test_the_example_of_the_docs_builds(write_run: Write, tmp_path: Path) -> None:
    docs = (Path(__file__).parents[3] / "docs" / "reports.md").read_text()
    path = tmp_path / "example.yaml"
    path.write_text(docs.partition("```yaml\n")[2].partition("```")[0])
    write_run("none", [1.0])
    assert build(str(path), tmp_path / "runs").lines[0][:2] == ("AutoGen", "No added memory")
    assert all(f"`{name}`" in docs for name in names())


def test_graded_scores_are_tested_by_permutation_and_adjusted_like_the_others(
    small: str, write_run: Write, tmp_path: Path
) -> None:
    write_run("none", [0.25, 0.5, 0.5, 0.0, 0.25, 0.0])
    write_run("sepm", [0.5, 0.75, 1.0, 0.25, 0.5, 0.25], labels__method="sepm")
    table = build(small, tmp_path / "runs")
    row = next(row for row in rows_of(table) if row["run"] == "sepm")
    assert (row["p_mcnemar"], float(row["p_permutation"]), float(row["p_holm"])) == ("", 2 / 64, 2 / 64)
    assert "0.031 (0.031) perm." in table.lines[1]
    assert "perm.: graded scores, tested by a paired permutation test instead." in table.notes
    assert any("p: paired permutation after Holm" in note for note in table.brief)
