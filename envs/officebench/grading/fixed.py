"""The nine checks without the slips of the official ones. Each deviation, and the tasks it matters for, is listed in DEVIATIONS.

What is kept: all keywords as parts of a text in lower case, all checks of a task must hold, an exception is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from envs.officebench import readers
from envs.officebench.grading import official
from envs.officebench.grading.official import Arguments
from envs.officebench.grading.places import Places

DEVIATIONS: Mapping[str, str] = {
    "not_contain": "passes only where the file is there and none of the keywords is in it; officially one missing keyword is "
    "enough, and so is a missing file",
    "numbers": "a numeric keyword is a whole number of the text, commas aside ('5' is not in '2025'); officially any digits do, "
    "and the text has lost its commas for the keywords that follow",
    "short_words": "a keyword of at most three letters is a whole word ('no' is not in 'None'); officially it is any part",
    "mailbox": "the mailbox is found whatever the case of its name, a missing one is empty, and a mail without a charset is read "
    "as UTF-8; officially the search stops with an error, and one such mail hides the whole mailbox",
    "documents": "the text of a document has its tables too, that of a workbook all its sheets, that of a calendar its unfolded "
    "lines",
    "cell_value": "the cell's text has the value as whole words in any case, or is the same number; officially the value is "
    "compared with the beginning of the text",
    "misplaced_file": "a file named beside the arguments counts as named in them; officially the check fails (six tasks)",
    "diff": "keywords are looked for in the values of changed rows; officially also in the heads of the diff and in coordinates",
    "exact_match": "documents and PDFs are compared by their text (officially they never match), workbooks on all sheets, and a "
    "number written as text is that number",
    "comparator": "the value is the whole text of the cell; officially one word of it",
    "calendar": "all-day events last a day, an event without an end has its duration or none, and the definition of a time zone "
    "is no event; officially each of these is a failure",
    "doc_type": "a file whose name ends in xlsx, docx or pdf is read as one; officially a document declared a workbook fails",
    "files": "a folder of the name is not the file",
}


def arguments_of(item: Mapping[str, Any]) -> Arguments:
    """The arguments of a check, with the file that may stand beside them."""
    return {**({"file": item["file"]} if "file" in item else {}), **item["args"]}


def kind_of(arguments: Arguments) -> str:
    """The type of a file: the declared one, unless its name says that it is another of workbook, document and PDF."""
    suffix = Path(arguments["file"]).suffix.removeprefix(".")
    return suffix if suffix in ("xlsx", "docx", "pdf") else str(arguments["doc_type"])


def keyword_in(keyword: str, text: str) -> bool:
    """Whether lower-case `text` has `keyword`: a number as a whole number, a short word as a word, anything else as a part."""
    keyword = keyword.lower().strip()
    if len(keyword) <= 3 and keyword.isalpha():
        return re.search(rf"(?<!\w){keyword}(?!\w)", text) is not None
    if not official.is_number(keyword) or not re.search(r"\d", keyword):
        return keyword in text
    return re.search(rf"(?<!\d)(?<!\d\.){re.escape(keyword)}(?:\.0+)?(?!\.?\d)", text.replace(",", "")) is not None


def has_keywords(text: str, keywords: Sequence[str]) -> bool:
    return all(keyword_in(keyword, text.lower()) for keyword in keywords)


def _mail(places: Places, user: str) -> str:
    folder = places.workspace / "emails"
    boxes = [box for box in sorted(folder.iterdir()) if box.name.lower() == user.lower()] if folder.is_dir() else []
    return "\n".join(readers.mailbox_text(box, strict=False) for box in boxes if readers.mailbox_files(box))


def _document(path: Path) -> str:
    from docx import Document

    document = Document(str(path))
    tables = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *tables])


def _sheets(path: Path) -> dict[str, dict[tuple[int, int], Any]]:
    """The values of every sheet by (row, column); empty cells are left out."""
    import openpyxl

    return {
        sheet.title: {(cell.row, cell.column): cell.value for row in sheet.iter_rows() for cell in row if cell.value is not None}
        for sheet in openpyxl.load_workbook(path).worksheets
    }


def _workbook(path: Path) -> str:
    return "\n".join("\t".join(str(value) for value in sheet.values()) for sheet in _sheets(path).values())


def _plain(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _calendar(path: Path) -> str:
    """A line of a calendar goes on in the next one after a blank (RFC 5545, 3.1)."""
    return re.sub(r"\r?\n[ \t]", "", _plain(path))


def _text(kind: str, path: Path) -> str:
    reader = {
        "xlsx": _workbook,
        "txt": _plain,
        "ics": _calendar,
        "doc": _document,
        "docx": _document,
        "pdf": readers.pdf_text,
    }[kind]
    return reader(path)


def contain(places: Places, arguments: Arguments) -> bool:
    if arguments["doc_type"] == "email":
        return has_keywords(_mail(places, arguments["username"]), arguments["keywords"])
    path = places.path(arguments["file"])
    return path.is_file() and has_keywords(_text(kind_of(arguments), path), arguments["keywords"])


def not_contain(places: Places, arguments: Arguments) -> bool:
    if arguments["doc_type"] == "email":
        text = _mail(places, arguments["username"])
    else:
        text = _text(kind_of(arguments), places.path(arguments["file"]))
    return not any(keyword_in(keyword, text.lower()) for keyword in arguments["keywords"])


def file_exist(places: Places, arguments: Arguments) -> bool:
    return places.path(arguments["file"]).is_file()


def file_not_exist(places: Places, arguments: Arguments) -> bool:
    return not places.path(arguments["file"]).is_file()


def diff_contain_text(places: Places, arguments: Arguments) -> bool:
    """The rows that are in one of the files only (by their values), and what they hold."""
    if arguments["doc_type"] != "xlsx":
        rows = [set(_text(arguments["doc_type"], places.path(arguments[n])).splitlines()) for n in ("input_file", "output_file")]
    else:
        rows = [_rows(places.path(arguments[name])) for name in ("input_file", "output_file")]
    changed = "\n".join(sorted(rows[0] ^ rows[1]))
    return bool(changed) and has_keywords(changed, arguments["keywords"])


def _rows(path: Path) -> set[str]:
    rows: dict[tuple[str, int], list[str]] = {}
    for title, sheet in _sheets(path).items():
        for (row, _), value in sheet.items():
            rows.setdefault((title, row), []).append(str(value))
    return {"\t".join(values) for values in rows.values()}


def excel_cell_value(places: Places, arguments: Arguments) -> bool:
    path = places.path(arguments["file"])
    if not path.is_file():
        return False
    sheet = official.active_cells(path)
    return all(_says(sheet.get((int(m["row"]), int(m["col"]))), str(m["value"])) for m in arguments["matches"])


def _says(cell: Any, value: str) -> bool:
    """Whether a cell's text is the number `value`, or has it as whole words."""
    if cell is None:
        return False
    if (number := _number(value)) is not None:
        return _number(cell) == number
    return re.search(rf"(?<!\w){re.escape(value.lower().strip())}(?!\w)", str(cell).lower()) is not None


def _number(value: Any) -> float | None:
    text = str(value).replace(",", "").strip()
    return float(text) if official.is_number(text) else None


def excel_cell_comparator(places: Places, arguments: Arguments) -> bool:
    sheet = official.active_cells(places.path(arguments["file"]))
    return all(
        str(sheet.get((int(m["row"]), int(m["col"])))).strip() in official.listed(m["comparator"]) for m in arguments["matches"]
    )


def exact_match(places: Places, arguments: Arguments) -> bool:
    result, expected = places.path(arguments["result_file"]), places.path(arguments["expected_file"])
    if not result.is_file():
        return False
    if arguments["doc_type"] != "xlsx":
        return _text(arguments["doc_type"], result).split() == _text(arguments["doc_type"], expected).split()
    found, wanted = ([_comparable(sheet) for sheet in _sheets(path).values() if sheet] for path in (result, expected))
    return found == wanted


def _comparable(sheet: Mapping[tuple[int, int], Any]) -> dict[tuple[int, int], Any]:
    values = {place: _number(value) for place, value in sheet.items()}
    return {place: value if values[place] is None else values[place] for place, value in sheet.items()}


def calendar_no_overlap(places: Places, arguments: Arguments) -> bool:
    from icalendar import Calendar

    path = places.workspace / "calendar" / f"{arguments['username']}.ics"
    spans = sorted(_span(event) for event in Calendar.from_ical(path.read_bytes()).walk("VEVENT"))
    return all(first[1] <= second[0] for first, second in pairwise(spans))


def _span(event: Any) -> tuple[datetime, datetime]:
    """Start and end of an event, in UTC where it names no zone."""
    start = event["dtstart"].dt
    if "dtend" in event:
        end = event["dtend"].dt
    elif "duration" in event:
        end = start + event["duration"].dt
    else:
        end = start if isinstance(start, datetime) else start + timedelta(days=1)
    return _moment(start), _moment(end)


def _moment(value: date) -> datetime:
    return official.moment(value if isinstance(value, datetime) else datetime.combine(value, time(), UTC))
