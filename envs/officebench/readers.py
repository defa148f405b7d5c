"""The text forms of OfficeBench's files: what the apps show and what the graders search.

Separators, order and headings are those of the official benchmark (zlwang-cs/OfficeBench, apps/*), since its checks look for
substrings in these very texts. Stands alone: the apps use it inside the sandbox, the graders on the host, so that it imports
nothing of the project and gives the same text on both sides.

Functions raise what the libraries raise (OSError, zipfile.BadZipFile, ValueError, …) where a file is absent or of another kind.
"""

from __future__ import annotations

from email import policy
from email.message import EmailMessage, Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

EMPTY_CELL = "[Empty Cell]"
RULE = "-" * 50 + "\n"
NO_EMAILS = "No emails found."
EMAILS_FAILED = "Error: Failed to list emails."
PREVIEW = 20  # characters of a mail's content in a list, as in the official app


def workbook_text(path: Path | str) -> str:
    """The active sheet from its first to its last used cell: `(row, column): value` and a tab a cell, a newline a row.

    Rows and columns count from 1; formulas stand as they were written; an empty cell reads `[Empty Cell]`.
    """
    import openpyxl

    sheet = openpyxl.load_workbook(path).active
    if sheet is None or not hasattr(sheet, "iter_rows"):
        raise ValueError("the active sheet holds no cells")
    rows = []
    for row in sheet.iter_rows():
        cells = (f"({cell.row}, {cell.column}): {EMPTY_CELL if cell.value is None else cell.value}\t" for cell in row)
        rows.append("".join(cells) + "\n")
    return "".join(rows)


def document_text(path: Path | str) -> str:
    """The body's paragraphs, a line each; tables, headers and footers are left out."""
    import docx

    return "\n".join(paragraph.text for paragraph in docx.Document(str(path)).paragraphs)


def pdf_text(path: Path | str) -> str:
    """The text of all pages, one right behind the other.

    The official benchmark reads with PyPDF2, which ended as pypdf began: nearly the same characters, but pypdf parts some words
    and cells by a space where PyPDF2 writes them together.
    """
    from pypdf import PdfReader

    return "".join(page.extract_text() for page in PdfReader(path).pages)


def plain_text(path: Path | str) -> str:
    """A txt or ics file as it is."""
    return Path(path).read_text(encoding="utf-8")


def _decoded(part: Message, strict: bool) -> str:
    payload = part.get_payload(decode=True)
    charset = part.get_content_charset()
    if not isinstance(payload, bytes) or (strict and charset is None):
        raise ValueError("a part of the mail names no charset")
    try:
        return payload.decode(charset or "utf-8", errors="replace")
    except LookupError:
        if strict:
            raise
        return payload.decode("utf-8", errors="replace")


def _content(mail: EmailMessage, strict: bool) -> str:
    if not mail.is_multipart():
        return _decoded(mail, strict)
    parts = (part for part in mail.iter_parts() if part.get_content_type() in ("text/plain", "text/html"))
    return "\n".join(_decoded(part, strict) for part in parts)


def _mail(path: Path | str, strict: bool) -> tuple[str, str]:
    """Head (From, To, Subject; a line each) and content. `strict` raises ValueError or LookupError where no charset is known."""
    mail = BytesParser(policy=policy.default).parsebytes(Path(path).read_bytes())
    assert isinstance(mail, EmailMessage)
    head = "".join(f"{name}: {mail[name]}\n" for name in ("From", "To", "Subject"))
    return head, _content(mail, strict)


def email_text(path: Path | str, *, strict: bool = False) -> str:
    """One mail: From, To, Subject, Content; the official app puts three dots behind the content.

    `strict=True` raises, as the official reader does, where a text part names no charset or an unknown one; False reads it as
    UTF-8 with replacement characters.
    """
    head, content = _mail(path, strict)
    return f"{head}Content: {content}...\n"


def mailbox_files(folder: Path) -> list[Path]:
    """The mails of a mailbox by name. The official order is the file system's; hidden files count in neither."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix == ".eml" and not path.name.startswith("."))


def mailbox_text(folder: Path, *, strict: bool = True, preview: int | None = None) -> str:
    """All mails of a mailbox: Email ID, From, To, Subject, Content and a rule each; `NO_EMAILS` where there is none.

    `preview` cuts each content to that many characters and puts three dots behind it; None (the graders') gives all of it.
    `strict=True` is the official reader: a single mail that it cannot decode makes it give up the whole mailbox. It raises
    nothing then but *returns* the text `EMAILS_FAILED`, so that a check of what must not be contained passes.
    False reads what can be read and names the files that cannot be.
    """
    parts = []
    for path in mailbox_files(folder):
        try:
            head, content = _mail(path, strict)
        except Exception as error:  # the parser's errors for broken mails are of many kinds
            if strict:
                return EMAILS_FAILED
            parts.append(f"Email ID: {path.name}\nThis mail cannot be read ({type(error).__name__}).\n{RULE}")
            continue
        shown = content if preview is None else content[:preview] + "..."
        parts.append(f"Email ID: {path.name}\n{head}Content: {shown}\n{RULE}")
    return "".join(parts) or NO_EMAILS


def _moment(value: Any) -> str:
    """Local time as it stands in the file, whatever its zone; a date alone is its midnight; None where there is none."""
    return str(value.dt.strftime("%Y-%m-%d %H:%M:%S")) if value else "None"


def calendar_text(path: Path | str) -> str:
    """All events in the file's order: Summary, Start Time, End Time, Description, Location and a rule each; "" without events."""
    from icalendar import Calendar

    parts = []
    for event in Calendar.from_ical(Path(path).read_bytes()).walk("VEVENT"):
        lines = [f"Summary: {event.get('summary')}", f"Start Time: {_moment(event.get('dtstart'))}"]
        lines += [f"End Time: {_moment(event.get('dtend'))}"]
        lines += [f"Description: {event.get('description')}", f"Location: {event.get('location')}"]
        parts.append("\n".join(lines) + "\n" + RULE)
    return "".join(parts).strip()


def read_as(kind: str, path: Path | str) -> str:
    """The text form of a file by the official `doc_type`: xlsx, doc, docx, pdf, txt or ics. Raises ValueError for others."""
    readers = {"xlsx": workbook_text, "doc": document_text, "docx": document_text, "pdf": pdf_text}
    readers |= {"txt": plain_text, "ics": plain_text}
    if kind not in readers:
        raise ValueError(f"There is no reader for files of the kind {kind!r}; known are {', '.join(readers)}.")
    return readers[kind](path)
