"""The pdf app: text by pypdf, images and the layout of text by poppler, documents by python-docx."""

from __future__ import annotations

import io
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..readers import pdf_text
from .programs import reason, run
from .workspace import Refused, Workspace

_DPI = 72  # a pixel a point, the official renderer's default
_COLUMN = 0.4  # of a page's width: what is narrower (an address, a form) is no running text, and its lines are not joined
_TAG = "{http://www.w3.org/1999/xhtml}"


def read_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    path = space.existing(arguments, "pdf_file_path")
    try:
        content = pdf_text(path)
    except Exception as error:
        raise Refused(f"{space.shown(path)} cannot be read as a PDF ({type(error).__name__}).") from error
    if not content.strip():
        return f"{space.shown(path)} holds no text; if its pages are images, convert one to an image and read that with ocr."
    return content


def convert_to_image(space: Workspace, arguments: Mapping[str, Any]) -> str:
    from PIL import Image

    path = space.existing(arguments, "pdf_file_path")
    target = space.new(arguments, "image_file_path")
    kind = Image.registered_extensions().get(target.suffix.lower())
    if kind not in Image.SAVE:
        raise Refused(f"{target.suffix or 'A name without an ending'} is no kind of image; use .png or .jpg.")
    with tempfile.TemporaryDirectory() as folder:
        options = ["-r", str(_DPI), "-f", "1", "-l", "1", "-singlefile", "-png"]
        done = run(["pdftoppm", *options, str(path), f"{folder}/page"])
        page = Path(folder, "page.png")
        if not page.is_file():
            raise Refused(f"{space.shown(path)} cannot be converted: {reason(done)}.")
        content = io.BytesIO()
        with Image.open(page) as image:
            image.convert("RGB").save(content, format=kind)
    target.write_bytes(content.getvalue())
    return f"Successfully wrote the first page of {space.shown(path)} to {space.shown(target)}."


def convert_to_word(space: Workspace, arguments: Mapping[str, Any]) -> str:
    """Text only: a paragraph a block of the page, without images, tables and fonts."""
    import docx

    path = space.existing(arguments, "pdf_file_path")
    target = space.new(arguments, "word_file_path")
    done = run(["pdftotext", "-bbox-layout", str(path), "-"])
    if done.returncode != 0:
        raise Refused(f"{space.shown(path)} cannot be converted: {reason(done)}.")
    document = docx.Document()
    for paragraph in paragraphs(done.stdout):
        document.add_paragraph(paragraph)
    content = io.BytesIO()
    document.save(content)
    target.write_bytes(content.getvalue())
    return f"Successfully converted {space.shown(path)} to {space.shown(target)}."


def paragraphs(layout: bytes) -> Iterator[str]:
    """The blocks of poppler's layout (XHTML with a box around each page, block, line and word), as text.

    A line goes on in the next one where that one's first word would not have fitted into it; else it ends with a break.
    """
    clean = "".join(sign for sign in layout.decode("utf-8", "replace") if sign >= " " or sign in "\n\t")
    for page in ElementTree.fromstring(clean).iter(f"{_TAG}page"):
        column = _COLUMN * float(page.get("width", 0))
        for block in page.iter(f"{_TAG}block"):
            edge = max(float(block.get("xMax", 0)), float(block.get("xMin", 0)) + column)
            if whole := _joined([list(line.iter(f"{_TAG}word")) for line in block.iter(f"{_TAG}line")], edge).strip():
                yield whole


def _joined(lines: list[list[ElementTree.Element]], edge: float) -> str:
    parts: list[str] = []
    for line, following in zip(lines, [*lines[1:], []], strict=True):
        end = float(line[-1].get("xMax", 0)) if line else 0.0
        width = float(following[0].get("xMax", 0)) - float(following[0].get("xMin", 0)) if following else 0.0
        parts.append(" ".join(word.text or "" for word in line) + (" " if end + width > edge else "\n"))
    return "".join(parts)
