"""The forms of a table, and the papers' tables without any run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_tables import DEMO, Write, cells_of, rows_of

from harness.report.definition import define, names
from harness.report.render import escape
from harness.report.reported import load
from harness.report.tables import build


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
    none, sepm, dylan = rows_of(build(small, tmp_path / "runs"))
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
    assert all(row["measured"] == "" and row["run"] == "" for row in rows_of(table))
    assert "–  nothing" not in table.to_latex()
    assert table.to_markdown().startswith(f"### {name}: ")


@pytest.mark.parametrize("name", names())
def test_every_reported_score_of_a_table_is_printed_once(name: str, tmp_path: Path) -> None:
    spec = define(name)
    wanted = {column.metric for column in spec.columns}
    stated = sorted(number.value for number in load(spec.reported[0]) if number.metric in wanted and number.model != "mean")
    printed = sorted(row["reported"] for row in rows_of(build(name, tmp_path)) if row["reported"] and row["metric"] in wanted)
    if not any(row.combine for row in spec.rows) and len(spec.reported) == 1:
        assert printed == stated
    assert printed


def test_table_1_shows_the_papers_numbers_and_arrows(tmp_path: Path) -> None:
    found = cells_of(build("table1", tmp_path))
    assert found["AutoGen SEPM", "ALFWorld reported"] == "89.55 ↑29.85"
    assert found["AutoGen Generative Agents", "OfficeBench reported"] == "38.33 ↓3.34"
    assert found["DyLAN MetaGPT", "ALFWorld reported"] == "49.25 ↓4.48"
    assert found["DyLAN No added memory", "WebArena reported"] == "14.90"
    assert found["AutoGen G-Memory", "ALFWorld tokens reported"] == "5.7 M"
    arrows = {(n.host, n.method, n.env): n.value for n in load("sepm_table1.csv") if n.metric == "change" and n.method != "none"}
    printed = [row["reported_change"] for row in rows_of(build("table1", tmp_path)) if row["reported_change"]]
    assert printed == list(arrows.values())


def test_table_5_shows_what_counts_give_beside_what_the_paper_states(tmp_path: Path) -> None:
    rows = rows_of(build("table5", tmp_path))
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
    found = cells_of(build("tokens", tmp_path))
    assert found["SEPM", "Tokens reported"] == "5.2 M (+18.2 %)"
    assert found["SEPM", "Score reported"] == "89.55 ↑29.85"
