"""To PDF: the excel and word apps' convert_to_pdf. The result lies at the path that was asked for; the official apps keep the
source's name and use only the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .programs import office_to_pdf
from .workspace import Refused, Workspace


def word_to_pdf(space: Workspace, arguments: Mapping[str, Any]) -> str:
    return _to_pdf(space, arguments, "word_file_path")


def excel_to_pdf(space: Workspace, arguments: Mapping[str, Any]) -> str:
    return _to_pdf(space, arguments, "excel_file_path")


def _to_pdf(space: Workspace, arguments: Mapping[str, Any], source: str) -> str:
    path = space.existing(arguments, source)
    target = space.new(arguments, "pdf_file_path")
    try:
        content = office_to_pdf(path)
    except Refused as error:
        raise Refused(f"{space.shown(path)} cannot be converted: {error}") from error
    target.write_bytes(content)
    return f"Successfully converted {space.shown(path)} to {space.shown(target)}."
