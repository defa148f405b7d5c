"""Figures and the paper: what is drawn, and the files that come of it."""

from __future__ import annotations

import builtins
import csv
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_tables import Write

from harness.cli import main
from harness.errors import ConfigError, SetupError
from harness.report.definition import names as table_names
from harness.report.figures import draw
from harness.report.figures.data import REPORTED, figure_data
from harness.report.figures.definition import define_figure, names
from harness.report.paper import compile_latex, make

pytest.importorskip("matplotlib", reason="figures need matplotlib (extra paper)")
ROOT = Path(__file__).resolve().parents[3]


# --- what is drawn ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", names())
def test_without_runs_a_figure_shows_the_papers_numbers_and_says_that_nothing_was_measured(name: str, tmp_path: Path) -> None:
    data = figure_data(name, tmp_path)
    assert {mark.panel for mark in data.marks} <= {REPORTED}
    assert data.missing == "nothing measured"
    assert bool(data.marks) == (name != "learning")


def test_reported_and_measured_never_share_a_panel(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0, 0.0], labels__models="tiny")
    data = figure_data("figure4b", tmp_path / "runs")
    assert data.panels == (REPORTED, "tiny s0")
    (mark,) = data.of("tiny s0")
    assert (mark.series, mark.x, mark.shown, mark.n, mark.runs, mark.comparable) == (
        "No added memory",
        3 * 120 / 1e6,
        "33.33",
        3,
        "none",
        False,
    )
    assert any(note == "Measured is not comparable with reported: the paper has 134 tasks." for note in data.notes)
    assert len(data.of(REPORTED)) == 5


def test_a_mean_takes_all_its_benchmarks_and_says_what_is_missing(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0])
    data = figure_data("figure4a", tmp_path / "runs")
    assert data.panels == (REPORTED,)
    assert data.missing == "nothing measured: the mean takes ALFWorld, WebArena, OfficeBench; there is ALFWorld"


def test_scripted_runs_are_drawn_only_where_there_is_nothing_else(write_run: Write, tmp_path: Path) -> None:
    write_run("script", [1.0], labels__models="scripted", models__scripted=True)
    assert figure_data("figure4b", tmp_path / "runs").panels == (REPORTED, "scripted s0")
    write_run("real", [0.0], labels__models="tiny")
    assert figure_data("figure4b", tmp_path / "runs").panels == (REPORTED, "tiny s0")


def test_more_model_sets_than_fit_are_counted_and_the_fullest_come_first(write_run: Write, tmp_path: Path) -> None:
    for model in "abcde":
        write_run(model, [1.0], labels__models=model)
    write_run("e-sepm", [1.0], labels__models="e", labels__method="sepm")
    data = figure_data("figure4b", tmp_path / "runs")
    assert data.panels == (REPORTED, "e s0", "a s0", "b s0")
    assert data.notes[-1] == "2 more model sets or seeds are not drawn: choose with --models."
    assert figure_data("figure4b", tmp_path / "runs", models="d").panels == (REPORTED, "d s0")


def test_orders_are_panels_of_their_own_and_repeated_runs_are_told(write_run: Write, tmp_path: Path) -> None:
    write_run("b", [1.0])
    write_run("a", [0.0])
    write_run("c", [1.0], tasks__order="shuffled:3")
    data = figure_data("figure4b", tmp_path / "runs")
    assert data.panels == (REPORTED, "embedded s0", "embedded s0 shuffled:3")
    assert [mark.runs for mark in data.of("embedded s0")] == ["a"]
    assert "2 cells with several such runs: the first by name is drawn." in data.notes


def test_the_learning_curve_has_a_point_a_block_with_its_interval(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [0.0] * 10 + [1.0] * 10)
    marks = figure_data("learning", tmp_path / "runs").marks
    assert [(mark.x, mark.value, mark.n) for mark in marks] == [(3.0, 0.0, 5), (8.0, 0.0, 5), (13.0, 100.0, 5), (18.0, 100.0, 5)]
    assert all(mark.low is not None and mark.high is not None and mark.low <= mark.value <= mark.high for mark in marks)


def test_the_numbers_of_a_figure_are_a_csv(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0])
    rows = list(csv.DictReader(io.StringIO(figure_data("figure5b", tmp_path / "runs").to_csv())))
    assert [row["panel"] for row in rows].count("reported") == 15
    measured = [row for row in rows if row["panel"] != "reported"]
    assert [(row["series"], row["category"], row["value"], row["n"]) for row in measured] == [
        ("No added components", "ALFWorld", "50.0", "2")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table: tokens\nkind: pie", "kind is 'pie'"),
        ("table: tokens\nkind: scatter\nx: Tokens\ny: Sore", "has no column 'Sore'. Did you mean Score"),
        ("table: tokens\nbars: 3", "bars"),
        ("- 1", "holds no figure"),
    ],
)
def test_a_wrong_definition_is_one_clear_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)):
        define_figure(str(path))
    with pytest.raises(ConfigError, match="Unknown figure 'figure9'"):
        define_figure("figure9")


# --- how it is drawn --------------------------------------------------------------------------------------------------
def test_series_differ_without_colour_and_in_grey_and_the_palette_is_okabe_itos() -> None:
    assert len(set(draw.MARKERS)) == len(draw.MARKERS) == len(draw.FILLS) == 8
    pairs = list(zip(draw.FILLS, draw.HATCHES, strict=True))
    plain = [fill for fill, hatch in pairs if not hatch]
    grey = [sum(w * int(fill[i : i + 2], 16) for w, i in ((0.299, 1), (0.587, 3), (0.114, 5))) for fill in plain]
    assert max(grey) - min(grey) > 100  # two plain fills: one white, one dark
    assert len({hatch for _, hatch in pairs if hatch}) == 6
    assert set(draw.COLOURS) == {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}


@pytest.mark.parametrize("name", names())
def test_every_figure_is_drawn_in_every_format_and_the_same_twice(name: str, paper_runs: Path, tmp_path: Path) -> None:
    data = figure_data(name, paper_runs, env="alfworld" if name == "learning" else None, models="gpt-5-mini")
    heads = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for kind in draw.FORMATS:
        one, two = (draw.save(data, tmp_path / folder / f"x.{kind}").read_bytes() for folder in ("aa" if kind == "png" else "ab"))
        assert one.startswith(heads[kind]) and one == two
    pdf = (tmp_path / "a" / "x.pdf").read_bytes()
    assert b"/Subtype /Type3" not in pdf and b"/Subtype /CIDFontType2" in pdf  # outlines, not bitmaps
    svg = (tmp_path / "a" / "x.svg").read_text()
    assert (">Reported<" in svg) == (name != "learning") and "<image" not in svg
    for series in data.series:
        assert f">{series}<" in svg


def test_an_empty_panel_says_so_and_bars_without_a_value_are_dashes(write_run: Write, tmp_path: Path) -> None:
    write_run("none", [1.0, 0.0])
    svg = draw.save(figure_data("figure5b", tmp_path / "runs"), tmp_path / "a.svg").read_text()
    assert svg.count(">–<") == 2 and "Measured: embedded s0 ≠" in svg
    assert ">nothing measured<" in draw.save(figure_data("figure1", tmp_path / "runs"), tmp_path / "b.svg").read_text()


def test_without_matplotlib_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError("No module named 'matplotlib'")
        return real(name, *args, **kwargs)

    data = figure_data("figure4a", tmp_path)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SetupError, match=r"Figures need matplotlib .* pip install 'memarena\[paper\]'"):
        draw.save(data, tmp_path / "x.png")


def test_importing_the_figures_loads_no_matplotlib() -> None:
    code = (
        "import sys; from harness.report import commands, contrast, compact, paper, stability; from harness.report.figures import draw;"
        "print([name for name in ('numpy', 'scipy', 'matplotlib', 'omegaconf') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the paper --------------------------------------------------------------------------------------------------------
def test_the_paper_is_a_pdf_where_latex_is_and_holds_every_table_and_figure(write_run: Write, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex is installed")
    write_run("a_b%c", [1.0, 0.0])
    made = make(tmp_path / "runs", tmp_path / "out")
    assert made.document == tmp_path / "out" / "paper.pdf" and made.remark == ""
    assert made.document.read_bytes().startswith(b"%PDF")
    written = {path.name for path in made.files}
    assert {f"{name}.{suffix}" for name in table_names() for suffix in ("md", "csv", "tex")} <= written
    assert {f"{name}.{suffix}" for name in names() for suffix in ("pdf", "png", "svg", "csv")} <= written
    assert not list((tmp_path / "out").glob("*.log")) and not list((tmp_path / "out").glob("*.aux"))
    if shutil.which("pdftotext"):
        said = subprocess.run(
            ["pdftotext", "-layout", str(made.document), "-"], capture_output=True, text=True, check=True
        ).stdout
        assert "89.55" in said and "a_b%c: finished" in said and "Conditional contributions" in said


def test_without_latex_the_paper_is_one_html_page(write_run: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_run("<b>none", [1.0, 0.0], labels__models_label="<script>")
    made = make(tmp_path / "runs", tmp_path / "out", env="alfworld")
    assert made.document.name == "paper.html" and made.remark.startswith("No LaTeX is installed")
    page = made.document.read_text()
    assert page.count('src="data:image/svg+xml;base64,') == 4 and 'src="http' not in page
    assert "&lt;b&gt;none: finished" in page and "<script>" not in page and "<b>89.55 ↑29.85</b>" in page
    assert "89.55" in page and "<h2>Task performance under two hosts</h2>" in page
    assert "MultiAgentBench" not in page


def test_what_latex_refuses_is_said_in_its_own_words(tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex is installed")
    source = tmp_path / "x.tex"
    source.write_text(r"\documentclass{article}\begin{document}\nonsense\end{document}")
    with pytest.raises(SetupError, match=r"pdflatex refuses .*x.tex: ! Undefined control sequence"):
        compile_latex(source, "pdflatex")


def test_the_commands_write_files_and_print_them(write_run: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run("none", [1.0, 0.0])
    where = ["--root", str(tmp_path / "runs"), "--save", str(tmp_path / "out")]
    assert main(["figure", "figure4b", "--format", "svg", *where]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        str(tmp_path / "out" / "figure4b.svg"),
        str(tmp_path / "out" / "figure4b.csv"),
    ]
    assert main(["figure", "figure4a", "--format", "csv", *where]) == 0
    assert "- nothing measured: the mean takes" in capsys.readouterr().out
    assert main(["table", "table1", *where]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "out" / f"table1.{suffix}") for suffix in ("md", "csv", "tex")]
    assert main(["figure", "figure4", *where]) == 2
    assert "Unknown figure 'figure4'. Did you mean figure4b or figure4a" in capsys.readouterr().err


def test_every_table_and_figure_of_the_paper_is_a_make_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for name in [*names(), *(name for name in table_names() if name not in ("emma-table2", "smg")), "paper", "tables", "figures"]:
        assert re.search(rf"^{name}:.*## ", makefile, re.MULTILINE), name
