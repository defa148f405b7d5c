"""Made-up files for the tests of OfficeBench's apps and readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def workbook(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    book.save(path)
    return path


def document(path: Path, paragraphs: Sequence[str]) -> Path:
    import docx

    made = docx.Document()
    for paragraph in paragraphs:
        made.add_paragraph(paragraph)
    made.save(str(path))
    return path


def pdf(path: Path, pages: Sequence[Sequence[str]]) -> Path:
    """A PDF with a line of Helvetica, 14 points, per text; a page of 400 × 300 points per list."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = " 0 -20 Td ".join(f"({line}) Tj" for line in lines)
        stream = f"BT /F1 14 Tf 40 240 Td {shown} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        contents = len(objects)
        fonts = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] {fonts} /Contents {contents} 0 R >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    written, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(written))
        written += f"{number} 0 obj\n{body}\nendobj\n"
    start = len(written)
    written += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    written += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    path.write_bytes(written.encode("latin-1"))
    return path


def image(path: Path, text: str, *, mode: str = "RGB", background: Any = "white") -> Path:
    """Black text, 40 pixels high."""
    from PIL import Image, ImageDraw, ImageFont

    made = Image.new(mode, (900, 120), background)
    ImageDraw.Draw(made).text((30, 30), text, fill="black", font=ImageFont.load_default(40))
    made.save(path)
    return path


def mail(path: Path, *, content: str = "Hello", head: str = "Content-Type: text/plain; charset=utf-8\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    top = "From: ann@example.com\nTo: ben@example.com\nSubject: Lunch\n"
    path.write_bytes(f"{top}{head}\n{content}\n".encode())
    return path


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//made up//EN
BEGIN:VTIMEZONE
TZID:America/New_York
BEGIN:STANDARD
DTSTART:20071104T020000
TZOFFSETFROM:-0400
TZOFFSETTO:-0500
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
SUMMARY:Zoned
DTSTART;TZID=America/New_York:20240501T090000
DTEND;TZID=America/New_York:20240501T100000
LOCATION:Room 1
END:VEVENT
BEGIN:VEVENT
SUMMARY:Universal
DTSTART:20240501T120000Z
DTEND:20240501T130000Z
END:VEVENT
BEGIN:VEVENT
SUMMARY:Floating
DTSTART:20240501T150000
END:VEVENT
BEGIN:VEVENT
SUMMARY:All day
DTSTART;VALUE=DATE:20240502
DTEND;VALUE=DATE:20240503
DESCRIPTION:Off
END:VEVENT
END:VCALENDAR
"""
