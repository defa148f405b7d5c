"""The compact form of tables: narrow enough for a terminal, and still saying all that a number needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_tables import DEMO, Write, rows_of

from harness.report.cell_text import LABELS
from harness.report.compact import SHORT, tokens
from harness.report.definition import names
from harness.report.paper import compile_latex
from harness.report.render import escape, markdown_width
from harness.report.tables import build

LATEX = shutil.which("pdflatex")


def test_a_small_table_for_a_terminal(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0, 0.0], **DEMO)
    write_run("sepm", [1.0, 1.0, 1.0], labels__method="sepm", **DEMO)
    assert (
        build(small, tmp_path / "runs").to_compact_markdown()
        == """\
### small: Small & simple

**ALFWorld reported beside measured**

| Host    | Method          | reported     | measured                   | measured Δ          | p (Holm) |
|---------|-----------------|--------------|----------------------------|---------------------|----------|
| AutoGen | No added memory | 59.70        | 33.33 [6.1, 79.2] n=3 ≠    | –                   | –        |
| AutoGen | SEPM            | 89.55 ↑29.85 | 100.00 [43.9, 100.0] n=3 ≠ | ↑66.67 [0.0, 100.0] | 0.500    |
| DyLAN   | SEPM            | 68.66        | –                          | –                   | –        |

- 100 % data_driven.
- Arrows beside reported numbers: from the displayed numbers, against “No added memory”; measured: mean [95 % interval] n; measured Δ: paired, to the measured baseline; p: exact McNemar after Holm; ≠ not comparable with the reported number, see below.
- All measured: SmolLM2-135M-Instruct (embedded); seed 0; generated tasks instead of the official data; 3 of 134 tasks; at most 10 steps (official: 30); answers held to the admissible actions."""
    )


def test_what_runs_do_not_share_gets_a_letter_and_the_models_a_column(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("a", [1.0] * 134, labels__models="big", labels__models_label="Big")
    write_run("b", [0.0] * 4, planned=134, labels__models="tiny", labels__models_label="Tiny", seed=3)
    text = build(small, tmp_path / "runs").to_compact_markdown()
    assert "| AutoGen | No added memory | big s0  | 59.70        | 100.00 [97.2, 100.0] n=134 (a) |" in text
    assert "| AutoGen |                 | tiny s3 |              | 0.00 [0.0, 49.0] n=4/134 (b)   |" in text
    assert "- (a) Big; seed 0." in text and "- (b) Tiny; seed 3." in text


def test_lines_that_nothing_else_tells_apart_name_their_runs(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("first", [1.0])
    write_run("second", [0.0])
    text = build(small, tmp_path / "runs").to_compact_markdown()
    assert "n=1 ≠ (a)" in text and "n=1 ≠ (b)" in text
    assert "- (a) run first." in text and "- (b) run second." in text


def test_scripted_runs_stand_back_where_a_model_was_measured_and_are_counted(
    small: str, write_run: Write, tmp_path: Path
) -> None:
    write_run("scripted", [1.0], models__scripted=True)
    alone = build(small, tmp_path / "runs").to_compact_markdown()
    assert "scripted answers, no model" in alone and "100.00 [20.7, 100.0] n=1 scripted ≠" in alone
    write_run("real", [0.0])
    table = build(small, tmp_path / "runs")
    text = table.to_compact_markdown()
    assert "100.00" not in text and "0.00 [0.0, 79.3] n=1 ≠" in text
    assert "- 1 line of runs with scripted answers left out: --wide shows them, or --models." in text
    assert "scripted" in table.to_markdown() and len([row for row in rows_of(table) if row["run"]]) == 2


def test_failures_and_unread_runs_are_told(small: str, write_run: Write, tmp_path: Path) -> None:
    directory = write_run("broken", [1.0])
    (directory / "manifest.json").write_text("{}")
    text = build(small, tmp_path / "runs").to_compact_markdown()
    assert "Left out, unreadable:" in text


@pytest.mark.parametrize("name", names())
def test_every_table_fits_a_terminal_and_shows_every_reported_number(name: str, tmp_path: Path) -> None:
    table = build(name, tmp_path)
    assert max(markdown_width(sheet) for sheet in table.sheets) <= 120
    text = table.to_compact_markdown()
    for row in rows_of(table):
        if row["reported"]:
            assert row["reported"].replace("-", "−") in text
    assert all(any("reported" in head.label for head in sheet.heads) for sheet in table.sheets)
    assert all(any("measured" in head.label for head in sheet.heads) for sheet in table.sheets)


def test_every_letter_is_explained_and_every_explanation_used(paper_runs: Path) -> None:
    for name in ("textual", "table2"):
        table = build(name, paper_runs)
        for sheets in (table.sheets, table.pages):
            used = {
                mark
                for sheet in sheets
                for line in sheet.lines
                for cell in line
                for mark in re.findall(r"(?:n=\S+|≠|infra) (\([a-z]+\))$", cell)
            }
            explained = {note.partition(" ")[0] for note in table.brief if re.match(r"\([a-z]+\) ", note)}
            assert used == explained


def test_the_highest_of_a_block_is_bold_on_paper_as_in_the_paper(paper_runs: Path) -> None:
    text = build("table1", paper_runs, models="gpt-5-mini").to_compact_latex()
    assert re.findall(r"\\textbf\{([\d.]+)\} \$\\uparrow", text) == ["89.55", "68.66", "38.30", "29.80", "54.67", "47.33"]
    assert re.findall(r"\\textbf\{([\d.]+)\} \{\[\}", text) == ["89.55", "68.66", "38.30", "29.80", "54.67", "47.33"]
    assert r"\textbf{41}" not in build("smg", paper_runs).to_compact_latex()  # redundant work: less is better


def test_short_token_counts() -> None:
    assert [tokens(value) for value in (0, 999, 18_625, 5_200_000)] == ["0", "999", "18.6 k", "5.20 M"]
    assert set(SHORT) == set(LABELS)


def test_the_three_forms_are_saved_side_by_side(small: str, write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0])
    table = build(small, tmp_path / "runs")
    files = table.save(tmp_path / "out")
    assert [path.name for path in files] == ["small.md", "small.csv", "small.tex"]
    assert files[0].read_text() == table.to_compact_markdown() + "\n"
    assert table.save(tmp_path / "out", wide=True)[0].read_text() == table.to_markdown() + "\n"


def test_a_character_that_latex_has_not_becomes_its_number() -> None:
    assert escape("Zoë, naïve, Łódź") == "Zoë, naïve, Łódź"
    assert escape("模\u200b✓") == "U+6A21U+200BU+2713"


@pytest.mark.skipif(LATEX is None, reason="no pdflatex is installed")
@pytest.mark.parametrize("wide", [False, True])
def test_a_real_latex_takes_the_tables_whatever_stands_in_their_labels(
    wide: bool, small: str, write_run: Write, tmp_path: Path
) -> None:
    hostile = r"""a_b & 100% $x$ #1 {y} \input{/etc/passwd} ~^ <é> "q" [z] 模 ≠ ↑ – | ' `"""
    write_run("none", [1.0, 0.0], labels__models_label=hostile, labels__variant="method.a_b=[1,2]")
    for name in (small, *names()):
        build(name, tmp_path / "runs").save(tmp_path / "out", wide)
    inputs = "\n".join(rf"\input{{{path.name}}}\clearpage" for path in sorted((tmp_path / "out").glob("*.tex")))
    page = tmp_path / "out" / "all.tex"
    preamble = r"\documentclass{article}\usepackage{booktabs}\usepackage{graphicx}\usepackage[T1]{fontenc}"
    page.write_text(preamble + "\n\\begin{document}\n" + inputs + "\n\\end{document}\n")
    made = compile_latex(page, "pdflatex")
    if shutil.which("pdftotext"):
        said = subprocess.run(["pdftotext", "-layout", str(made), "-"], capture_output=True, text=True, check=True).stdout
        assert r"\input{/etc/passwd}" in said and "89.55" in said
