"""The word app, on python-docx.

As in the official app a text becomes one paragraph at the end (line breaks stay inside it), and creating a document replaces
one of the same name. Quotes are kept; the official app drops them on their way through a shell.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ..readers import document_text
from .workspace import Refused, Workspace, text


def read_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    path = space.existing(arguments, "file_path")
    try:
        content = document_text(path)
    except Exception as error:
        raise Refused(f"{space.shown(path)} cannot be read as a Word document ({type(error).__name__}).") from error
    if not content.strip():
        return f"{space.shown(path)} holds no text in paragraphs."
    return f"The text of {space.shown(path)}:\n{content}"


def create_new_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    import docx

    path = space.new(arguments, "file_path")
    docx.Document().save(str(path))
    return f"Successfully created the document {space.shown(path)}."


def write_to_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    import docx

    path = space.existing(arguments, "file_path")
    added = text(arguments, "contents")
    try:
        document = docx.Document(str(path))
    except Exception as error:
        raise Refused(f"{space.shown(path)} cannot be read as a Word document ({type(error).__name__}).") from error
    try:
        document.add_paragraph(added)
    except ValueError as error:
        raise Refused("The text holds control characters, which a document cannot.") from error
    content = io.BytesIO()
    document.save(content)
    path.write_bytes(content.getvalue())
    return f"Successfully wrote to {space.shown(path)}."
