"""A finished table and its three forms: Markdown for reading, LaTeX for a paper, CSV for computing on."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.report.text import pad, width


@dataclass(frozen=True)
class Head:
    """A printed column: `group` is the heading it shares with its neighbours (empty: none)."""

    group: str
    label: str

    @property
    def flat(self) -> str:
        return f"{self.group} {self.label}".strip()


@dataclass(frozen=True)
class Sheet:
    """A part of a table in its compact form. `best` holds the places (line, column) that a page prints bold; `grouped`: the
    first column names the block, which a page does once."""

    title: str
    heads: tuple[Head, ...]
    lines: tuple[tuple[str, ...], ...]
    blocks: tuple[str, ...]
    best: frozenset[tuple[int, int]] = frozenset()
    grouped: bool = False


@dataclass(frozen=True)
class Table:
    """A table as text cells (`lines`), and the same as typed records (`records`), one a row, column and run.

    `blocks` says for each line which block it belongs to: LaTeX rules them off. `notes` are printed below in order. `sheets`
    (for a terminal), `pages` (for paper) and `brief` are the compact form: the same in fewer columns, and its notes.
    """

    name: str
    title: str
    heads: tuple[Head, ...]
    lines: tuple[tuple[str, ...], ...]
    blocks: tuple[str, ...]
    notes: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]
    sheets: tuple[Sheet, ...] = ()
    pages: tuple[Sheet, ...] = ()
    brief: tuple[str, ...] = ()

    def form(self, name: str, wide: bool = False) -> str:
        """The form `name`: markdown, csv or latex. CSV is always whole."""
        forms = {
            "markdown": self.to_markdown if wide else self.to_compact_markdown,
            "latex": self.to_latex if wide else self.to_compact_latex,
            "csv": self.to_csv,
        }
        return forms[name]()

    def save(self, folder: Path, wide: bool = False) -> list[Path]:
        """Write the three forms into `folder` and return their files."""
        folder.mkdir(parents=True, exist_ok=True)
        found = []
        for name, suffix in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
            path = folder / f"{self.name}.{suffix}"
            path.write_text(self.form(name, wide).rstrip("\n") + "\n", encoding="utf-8")
            found.append(path)
        return found

    def to_markdown(self) -> str:
        """A padded Markdown table with its notes, readable as it is; ends without a newline."""
        body = _markdown(Sheet("", self.heads, self.lines, self.blocks))
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"### {self.name}: {self.title}", "", *body, *([""] if notes else []), *notes])

    def to_compact_markdown(self) -> str:
        """The same for a terminal: a sheet below the other where they would be too wide beside each other."""
        out = [f"### {self.name}: {self.title}"]
        for sheet in self.sheets:
            out += ["", *([f"**{sheet.title} reported beside measured**", ""] if sheet.title else []), *_markdown(sheet)]
        return "\n".join([*out, "", *(f"- {note}" for note in self.brief)])

    def to_csv(self) -> str:
        """Tidy CSV: numbers unrounded, empty where nothing is known, one line a row, column and run."""
        if not self.records:
            return ""
        out = io.StringIO()
        writer = csv.DictWriter(out, list(self.records[0]), lineterminator="\n")
        writer.writeheader()
        for record in self.records:
            writer.writerow({key: _plain(value) for key, value in record.items()})
        return out.getvalue()

    def to_latex(self) -> str:
        """A `table` environment with everything; needs the package booktabs. Ends without a newline."""
        sheet = Sheet("", self.heads, self.lines, self.blocks)
        return "\n".join(
            [
                r"% needs \usepackage{booktabs}",
                r"\begin{table}",
                r"\centering",
                *self._caption("", ""),
                *_tabular(sheet),
                *_notes(self.notes),
                r"\end{table}",
            ]
        )

    def to_compact_latex(self) -> str:
        """A `table` environment a sheet, no wider than the page, the highest scores bold; the notes below the last one.

        Needs booktabs and graphicx, and for letters with accents T1 fonts. Ends without a newline.
        """
        out = [r"% needs \usepackage{booktabs}, \usepackage{graphicx} and \usepackage[T1]{fontenc}"]
        for index, sheet in enumerate(self.pages):
            out += [
                r"\begin{table}[htbp]",
                r"\centering\small",
                *self._caption(self._part(sheet), f"-{index + 1}" if index else ""),
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                *_tabular(sheet),
                "}",
                *(_notes(self.brief) if index == len(self.pages) - 1 else []),
                r"\end{table}",
            ]
        return "\n".join(out)

    def _part(self, sheet: Sheet) -> str:
        """Which columns a page shows, where there are several pages."""
        groups = dict.fromkeys(head.group for head in sheet.heads if head.group)
        return sheet.title or ("" if len(self.pages) == 1 else ", ".join(groups))

    def _caption(self, part: str, suffix: str) -> list[str]:
        title = f"{self.title}: {part}" if part else self.title
        label = "".join(char for char in self.name if char.isascii() and (char.isalnum() or char in "-_"))
        return [rf"\caption{{{escape(title)}}}", rf"\label{{tab:{label}{suffix}}}"]


# --- Markdown ---------------------------------------------------------------------------------------------------------
def _cells(sheet: Sheet) -> tuple[list[list[str]], list[int]]:
    rows = [tuple(head.flat for head in sheet.heads), *sheet.lines]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return cells, [max(3, *(width(row[index]) for row in cells)) for index in range(len(sheet.heads))]


def markdown_width(sheet: Sheet) -> int:
    """Columns that a line of the sheet takes in a terminal."""
    _, widths = _cells(sheet)
    return sum(widths) + 3 * len(widths) + 1


def latex_width(sheet: Sheet) -> int:
    """Characters that a line takes on a page, where the groups of columns have a heading line of their own."""
    rows = [tuple(head.label for head in sheet.heads), *sheet.lines]
    return sum(max(width(row[index]) for row in rows) + 2 for index in range(len(sheet.heads)))


def _markdown(sheet: Sheet) -> list[str]:
    cells, widths = _cells(sheet)

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(pad(cell, to) for cell, to in zip(row, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (to + 2) for to in widths) + "|"
    return [line(cells[0]), rule, *map(line, cells[1:])]


# --- LaTeX ------------------------------------------------------------------------------------------------------------
def _tabular(sheet: Sheet) -> list[str]:
    out = [
        rf"\begin{{tabular}}{{{'l' * len(sheet.heads)}}}",
        r"\toprule",
        *_shared_heads(sheet.heads),
        " & ".join(escape(head.label) for head in sheet.heads) + r" \\",
        r"\midrule",
    ]
    for index, line in enumerate(sheet.lines):
        if index and sheet.blocks[index] != sheet.blocks[index - 1]:
            out.append(r"\midrule")
        if index and sheet.grouped and sheet.blocks[index] == sheet.blocks[index - 1]:
            line = ("", *line[1:])  # on a page the rules show how far a group goes
        cells = [_bold(escape(cell)) if (index, place) in sheet.best else escape(cell) for place, cell in enumerate(line)]
        out.append(" & ".join(cells) + r" \\")
    return [*out, r"\bottomrule", r"\end{tabular}"]


def _bold(cell: str) -> str:
    """The number bold, what follows it (an arrow, an interval) as it is."""
    first, space, rest = cell.partition(" ")
    return rf"\textbf{{{first}}}{space}{rest}"


def _notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    return ["", r"\medskip", r"\raggedright\footnotesize", *(escape(note) + r"\par" for note in notes)]


def _shared_heads(heads: Sequence[Head]) -> list[str]:
    """The upper heading line with its rules, where any column has a group."""
    if not any(head.group for head in heads):
        return []
    cells, rules, place = [], [], 1
    for group, members in itertools.groupby(heads, key=lambda head: head.group):
        span = len(list(members))
        if group:
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escape(group)}}}")
            rules.append(rf"\cmidrule(lr){{{place}-{place + span - 1}}}")
        else:
            cells += [""] * span
        place += span
    return [" & ".join(cells) + r" \\", " ".join(rules)]


_LATEX: Mapping[str, str] = MappingProxyType(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",
        "]": "{]}",
        '"': "''",
        "–": "--",
        "−": "$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "→": r"$\rightarrow$",
        "≠": r"$\neq$",
        "Δ": r"$\Delta$",
        "…": r"\ldots{}",
        "“": "``",
        "”": "''",
    }
)


def escape(text: str) -> str:
    """`text` for LaTeX: specials escaped, the signs that tables use as commands, letters with accents as they are.

    A character that pdfTeX's fonts have not becomes its number, U+4E2D: a name from outside must not stop a paper.
    """
    return "".join(_LATEX.get(char) or (char if _printable(char) else f"U+{ord(char):04X}") for char in text)


def _printable(char: str) -> bool:
    """ASCII, and the letters of Latin-1 and Latin Extended-A that the T1 encoding holds or builds."""
    return " " <= char <= "~" or ("À" <= char <= "ſ" and char.isalpha() and char not in "ĸſĦħŦŧ")


def _plain(value: Any) -> Any:
    """Booleans as true and false, None as an empty field; numbers in full."""
    return {None: "", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else value
