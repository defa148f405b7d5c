"""Tables over fabricated runs: measured beside reported, never in its place."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import LEDGER, manifest, play

from harness.errors import ConfigError, UserError
from harness.report.definition import define, names
from harness.report.render import escape
from harness.report.reported import load
from harness.report.tables import Table, build
from harness.store.database import Store

Write = Callable[..., Path]
SMALL = """
title: Small & simple
head: [Host, Method]
reported: [sepm_table1.csv]
columns:
  - {label: ALFWorld, select: {env: alfworld}}
rows:
  - {id: none, group: AutoGen, label: No added memory, select: {host: autogen, method: none}}
  - {group: AutoGen, label: SEPM, select: {host: autogen, method: sepm}, baseline: none}
  - {group: DyLAN, label: SEPM, select: {host: dylan, method: sepm}}
notes: ["100 % data_driven."]
"""
DEMO: dict[str, Any] = {
    "environment__provenance": {"source": "generated"},
    "environment__max_steps": 10,
    "tasks__total": 134,
    "models__constrain_actions": True,
}


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


def _rows(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def _cells(table: Table) -> dict[tuple[str, str], str]:
    """(group and label of the row, flat heading) → text, of the first line of each row."""
    names = [head.label for head in table.heads].index("measured with")
    found: dict[tuple[str, str], str] = {}
    for line in table.lines:
        row = " ".join(line[:names])
        for head, cell in zip(table.heads, line, strict=True):
            found[row, head.flat] = cell
    return found


# --- the three forms --------------------------------------------------------------------------------------------------
def test_markdown_of_a_small_table(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0, 0.0], **DEMO)
    write_run("sepm", [1.0, 1.0, 1.0], labels__method="sepm", **DEMO)
    assert (
        build(small, tmp_path / "runs").to_markdown()
        == """\
### small: Small & simple

| Host    | Method          | measured with                            | ALFWorld reported | ALFWorld measured                | ALFWorld measured Δ           | ALFWorld McNemar p (Holm) |
|---------|-----------------|------------------------------------------|-------------------|----------------------------------|-------------------------------|---------------------------|
| AutoGen | No added memory | SmolLM2-135M-Instruct (embedded), seed 0 | 59.70             | 33.33 [6.15, 79.23] n=3 ≠ (a)    | –                             | –                         |
| AutoGen | SEPM            | SmolLM2-135M-Instruct (embedded), seed 0 | 89.55 ↑29.85      | 100.00 [43.85, 100.00] n=3 ≠ (a) | ↑66.67 [0.00, 100.00] pairs=3 | 0.500 (0.500)             |
| DyLAN   | SEPM            | –                                        | 68.66             | –                                | –                             | –                         |

- 100 % data_driven.
- Changes beside reported numbers: from the displayed numbers, against “No added memory”.
- Measured: mean with its 95 % interval (Wilson for 0/1 scores, else bootstrap); – nothing was measured.
- ≠ not comparable with the reported number, for the reasons in the footnote.
- Measured Δ: against the measured baseline on the tasks that both have (paired bootstrap interval); p: exact McNemar test on success, in brackets after Holm's adjustment over all that have that baseline.
- (a) SmolLM2-135M-Instruct (embedded); seed 0; generated tasks instead of the official data; 3 of 134 tasks; at most 10 steps (official: 30); answers held to the admissible actions."""
    )


def test_latex_of_a_small_table(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0], labels__variant="method.a_b=1")
    assert (
        build(small, tmp_path / "runs").to_latex()
        == r"""% needs \usepackage{booktabs}
\begin{table}
\centering
\caption{Small \& simple}
\label{tab:small}
\begin{tabular}{lllll}
\toprule
 &  &  & \multicolumn{2}{c}{ALFWorld} \\
\cmidrule(lr){4-5}
Host & Method & measured with & reported & measured \\
\midrule
AutoGen & No added memory & SmolLM2-135M-Instruct (embedded), seed 0 {[}method.a\_b=1{]} & 59.70 & 50.00 {[}9.45, 90.55{]} n=2 $\neq$ (a) \\
AutoGen & SEPM & -- & 89.55 $\uparrow$29.85 & -- \\
\midrule
DyLAN & SEPM & -- & 68.66 & -- \\
\bottomrule
\end{tabular}

\medskip
\raggedright\footnotesize
100 \% data\_driven.\par
Changes beside reported numbers: from the displayed numbers, against ``No added memory''.\par
Measured: mean with its 95 \% interval (Wilson for 0/1 scores, else bootstrap); -- nothing was measured.\par
$\neq$ not comparable with the reported number, for the reasons in the footnote.\par
(a) SmolLM2-135M-Instruct (embedded); seed 0; all 2 tasks; the paper has 134 tasks; configuration changed: method.a\_b=1.\par
\end{table}"""
    )


def test_csv_of_a_small_table_holds_unrounded_numbers(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0, 0.0], **DEMO)
    write_run("sepm", [1.0, 1.0, 1.0], labels__method="sepm", **DEMO)
    text = build(small, tmp_path / "runs").to_csv()
    first, _, rest = text.partition("\n")
    assert first.startswith("table,group,row,column,metric,reported,reported_unit,reported_k,reported_n,reported_possible,")
    assert rest.startswith(
        "small,AutoGen,No added memory,ALFWorld,score,59.70,%,80,134,true,,,,SEPM 2610.14515v1 Table 1,"
        "33.33333333333333,%,6.1491944720396265,79.23403991979524,wilson,1,3,3,134,0,0,,,,,,,,360,embedded,"
    )
    none, sepm, dylan = _rows(build(small, tmp_path / "runs"))
    assert (sepm["change"], sepm["pairs"], sepm["p_mcnemar"], sepm["baseline_run"]) == ("66.66666666666667", "3", "0.5", "none")
    assert (none["comparable_with_reported"], none["scripted"], none["constrain_actions"]) == ("false", "false", "true")
    assert (dylan["reported"], dylan["measured"], dylan["run"], dylan["n"]) == ("68.66", "", "", "")


def test_a_bar_in_a_label_does_not_break_markdown(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0], labels__models_label="a|b")
    assert r"a\|b, seed 0" in build(small, tmp_path / "runs").to_markdown()


def test_a_line_break_in_a_label_does_not_break_the_table(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0], labels__models_label="two\nlines")
    table = build(small, tmp_path / "runs")
    assert table.lines[0][2] == "two lines, seed 0"
    assert len(table.to_markdown().splitlines()) == 2 + 2 + len(table.lines) + 1 + len(table.notes)


@pytest.mark.parametrize("name", names())
def test_latex_of_every_table_is_well_formed(name: str, tmp_path: Path) -> None:
    table = build(name, tmp_path)
    text = table.to_latex()
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == len(table.lines)
    assert all(len(re.findall(r"(?<!\\)&", row)) == len(table.heads) - 1 for row in rows)
    assert text.count("{") == text.count("}")
    assert [re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end")] == [["table", "tabular"], ["tabular", "table"]]


@given(st.text())
def test_no_special_character_of_latex_survives_escaping(text: str) -> None:
    found = escape(text)
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}", r"\ldots{}", "{[}", "{]}"):
        found = found.replace(command, "")
    found = re.sub(r"\\text(less|greater|bar)\{\}|\$(-|\\[A-Za-z]+)\$|\\[&%$#_{}]", "", found)
    assert not set(found) & set("\\&%$#_{}~^<>|")


# --- reported numbers -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", names())
def test_every_table_builds_without_runs_and_measures_nothing(name: str, tmp_path: Path) -> None:
    table = build(name, tmp_path)
    for line in table.lines:
        for head, cell in zip(table.heads, line, strict=True):
            if head.label.startswith("measured"):
                assert cell == "–"
    assert all(row["measured"] == "" and row["run"] == "" for row in _rows(table))
    assert "–  nothing" not in table.to_latex()
    assert table.to_markdown().startswith(f"### {name}: ")


@pytest.mark.parametrize("name", names())
def test_every_reported_score_of_a_table_is_printed_once(name: str, tmp_path: Path) -> None:
    spec = define(name)
    wanted = {column.metric for column in spec.columns}
    stated = sorted(number.value for number in load(spec.reported[0]) if number.metric in wanted and number.model != "mean")
    printed = sorted(row["reported"] for row in _rows(build(name, tmp_path)) if row["reported"] and row["metric"] in wanted)
    if not any(row.combine for row in spec.rows) and len(spec.reported) == 1:
        assert printed == stated
    assert printed


def test_table_1_shows_the_papers_numbers_and_arrows(tmp_path: Path) -> None:
    found = _cells(build("table1", tmp_path))
    assert found["AutoGen SEPM", "ALFWorld reported"] == "89.55 ↑29.85"
    assert found["AutoGen Generative Agents", "OfficeBench reported"] == "38.33 ↓3.34"
    assert found["DyLAN MetaGPT", "ALFWorld reported"] == "49.25 ↓4.48"
    assert found["DyLAN No added memory", "WebArena reported"] == "14.90"
    assert found["AutoGen G-Memory", "ALFWorld tokens reported"] == "5.7 M"
    arrows = {(n.host, n.method, n.env): n.value for n in load("sepm_table1.csv") if n.metric == "change" and n.method != "none"}
    printed = [row["reported_change"] for row in _rows(build("table1", tmp_path)) if row["reported_change"]]
    assert printed == list(arrows.values())


def test_table_5_shows_what_counts_give_beside_what_the_paper_states(tmp_path: Path) -> None:
    rows = _rows(build("table5", tmp_path))
    found = {(row["row"], row["column"]): (row["reported"], row["reported_from_counts"]) for row in rows}
    assert found["Add memory to blackboard", "ALFWorld"] == ("17.17", "17.16")
    assert found["Add alignment to blackboard + memory", "ALFWorld"] == ("2.98", "2.99")
    assert found["Add alignment to blackboard + memory", "OfficeBench"] == ("9.34", "9.33")
    gains = {key: pair for key, pair in found.items() if not key[0].startswith("Interaction")}
    assert sum(stated != counted for stated, counted in gains.values()) == 3
    assert found["Interaction I", "ALFWorld"] == ("-9.71", "-9.70")
    assert "−9.71" in build("table5", tmp_path).to_markdown()


def test_impossible_counts_are_marked_and_explained(tmp_path: Path) -> None:
    text = build("emma-table2", tmp_path).to_markdown()
    assert "0.501 (?)" in text and "0.650 (?)" in text and text.count("(?)") == 4
    assert "0.501 is not a possible count of 368: 184 gives 0.500 and 185 gives 0.503" in text
    assert build("smg", tmp_path).to_markdown().count("is not a possible count of 200") == 4
    assert "(?)" not in build("table1", tmp_path).to_markdown()


def test_the_token_table_pairs_totals_with_scores_and_relative_changes(tmp_path: Path) -> None:
    """SEPM-R42: totals beside the score of the same run."""
    found = _cells(build("tokens", tmp_path))
    assert found["SEPM", "Tokens reported"] == "5.2 M (+18.2 %)"
    assert found["SEPM", "Score reported"] == "89.55 ↑29.85"


# --- measured numbers -------------------------------------------------------------------------------------------------
def test_a_full_official_run_is_not_marked(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0] * 80 + [0.0] * 54)
    found = _cells(build("table1", tmp_path / "runs", env="alfworld"))
    assert found["AutoGen No added memory", "ALFWorld measured"] == "59.70 [51.24, 67.62] n=134 (a)"
    assert found["AutoGen No added memory", "ALFWorld tokens measured"] == "16,080"


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
    assert sorted(row["run"] for row in _rows(table) if row["run"]) == ["a", "b", "c", "d", "e"]


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
    write_run("none", [1.0, 0.0, 0.0, 0.0], cell__run={"tasks": 4}, cell__task_ids_sha256="x")
    sepm = _rows(build(small, tmp_path / "runs"))[1]
    assert (sepm["change"], sepm["pairs"]) == ("50.0", "2")


def test_runs_that_differ_in_more_than_the_method_are_not_compared(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0], cell__env={"max_steps": 30})
    write_run("sepm", [1.0, 1.0], labels__method="sepm", cell__env={"max_steps": 10})
    table = build(small, tmp_path / "runs")
    assert _rows(table)[1]["change"] == ""
    assert "not compared: the baseline run none differs in more than the method (env.max_steps: 30 → 10)" in table.notes[-1]


def test_of_several_baselines_the_unchanged_one_with_most_common_tasks_is_taken_and_named(
    small: str, write_run: Write, tmp_path: Path
) -> None:
    write_run("a-changed", [0.0] * 4, labels__variant="method.x=1", cell__method={"x": 1})
    write_run("b-short", [0.0] * 2)
    write_run("c-long", [0.0] * 4)
    write_run("sepm", [1.0] * 4, labels__method="sepm")
    table = build(small, tmp_path / "runs")
    sepm = next(row for row in _rows(table) if row["run"] == "sepm")
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
    rows = {row["row"]: row for row in _rows(build("table1", tmp_path / "runs", env="alfworld")) if row["p_holm"]}
    assert {name: float(row["p_mcnemar"]) for name, row in rows.items()} == {"SEPM": 2 / 256, "G-Memory": 2 / 64, "MetaGPT": 1.0}
    assert {name: float(row["p_holm"]) for name, row in rows.items()} == {"SEPM": 6 / 256, "G-Memory": 4 / 64, "MetaGPT": 1.0}


def test_measured_tokens_stand_beside_reported_ones(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0])
    write_run("sepm", [1.0, 1.0], calls=[LEDGER, replace(LEDGER, key="eval_judge"), LEDGER], labels__method="sepm")
    found = _cells(build("tokens", tmp_path / "runs"))
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
    records = _rows(build("table5", tmp_path / "runs", env="alfworld"))
    assert len(records) == 5
    rows = {row["row"]: row for row in records}
    assert (rows["Add memory to blackboard"]["measured"], rows["Add memory to blackboard"]["n"]) == ("25.0", "4")
    assert rows["Interaction I"]["measured"] == "25.0"  # 100 - 50 - 50 + 25
    assert rows["Interaction I"]["run"] == "BMA BM BA B"
    assert float(rows["Interaction I"]["low"]) <= 25 <= float(rows["Interaction I"]["high"])
    components = _cells(build("components", tmp_path / "runs", env="alfworld"))
    assert components["Blackboard + alignment", "ALFWorld measured"].startswith("50.00")


def test_models_are_matched_by_the_acting_model_and_others_have_a_row_of_their_own(write_run: Write, tmp_path: Path) -> None:
    endpoints = {"main": {"model": "openai/qwen3.5-2b"}}
    write_run("q", [1.0], labels__method="sepm", models__keys={"actor": "main"}, models__endpoints=endpoints)
    write_run("s", [0.0], labels__method="sepm")
    found = _cells(build("table2", tmp_path / "runs", env="alfworld"))
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
    found = _cells(build("table4", tmp_path))
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
