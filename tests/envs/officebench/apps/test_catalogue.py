"""What the apps offer, and what is said about a call that cannot be made."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from envs.officebench.apps import LIBRARIES, command, mounts
from envs.officebench.apps.catalogue import APPS, SWITCHABLE, check, unwrapped
from envs.officebench.apps.dispatch import FUNCTIONS


def test_the_names_are_the_official_ones() -> None:
    names = {
        f"{app.name}.{action.name}({', '.join(a.name for a in action.arguments)})"
        for app in APPS.values()
        for action in app.actions
    }
    assert names == {
        "calendar.create_event(user, summary, time_start, time_end)",
        "calendar.delete_event(user, summary)",
        "calendar.list_events(username)",
        "excel.read_file(file_path)",
        "excel.set_cell(file_path, row_idx, column_idx, text)",
        "excel.delete_cell(file_path, row_idx, column_idx)",
        "excel.create_new_file(file_path)",
        "excel.convert_to_pdf(excel_file_path, pdf_file_path)",
        "ocr.recognize_file(file_path)",
        "pdf.convert_to_image(pdf_file_path, image_file_path)",
        "pdf.convert_to_word(pdf_file_path, word_file_path)",
        "pdf.read_file(pdf_file_path)",
        "shell.command(command)",
        "word.convert_to_pdf(word_file_path, pdf_file_path)",
        "word.create_new_file(file_path)",
        "word.read_file(file_path)",
        "word.write_to_file(file_path, contents)",
        "email.send_email(sender, recipient, subject, content)",
        "email.list_emails(username)",
        "email.read_email(username, email_id)",
        "llm.complete_text(prompt)",
        "system.switch_app(target_app)",
        "system.finish_task(answer)",
    }
    assert SWITCHABLE == ("calendar", "excel", "ocr", "pdf", "shell", "word", "email", "llm")


def test_every_action_that_is_not_the_sessions_has_a_function() -> None:
    offered = {(app.name, action.name) for app in APPS.values() if not app.on_host for action in app.actions}
    assert set(FUNCTIONS) == offered


@pytest.mark.parametrize(
    ("app", "action", "arguments", "message"),
    [
        ("excel", "read_file", {"file_path": "x", "more": 1}, None),
        ("system", "finish_task", {}, None),
        ("system", "switch_app", {"target_app": ["word"]}, None),
        (
            "exel",
            "read_file",
            {},
            "There is no app 'exel'. Did you mean excel? The apps are: calendar, excel, ocr, pdf, shell, word, email, llm, system.",
        ),
        (
            "pdf",
            "read",
            {},
            "The app pdf has no action 'read'. Did you mean read_file? Its actions are: convert_to_image, convert_to_word, read_file.",
        ),
        (
            "email",
            "read_email",
            {"username": "Ann"},
            "email.read_email lacks email_id. Its arguments are: username, email_id.",
        ),
        (
            "system",
            "switch_app",
            {"target_app": "system"},
            "There is no app 'system' to switch to. The apps are: calendar, excel, ocr, pdf, shell, word, email, llm.",
        ),
    ],
)
def test_a_call_is_checked_by_name_and_arguments(app: str, action: str, arguments: dict[str, Any], message: str | None) -> None:
    assert check(app, action, arguments) == message


def test_a_list_of_one_stands_for_its_element() -> None:
    assert unwrapped({"a": ["x"], "b": ["x", "y"], "c": [], "d": "z"}) == {"a": "x", "b": ["x", "y"], "c": [], "d": "z"}


def test_the_sandbox_gets_the_apps_the_readers_and_the_hosts_libraries() -> None:
    targets = {target: source for source, target in mounts("docker")}
    assert {target.rsplit("/", 1)[1].removesuffix(".py") for target in targets} == {"apps", "readers", *LIBRARIES}
    assert all(source.exists() for source in targets.values())
    assert mounts("process") == ()
    assert command("docker") == ("python3", "-I", "-u", "/opt/officebench/apps/server.py", "/testbed")


def test_the_apps_import_nothing_of_the_project() -> None:
    root = command("process", "/anywhere")[3].rpartition("/apps/")[0]
    code = (
        "import sys, types, pkgutil, importlib\n"
        "package = types.ModuleType('officebench'); package.__path__ = [sys.argv[1]]; sys.modules['officebench'] = package\n"
        "import officebench.apps\n"
        "for found in pkgutil.iter_modules(officebench.apps.__path__): importlib.import_module('officebench.apps.' + found.name)\n"
        "ours = {name.partition('.')[0] for name in sys.modules} & {'harness', 'methods', 'envs'}\n"
        "heavy = {name.partition('.')[0] for name in sys.modules} & {'docx', 'openpyxl', 'icalendar', 'pypdf', 'PIL', 'lxml'}\n"
        "print(ours, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, cwd="/", check=True)
    assert done.stdout == "set() set()\n"
