"""Nonsense in any argument of any action is an observation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envs.officebench.apps.catalogue import APPS
from envs.officebench.apps.dispatch import perform
from envs.officebench.apps.workspace import Workspace
from tests.envs.officebench.apps import made

# the shell would carry them out
CALLS = [(app, action) for app in APPS.values() if not app.on_host and app.name != "shell" for action in app.actions]
VALUES: list[Any] = [
    None, [], ["a", "b"], [["a"]], {"a": 1}, 0, -1.5, True, 10**400, "", " ", "\0", "\n", "a\rb", ".", "..", "/", "//", "~",
    "x" * 5000, "\ud800", "\u202e", "data", "/testbed", "data/none.xlsx/x", "'; echo \"$HOME\" #", "/dev/null", "1,000",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=[repr(value)[:20] for value in VALUES])
def test_nonsense_never_raises(testbed: Path, value: Any) -> None:
    made.workbook(testbed / "data/t.xlsx", [["a"]])
    made.document(testbed / "data/t.docx", ["a"])
    made.pdf(testbed / "data/t.pdf", [["a"]])
    usual = {
        "file_path": "data/t.xlsx", "pdf_file_path": "data/none.pdf", "excel_file_path": "data/none.xlsx",
        "word_file_path": "data/none.docx", "image_file_path": "data/t.png", "row_idx": 1, "column_idx": 1, "text": "x",
        "contents": "x", "user": "Ann", "username": "Ann", "sender": "Ann", "recipient": "Ben", "subject": "s", "content": "c",
        "email_id": "s", "summary": "s", "time_start": "2024-05-01 09:00:00", "time_end": "2024-05-01 10:00:00",
    }  # fmt: skip
    for app, action in CALLS:
        for argument in action.arguments:
            arguments = {entry.name: usual[entry.name] for entry in action.arguments} | {argument.name: value}
            observation, ok = perform(Workspace(testbed), app.name, action.name, arguments)
            assert observation and isinstance(ok, bool)
            assert "Traceback" not in observation and len(observation) < 6000, (app.name, action.name, argument.name)


def test_the_usual_arguments_work_so_that_the_nonsense_is_what_fails(testbed: Path) -> None:
    made.workbook(testbed / "data/t.xlsx", [["a"]])
    assert perform(Workspace(testbed), "excel", "read_file", {"file_path": "data/t.xlsx"})[1] is True
