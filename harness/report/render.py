"""A finished table and its three forms: Markdown for reading, LaTeX for a paper, CSV for computing on."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
class Table:
    """A table as text cells (`lines`), and the same as typed records (`records`), one a row, column and run.

    `blocks` says for each line which block it belongs to: LaTeX rules them off. `notes` are printed below in order.
    """

    name: str
    title: str
    heads: tuple[Head, ...]
    lines: tuple[tuple[str, ...], ...]
    blocks: tuple[str, ...]
    notes: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]

    def to_markdown(self) -> str:
        """A padded Markdown table with its notes, readable as it is; ends without a newline."""
        rows = [tuple(head.flat for head in self.heads), *self.lines]
        cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        widths = [max(3, *(width(row[index]) for row in cells)) for index in range(len(self.heads))]

        def line(row: Sequence[str]) -> str:
            return "| " + " | ".join(pad(cell, to) for cell, to in zip(row, widths, strict=True)) + " |"

        rule = "|" + "|".join("-" * (to + 2) for to in widths) + "|"
        notes = [f"- {note}" for note in self.notes]
        body = [line(cells[0]), rule, *map(line, cells[1:])]
        return "\n".join([f"### {self.name}: {self.title}", "", *body, *([""] if notes else []), *notes])

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
        """A `table` environment; needs the package booktabs. Ends without a newline."""
        shared = self._shared_heads()
        out = [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape(self.title)}}}",
            rf"\label{{tab:{''.join(char for char in self.name if char.isalnum() or char in '-_')}}}",
            rf"\begin{{tabular}}{{{'l' * len(self.heads)}}}",
            r"\toprule",
            *shared,
            " & ".join(escape(head.label) for head in self.heads) + r" \\",
            r"\midrule",
        ]
        for index, line in enumerate(self.lines):
            if index and self.blocks[index] != self.blocks[index - 1]:
                out.append(r"\midrule")
            out.append(" & ".join(map(escape, line)) + r" \\")
        out += [r"\bottomrule", r"\end{tabular}"]
        if self.notes:
            out += ["", r"\medskip", r"\raggedright\footnotesize", *(escape(note) + r"\par" for note in self.notes)]
        return "\n".join([*out, r"\end{table}"])

    def _shared_heads(self) -> list[str]:
        """The upper heading line with its rules, where any column has a group."""
        if not any(head.group for head in self.heads):
            return []
        cells, rules, place = [], [], 1
        for group, members in itertools.groupby(self.heads, key=lambda head: head.group):
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
    """`text` for LaTeX: specials escaped, the signs that tables use as commands, other characters as they are."""
    return "".join(_LATEX.get(char, char) for char in text)


def _plain(value: Any) -> Any:
    """Booleans as true and false, None as an empty field; numbers in full."""
    return {None: "", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else value
