"""Fed with the counts behind the SEPM paper's tables, the tables and figures give back every digit that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_tables import rows_of

from harness.report.figures.data import REPORTED, figure_data
from harness.report.reported import load
from harness.report.tables import Table, build


def _measured(table: Table) -> dict[tuple[str, str, str], dict[str, str]]:
    return {(row["group"], row["row"], row["column"]): row for row in rows_of(table) if row["run"]}


@pytest.fixture(scope="module")
def table1(paper_runs: Path) -> Table:
    return build("table1", paper_runs, models="gpt-5-mini")


def test_table_1_prints_every_score_and_every_arrow_of_the_paper(table1: Table) -> None:
    rows = [row for row in rows_of(table1) if row["run"]]
    assert len(rows) == 30
    for row in rows:
        assert row["measured_displayed"] == row["reported"], row["run"]
        assert row["change_displayed"] == row["reported_change"], row["run"]
        assert row["comparable_with_reported"] == "true"
    arrows = {(n.host, n.method, n.env): n.value for n in load("sepm_table1.csv") if n.metric == "change" and n.method != "none"}
    assert sorted(row["change_displayed"] for row in rows if row["change_displayed"]) == sorted(arrows.values())


def test_table_1_as_printed_holds_the_papers_cells(table1: Table) -> None:
    text = table1.to_compact_markdown()
    assert (
        "| SEPM              | 89.55 ↑29.85 | 89.55 [83.2, 93.7] n=134 | ↑29.85 [22.4, 38.1] | <0.001   | 5.2 M       | 5.20 M       |"
        in text
    )
    assert "| Generative Agents | 38.33 ↓3.34  | 38.33 [33.0, 43.9] n=300 | ↓3.34 [−5.3, −1.3]" in text
    assert "≠" not in text


def test_from_counts_the_last_digit_of_some_arrows_differs(paper_runs: Path, table1: Table) -> None:
    counted = build("table1", paper_runs, models="gpt-5-mini", deltas="counts")
    text = counted.to_compact_markdown()
    assert "Arrows beside reported numbers: from counts, against “No added memory”" in text
    assert "38.33 ↓3.33" in text and "↓3.33 [−5.3, −1.3]" in text
    stated, exact = ([row["reported_change"] for row in rows_of(table)] for table in (table1, counted))
    assert sum(a != b for a, b in zip(stated, exact, strict=True)) == 3
    assert all(abs(float(a) - float(b)) < 0.011 for a, b in zip(stated, exact, strict=True) if a)


@pytest.mark.parametrize(("name", "cells"), [("table2", 39), ("components", 15), ("textual", 9)])
def test_the_other_tables_print_every_digit_too(name: str, cells: int, paper_runs: Path) -> None:
    models = None if name == "table2" else "gpt-5-mini"
    rows = [row for row in rows_of(build(name, paper_runs, models=models)) if row["run"] and row["reported"]]
    assert len(rows) == cells
    assert [row["measured_displayed"] for row in rows] == [row["reported"] for row in rows]


def test_table_5_prints_the_papers_contrasts_and_from_counts_three_gains_differ(paper_runs: Path) -> None:
    displayed = rows_of(build("table5", paper_runs))
    assert [row["measured_displayed"] for row in displayed] == [row["reported"] for row in displayed]
    counted = rows_of(build("table5", paper_runs, deltas="counts"))
    assert [row["measured_displayed"] for row in counted] == [row["reported_from_counts"] for row in counted]
    gains = [row for row in counted if not row["row"].startswith("Interaction")]
    assert sum(row["measured_displayed"] != row["reported"] for row in gains) == 3


def test_figure_4a_gives_the_papers_means(paper_runs: Path) -> None:
    data = figure_data("figure4a", paper_runs, models="gpt-5-mini")
    stated = {(n.host, n.method): n.value for n in load("sepm_means.csv")}
    hosts, methods = {"AutoGen": "autogen", "DyLAN": "dylan"}, {"No added memory": "none", "SEPM": "sepm"}
    for panel in data.panels:
        found = {(hosts[m.category], methods[m.series]): m.shown for m in data.of(panel) if m.series in methods}
        assert found == stated
    assert data.panels == (REPORTED, "gpt-5-mini s0")
    assert {m.shown for m in data.of("gpt-5-mini s0")} == {m.shown for m in data.of(REPORTED)}


def test_figure_4b_sets_the_papers_tokens_against_the_papers_scores(paper_runs: Path) -> None:
    data = figure_data("figure4b", paper_runs)
    for reported, measured in zip(data.of(REPORTED), data.of("gpt-5-mini s0"), strict=True):
        assert (measured.series, measured.shown) == (reported.series, reported.shown)
        assert measured.x == pytest.approx(reported.x, rel=1e-4)


def test_the_mean_over_benchmarks_has_the_interval_of_its_independent_parts(paper_runs: Path) -> None:
    mark = next(m for m in figure_data("figure4a", paper_runs).of("gpt-5-mini s0") if m.series == "SEPM")
    low = ((89.552 - 83.2245) ** 2 + (38.300 - 35.018) ** 2 + (54.667 - 49.011) ** 2) ** 0.5 / 3
    assert mark.low == pytest.approx(60.84 - low, abs=0.02)
    assert mark.n == 134 + 812 + 300
