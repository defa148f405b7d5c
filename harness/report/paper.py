"""`memarena paper`: every table and figure of the runs there are, as files of their own and in one document.

The document is a PDF where a LaTeX is installed, else an HTML page.
"""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import __version__
from harness.errors import SetupError
from harness.report import definition, tables
from harness.report.figures import definition as figure_definition
from harness.report.figures.data import FigureData, figure_data
from harness.report.figures.draw import FORMATS, save
from harness.report.listing import listing
from harness.report.render import Sheet, Table, escape

# In this order of preference; each compiles a file without asking questions and without running commands from it.
ENGINES = {
    "pdflatex": ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"),
    "lualatex": ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"),
    "tectonic": ("--untrusted",),
}
SECONDS = 180
PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
% without either, T1 means bitmap fonts
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{\IfFileExists{mathptmx.sty}{\usepackage{mathptmx}}{}}
\usepackage[margin=2.2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\setlength{\parindent}{0pt}
% no trace of the folder that it is compiled in: the same runs give the same file
\ifdefined\pdftrailerid\pdftrailerid{}\fi
"""


@dataclass(frozen=True)
class Paper:
    """The document, and the files of its tables and figures."""

    document: Path
    files: tuple[Path, ...]
    remark: str = ""


def make(root: Path, out: Path, *, env: str | None = None, models: str | None = None, deltas: str = "displayed") -> Paper:
    """Write everything below `out`. `env` leaves out tables that have no column for it.

    Raises SetupError without matplotlib.
    """
    held = [tables.build(name, root, env=env, models=models, deltas=deltas) for name in _tables() if _has(name, env)]
    drawn = [figure_data(name, root, env=env, models=models) for name in figure_definition.names() if _figure_has(name, env)]
    out.mkdir(parents=True, exist_ok=True)
    files = [path for table in held for path in table.save(out)]
    for data in drawn:
        files += figure_files(data, out)
    runs = [(str(line["name"]), str(line["status"])) for line in listing(root)] if root.is_dir() else []
    source = out / "paper.tex"
    source.write_text(_latex(held, drawn, runs), encoding="utf-8")
    engine = next((name for name in ENGINES if shutil.which(name)), None)
    try:
        if engine is None:
            raise SetupError(f"No LaTeX is installed ({', '.join(ENGINES)}).")
        return Paper(compile_latex(source, engine), (*files, source))
    except SetupError as error:
        page = out / "paper.html"
        page.write_text(_html(held, drawn, runs, out), encoding="utf-8")
        return Paper(page, (*files, source), f"{error} An HTML page instead of a PDF.")


def figure_files(data: FigureData, out: Path, kinds: Sequence[str] = FORMATS) -> list[Path]:
    """The drawing in each format, and its numbers as CSV."""
    found = [save(data, out / f"{data.name}.{kind}") for kind in kinds]
    numbers = out / f"{data.name}.csv"
    numbers.write_text(data.to_csv(), encoding="utf-8")
    return [*found, numbers]


def _tables() -> list[str]:
    """The numbered ones first."""
    return sorted(definition.names(), key=lambda name: (not name.startswith("table"), name))


def _has(table: str, env: str | None) -> bool:
    columns = definition.define(table).columns
    return env is None or any({**column.select, **column.measured}.get("env") == env for column in columns)


def _figure_has(figure: str, env: str | None) -> bool:
    spec = figure_definition.define_figure(figure)
    return _has(spec.table, env) and (env is None or not spec.mean)


# --- LaTeX ------------------------------------------------------------------------------------------------------------
def compile_latex(source: Path, engine: str) -> Path:
    """The PDF of `source`, beside it. The work is done in a folder of its own: no auxiliary files stay.

    Raises SetupError with LaTeX's own complaint.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for path in source.parent.iterdir():
            if path.suffix in (".tex", ".pdf") and path.name != f"{source.stem}.pdf":
                shutil.copy(path, scratch)
        try:
            done = subprocess.run(
                [engine, *ENGINES[engine], source.name],
                cwd=scratch,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=SECONDS,
                env={**os.environ, "SOURCE_DATE_EPOCH": "0", "max_print_line": "1000"},
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SetupError(f"{engine} did not finish {source} within {SECONDS} s.") from error
        made = Path(scratch) / f"{source.stem}.pdf"
        if done.returncode or not made.is_file():
            lines = [line for line in done.stdout.splitlines() if line.startswith("!")] or done.stdout.splitlines()[-1:]
            raise SetupError(
                f"{engine} refuses {source}: {' '.join(lines[:1])}", "Is a package of LaTeX missing? See docs/how-to/paper.md."
            )
        shutil.copy(made, source.with_suffix(".pdf"))
    return source.with_suffix(".pdf")


def _latex(held: Sequence[Table], drawn: Sequence[FigureData], runs: Sequence[tuple[str, str]]) -> str:
    out = [
        PREAMBLE,
        r"\begin{document}",
        r"\section*{Tables and figures}",
        escape(_intro(runs)),
        *(rf"\input{{{table.name}.tex}}\clearpage" for table in held),
        *(line for data in drawn for line in _figure_latex(data)),
    ]
    if runs:
        out += [r"\section*{Runs}", r"\footnotesize"]
        out += [escape(f"{name}: {status}") + r"\par" for name, status in runs]
    return "\n".join([*out, r"\end{document}", ""])


def _intro(runs: Sequence[tuple[str, str]]) -> str:
    return (
        f"Made by MemArena {__version__} from {len(runs)} runs, which are listed at the end. Reported is what a paper states;"
        " measured is what these runs found. One never stands in for the other."
    )


def _figure_latex(data: FigureData) -> list[str]:
    return [
        r"\begin{figure}[htbp]",
        r"\centering",
        rf"\includegraphics[width=\linewidth]{{{data.name}.pdf}}",
        rf"\caption{{{escape(data.spec.title)}. {escape(' '.join(data.notes))}}}",
        rf"\label{{fig:{data.name}}}",
        r"\end{figure}",
        r"\clearpage",
    ]


# --- HTML -------------------------------------------------------------------------------------------------------------
_CSS = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}"
    "table{border-collapse:collapse;font-size:13px;margin:1rem 0;display:block;overflow-x:auto}"
    "th,td{padding:.2rem .6rem;text-align:left;white-space:nowrap}thead{border-top:2px solid;border-bottom:1px solid}"
    "tbody{border-bottom:2px solid}tr.block td{border-top:1px solid #999}"
    "p.note{font-size:12px;margin:.2rem 0;color:#333}img{width:100%}"
)


def _html(held: Sequence[Table], drawn: Sequence[FigureData], runs: Sequence[tuple[str, str]], folder: Path) -> str:
    """One file that needs no other: the figures are inside."""
    body = ["<h1>Tables and figures</h1>", f"<p>{html.escape(_intro(runs))}</p>"]
    for table in held:
        body.append(f"<h2>{html.escape(table.title)}</h2>")
        body += [_sheet(sheet) for sheet in table.sheets]
        body += [f'<p class="note">{html.escape(note)}</p>' for note in table.brief]
    for data in drawn:
        picture = base64.b64encode((folder / f"{data.name}.svg").read_bytes()).decode()
        title = html.escape(data.spec.title)
        body += [f"<h2>{title}</h2>", f'<img alt="{title}" src="data:image/svg+xml;base64,{picture}">']
        body += [f'<p class="note">{html.escape(note)}</p>' for note in data.notes]
    body += ["<h2>Runs</h2>", "<ul>", *(f"<li>{html.escape(name)}: {html.escape(status)}</li>" for name, status in runs), "</ul>"]
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>MemArena</title><style>{_CSS}</style>'
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _sheet(sheet: Sheet) -> str:
    rows = []
    for index, line in enumerate(sheet.lines):
        rule = ' class="block"' if index and sheet.blocks[index] != sheet.blocks[index - 1] else ""
        cells = [html.escape(cell) for cell in line]
        bold = [f"<b>{cell}</b>" if (index, place) in sheet.best else cell for place, cell in enumerate(cells)]
        rows.append(f"<tr{rule}>{''.join(f'<td>{cell}</td>' for cell in bold)}</tr>")
    head = "".join(f"<th>{html.escape(one.flat)}</th>" for one in sheet.heads)
    title = f"<h3>{html.escape(sheet.title)}</h3>" if sheet.title else ""
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
