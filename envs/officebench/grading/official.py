"""The nine checks as the official evaluation makes them, its slips included, so that numbers compare with published ones.

What a slip does is said where it happens; `fixed` mends them. One thing depends on where the official code runs: it reads
mailboxes from `/testbed`, so that on a host checks on mail fail. Here `/testbed` is the graded workspace, as in its container.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from envs.officebench import readers
from envs.officebench.grading.places import Places

Arguments = Mapping[str, Any]


def is_number(text: str) -> bool:
    """Whether Python reads `text` as a number: also `nan`, `inf` and `1_000`, but not `1,000`."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def has_keywords(text: str, keywords: list[str]) -> bool:
    """All keywords as parts of the text, in lower case. From the first number on, the text has lost its commas (for good)."""
    text = text.lower()
    for keyword in (word.lower() for word in keywords):
        if is_number(keyword):
            text = text.replace(",", "")
        if keyword not in text:
            return False
    return True


def _mail(places: Places, user: str) -> str:
    """The mailbox of `user`, whose folder may be in lower case. Where there is none, the official search stops with an error.

    One mail without a charset, and the text of the whole mailbox is the line `readers.EMAILS_FAILED`.
    """
    for name in (user, user.lower()):
        folder = places.workspace / "emails" / name
        if folder.exists():
            return readers.mailbox_text(folder, strict=True)
    raise LookupError(f"no mailbox of {user}")


def contain(places: Places, arguments: Arguments) -> bool:
    kind = arguments["doc_type"]
    if kind == "email":
        return has_keywords(_mail(places, arguments["username"]), arguments["keywords"])
    path = places.path(arguments["file"])
    if not path.is_file():
        return False
    return has_keywords(_pdf(path) if kind == "pdf" else readers.read_as(kind, path), arguments["keywords"])


def _pdf(path: Path) -> str:
    """The text of all pages by the official grader's own library, which writes some words together that pypdf parts."""
    from PyPDF2 import PdfReader

    return "".join(page.extract_text() for page in PdfReader(path).pages)


def not_contain(places: Places, arguments: Arguments) -> bool:
    """Passes unless *all* keywords are there; so it passes where the file is missing."""
    return not contain(places, arguments)


def file_exist(places: Places, arguments: Arguments) -> bool:
    return places.path(arguments["file"]).exists()


def file_not_exist(places: Places, arguments: Arguments) -> bool:
    return not places.path(arguments["file"]).exists()


def diff_contain_text(places: Places, arguments: Arguments) -> bool:
    """Keywords as they are written, anywhere in the unified diff: also in its heads, and among the coordinates of cells."""
    if arguments["doc_type"] != "xlsx":
        raise ValueError("the official code compares objects here that have no text")
    before, after = (readers.workbook_text(places.path(arguments[name])) for name in ("input_file", "output_file"))
    if before == after:
        return False
    diff = "\n".join(difflib.unified_diff(before.split("\n"), after.split("\n"), n=0))
    return all(keyword in diff for keyword in arguments["keywords"])


def excel_cell_value(places: Places, arguments: Arguments) -> bool:
    """`(row, column): value` as a part of the sheet's text: the beginning of a cell's text is enough."""
    path = places.path(arguments["file"])
    if not path.exists():
        return False
    text = readers.workbook_text(path)
    return all(f"({m['row']}, {m['col']}): {m['value']}" in text for m in arguments["matches"])


def excel_cell_comparator(places: Places, arguments: Arguments) -> bool:
    """The cell's text, a single word, is one of those that the comparator lists."""
    text = readers.workbook_text(places.path(arguments["file"]))
    for match in arguments["matches"]:
        found = re.search(rf"\({match['row']}, {match['col']}\): (\w+)\t", text)
        if found is None or found.group(1) not in listed(match["comparator"]):
            return False
    return True


def listed(comparator: str) -> list[str]:
    """The values of a comparator `lambda x: x in [...]`, the only form there is; nothing is evaluated. Raises ValueError."""
    tree = ast.parse(comparator.strip(), mode="eval").body
    if isinstance(tree, ast.Lambda) and isinstance(tree.body, ast.Compare) and isinstance(tree.body.ops[0], ast.In):
        values = ast.literal_eval(tree.body.comparators[0])
        if isinstance(values, list | tuple | set) and len(tree.body.ops) == 1:
            return list(values)
    raise ValueError(f"unknown comparator {comparator!r}")


def exact_match(places: Places, arguments: Arguments) -> bool:
    """The active sheets have equal values, cell by cell. Documents and PDFs never match: the official code compares objects."""
    result, expected = places.path(arguments["result_file"]), places.path(arguments["expected_file"])
    if not result.exists():
        return False
    kind = arguments["doc_type"]
    if kind in ("txt", "ics"):
        return readers.plain_text(result) == readers.plain_text(expected)
    if kind == "xlsx":
        return active_cells(result) == active_cells(expected)
    if kind in ("doc", "pdf"):
        return False
    raise ValueError(f"unknown document type {kind}")


def active_cells(path: Path) -> dict[tuple[int, int], Any]:
    """The values of the active sheet by (row, column); empty cells are left out."""
    import openpyxl

    rows = openpyxl.load_workbook(path).active.iter_rows()
    return {(cell.row, cell.column): cell.value for row in rows for cell in row if cell.value is not None}


def calendar_no_overlap(places: Places, arguments: Arguments) -> bool:
    """Neighbours in the order of their start do not overlap; times without a zone are UTC.

    Raises (a failure) for a missing calendar, an all-day event, an event without an end, and a time zone's definition.
    """
    from icalendar import Calendar

    path = places.workspace / "calendar" / f"{arguments['username']}.ics"
    calendar: Any = Calendar.from_ical(path.read_bytes())
    for part in calendar.subcomponents:
        moment(part["dtstart"].dt)
    events = sorted(calendar.walk("VEVENT"), key=lambda event: moment(event["dtstart"].dt))
    return all(moment(first["dtend"].dt) <= moment(second["dtstart"].dt) for first, second in pairwise(events))


def moment(value: Any) -> datetime:
    """`value` as a time with a zone. Raises TypeError for a date."""
    if not isinstance(value, datetime):
        raise TypeError(f"{value} is no time")
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
