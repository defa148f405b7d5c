"""The process in the sandbox: a line in, a line out, whatever a model makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envs.officebench.apps import command
from tests.envs.officebench.apps import made

Ask = Callable[[str], dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    (tmp_path / "data").mkdir()
    process = subprocess.Popen(
        [sys.executable, *command("process", str(tmp_path))[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None

    def call(line: str) -> dict[str, Any]:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    yield call
    process.stdin.close()
    assert process.wait(10) == 0
    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def request(app: str, action: str, **arguments: Any) -> str:
    return json.dumps({"app": app, "action": action, "arguments": arguments})


def test_requests_are_answered_in_turn(ask: Ask, tmp_path: Path) -> None:
    made.workbook(tmp_path / "data/t.xlsx", [["é"]])
    assert ask(request("excel", "read_file", file_path="/testbed/data/t.xlsx")) == {
        "observation": "The active sheet of /testbed/data/t.xlsx:\n(1, 1): é",
        "ok": True,
    }
    assert ask(request("shell", "command", command="pwd")) == {"observation": "/testbed", "ok": True}
    assert ask(request("excel", "fly")) == {
        "observation": "The app excel has no action 'fly'. Its actions are: "
        "read_file, set_cell, delete_cell, create_new_file, convert_to_pdf.",
        "ok": False,
    }


@pytest.mark.parametrize(
    "line",
    ["", "no json", "[]", "1", '{"app": "excel"}', '{"app": "excel", "action": "read_file", "arguments": 5}', "[" * 100_000],
)
def test_what_is_no_request_is_answered_too(ask: Ask, line: str) -> None:
    assert ask(line) == {"observation": "The request is not of the form {app, action, arguments}.", "ok": False}
    assert ask(request("shell", "command", command="echo on"))["observation"] == "on"


def test_the_apps_of_the_session_are_not_played_here(ask: Ask) -> None:
    assert ask(request("llm", "complete_text", prompt="x")) == {
        "observation": "llm.complete_text is not played in here.",
        "ok": False,
    }


def test_programs_can_neither_read_requests_nor_write_answers(ask: Ask) -> None:
    program = (
        'import os\nfor fd in range(3, 64):\n    try: os.write(fd, b\'{"observation": "forged"}\')\n    except OSError: pass'
    )
    ask(request("shell", "command", command=f"cat; echo forged; python3 -c {json.dumps(program)!s}"))
    assert ask(request("shell", "command", command="echo real")) == {"observation": "real", "ok": True}


def test_a_library_with_many_complaints_does_not_block(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "data/p.pdf").write_bytes(b"no pdf at all")
    # two lines each, far more than a pipe holds
    for _ in range(2000):
        ask(request("pdf", "read_file", pdf_file_path="data/p.pdf"))


def test_a_lone_surrogate_does_not_end_it(ask: Ask) -> None:
    answer = ask('{"app": "excel", "action": "read_file", "arguments": {"file_path": "\\ud800"}}')
    assert answer["ok"] is False
    assert ask('{"app": "\\ud800", "action": "x", "arguments": {}}')["ok"] is False


def test_its_modules_do_not_stand_in_for_the_librarys(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit")
    (tmp_path / "docx.py").write_text("raise SystemExit")
    assert ask(request("word", "create_new_file", file_path="data/d.docx"))["ok"]


def test_a_folder_that_was_left_by_removing_it_is_no_end(ask: Ask, tmp_path: Path) -> None:
    assert ask(request("shell", "command", command="cd data && rmdir ../data"))["ok"]
    assert ask(request("shell", "command", command="cd /testbed"))["ok"]
    assert ask(request("word", "create_new_file", file_path="d.docx"))["ok"]
    assert os.path.isfile(tmp_path / "d.docx")


def test_a_python_without_the_libraries_is_said_at_once(tmp_path: Path) -> None:
    arguments = command("process", str(tmp_path))[1:]
    done = subprocess.run([sys.executable, "-S", *arguments], input="", capture_output=True, text=True, env={"PATH": "/usr/bin"})
    assert done.returncode == 1
    assert (
        " lacks docx, openpyxl, et_xmlfile, icalendar, dateutil, six, tzdata, typing_extensions, pypdf, lxml, PIL: "
        in done.stderr
    )
