"""The excel app, on openpyxl.

Cells are typed as in the official app: text that reads as a Python number or boolean is stored as that, quoted text without its
quotes, all else as text ("007", "1e" and dates stay text; a text that begins with = is a formula). Where the official app fails
or loses the value, this one does what was asked: "1,000" and "Smith, John" are stored as text (it refuses what reads as a tuple),
1 and True are stored (it writes an empty cell), None empties the cell (it leaves it), "a # b" stays whole (it drops a comment).
An emptied cell stays part of the sheet, so that the sheet's text still names it.
"""

from __future__ import annotations

import ast
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..readers import workbook_text
from .workspace import Refused, Workspace

_ROWS, _COLUMNS, _TEXT = 1_048_576, 16_384, 32_767  # what the file format holds: rows, columns, characters of a cell


def read_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    path = space.existing(arguments, "file_path")
    try:
        table = workbook_text(path)
    except Exception as error:
        raise _unreadable(space, path, error) from error
    return f"The active sheet of {space.shown(path)}:\n{table}"


def set_cell(space: Workspace, arguments: Mapping[str, Any]) -> str:
    if isinstance(arguments["text"], list | tuple | dict):
        raise Refused("A cell holds a single value; write the values one by one.")
    path = _write(space, arguments, cell_value(arguments["text"]))
    return f"Successfully wrote cell ({arguments['row_idx']}, {arguments['column_idx']}) of {space.shown(path)}."


def delete_cell(space: Workspace, arguments: Mapping[str, Any]) -> str:
    path = _write(space, arguments, "")
    return f"Successfully emptied cell ({arguments['row_idx']}, {arguments['column_idx']}) of {space.shown(path)}."


def create_new_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    import openpyxl

    path = space.new(arguments, "file_path")
    if path.exists():
        raise Refused(f"The file {space.shown(path)} exists already.")
    openpyxl.Workbook().save(path)
    return f"Successfully created the workbook {space.shown(path)}."


def cell_value(given: object) -> str | int | float | bool:
    """What is written to a cell for `given`; the empty text is read back as an empty cell."""
    text = str(given)
    if text == "None":
        return ""
    if "#" in text:  # Python would take it for a comment
        return text
    try:
        value = ast.literal_eval(ast.parse(text, mode="eval"))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if isinstance(value, float):
        return value if math.isfinite(value) else text
    return value if isinstance(value, str | int) else text


def _write(space: Workspace, arguments: Mapping[str, Any], value: str | int | float) -> Path:
    import openpyxl
    from openpyxl.utils.exceptions import IllegalCharacterError

    path = space.existing(arguments, "file_path")
    row, column = _index(arguments, "row_idx", _ROWS), _index(arguments, "column_idx", _COLUMNS)
    if isinstance(value, str) and len(value) > _TEXT:
        raise Refused(f"A cell holds at most {_TEXT} characters.")
    try:
        book = openpyxl.load_workbook(path)
    except Exception as error:
        raise _unreadable(space, path, error) from error
    if not hasattr(book.active, "iter_rows"):
        raise Refused(f"The active sheet of {space.shown(path)} has no cells.")
    try:
        book.active.cell(row, column).value = value
    except IllegalCharacterError as error:
        raise Refused("The text holds control characters, which a cell cannot.") from error
    except AttributeError as error:
        raise Refused(f"Cell ({row}, {column}) is part of a merged cell; write its first cell.") from error
    content = io.BytesIO()  # so that nothing is half written if it fails
    book.save(content)
    path.write_bytes(content.getvalue())
    return path


def _index(arguments: Mapping[str, Any], name: str, most: int) -> int:
    try:
        value = float(str(arguments[name]))
    except ValueError:
        value = math.nan
    if not 1 <= value <= most or value != int(value):
        raise Refused(f"{name} must be a whole number from 1 to {most}.")
    return int(value)


def _unreadable(space: Workspace, path: Path, error: Exception) -> Refused:
    return Refused(f"{space.shown(path)} cannot be read as a workbook ({type(error).__name__}).")
