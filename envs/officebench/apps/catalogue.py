"""What the apps offer: names of actions and arguments are the official ones, the descriptions are ours.

Where the official apps disagree with themselves (a user is `user` in one action and `username` in the next), so do these: the
names are part of what a model has to get right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument of an action; one that is not `required` may be left out."""

    name: str
    meaning: str
    required: bool = True


@dataclass(frozen=True)
class Action:
    """One call. `meaning` is a phrase without a full stop."""

    name: str
    meaning: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class App:
    """`on_host`: played by the session (it needs the models or the episode's state), not by the server in the sandbox."""

    name: str
    introduction: str
    actions: tuple[Action, ...]
    on_host: bool = False

    def action(self, name: str) -> Action | None:
        return next((action for action in self.actions if action.name == name), None)


_FILE = "path of the {}, e.g. /testbed/data/{}"
_WORKBOOK = Argument("file_path", _FILE.format("workbook", "table.xlsx"))
_DOCUMENT = Argument("file_path", _FILE.format("document", "letter.docx"))
_PDF = Argument("pdf_file_path", _FILE.format("PDF", "letter.pdf"))
_ROW = Argument("row_idx", "row, counted from 1")
_COLUMN = Argument("column_idx", "column, counted from 1")
_USERNAME = Argument("username", "one user's name")

_CALENDAR = App(
    "calendar",
    "calendar: create, delete and list the events of a user's calendar",
    (
        Action(
            "create_event",
            "put an event into one user's calendar",
            (
                Argument("user", "one user's name"),
                Argument("summary", "what the event is called"),
                Argument("time_start", "start as YYYY-MM-DD HH:MM:SS"),
                Argument("time_end", "end as YYYY-MM-DD HH:MM:SS"),
            ),
        ),
        Action(
            "delete_event",
            "remove the first event with exactly this summary from a user's calendar",
            (Argument("user", "one user's name"), Argument("summary", "what the event is called")),
        ),
        Action("list_events", "show all events of one user's calendar", (_USERNAME,)),
    ),
)
_EXCEL = App(
    "excel",
    "excel: read and write the cells of workbooks (.xlsx), and turn workbooks into PDF",
    (
        Action("read_file", "show the cells of the active sheet as (row, column): value", (_WORKBOOK,)),
        Action(
            "set_cell",
            "write one cell of an existing workbook; what looks like a number is stored as one",
            (_WORKBOOK, _ROW, _COLUMN, Argument("text", "what to write")),
        ),
        Action("delete_cell", "empty one cell; its neighbours stay where they are", (_WORKBOOK, _ROW, _COLUMN)),
        Action("create_new_file", "make an empty workbook where there is no file yet", (_WORKBOOK,)),
        Action(
            "convert_to_pdf",
            "write a workbook as PDF",
            (Argument("excel_file_path", _FILE.format("workbook", "table.xlsx")), _PDF),
        ),
    ),
)
_OCR = App(
    "ocr",
    "ocr: read the text in images",
    (Action("recognize_file", "show the text in an image", (Argument("file_path", _FILE.format("image", "scan.png")),)),),
)
_PDF_APP = App(
    "pdf",
    "pdf: read PDF files and turn them into images or Word documents",
    (
        Action(
            "convert_to_image",
            "write the first page of a PDF as an image",
            (_PDF, Argument("image_file_path", _FILE.format("image", "page.png"))),
        ),
        Action(
            "convert_to_word",
            "write the text of a PDF as a Word document",
            (_PDF, Argument("word_file_path", _FILE.format("document", "letter.docx"))),
        ),
        Action("read_file", "show the text of all pages", (_PDF,)),
    ),
)
_SHELL = App(
    "shell",
    "shell: run commands, for instance to list, copy, move or remove files",
    (
        Action(
            "command",
            "run a command in bash; a command that begins with cd changes the folder for those after it",
            (Argument("command", "the command line"),),
        ),
    ),
)
_WORD = App(
    "word",
    "word: create, read and extend Word documents (.docx), and turn them into PDF",
    (
        Action(
            "convert_to_pdf",
            "write a document as PDF",
            (Argument("word_file_path", _FILE.format("document", "letter.docx")), _PDF),
        ),
        Action("create_new_file", "make an empty document; one of this name is replaced", (_DOCUMENT,)),
        Action("read_file", "show the paragraphs of a document", (_DOCUMENT,)),
        Action(
            "write_to_file",
            "add text as a paragraph to the end of an existing document",
            (_DOCUMENT, Argument("contents", "the text")),
        ),
    ),
)
_EMAIL = App(
    "email",
    "email: send mail, list a user's mailbox and read single mails",
    (
        Action(
            "send_email",
            "send a mail to one recipient; in both mailboxes it replaces a mail of the same subject",
            (
                Argument("sender", "the sender's name or address"),
                Argument("recipient", "one recipient's name or address"),
                Argument("subject", "the subject, one line"),
                Argument("content", "the text"),
            ),
        ),
        Action("list_emails", "show the mails of a user, each with its ID and the beginning of its text", (_USERNAME,)),
        Action("read_email", "show one mail in full", (_USERNAME, Argument("email_id", "its ID in the list"))),
    ),
)
_LLM = App(
    "llm",
    "llm: ask a language model",
    (Action("complete_text", "get a language model's answer to a prompt", (Argument("prompt", "what to ask"),)),),
    on_host=True,
)
_SYSTEM = App(
    "system",
    "system: choose the app to work with, and end the task",
    (
        Action("switch_app", "choose the app whose actions you need next", (Argument("target_app", "the app's name"),)),
        Action(
            "finish_task",
            "end the task, with your answer if it asks a question",
            (Argument("answer", "the answer; None if the task asks nothing", required=False),),
        ),
    ),
    on_host=True,
)

APPS: Mapping[str, App] = MappingProxyType(
    {app.name: app for app in (_CALENDAR, _EXCEL, _OCR, _PDF_APP, _SHELL, _WORD, _EMAIL, _LLM, _SYSTEM)}
)
"""All apps in the official order, `system` last."""
SWITCHABLE: tuple[str, ...] = tuple(name for name in APPS if name != "system")
"""The apps that switch_app may name."""


def unwrapped(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` with every list of one element replaced by that element, as the official loop does before it looks at them."""
    return {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in arguments.items()}


def check(app: str, action: str, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with a call, as a message for the model; None if it may be made. Unknown arguments are ignored."""
    if app not in APPS:
        return f"There is no app {app!r}.{_meant(app, APPS)} The apps are: {', '.join(APPS)}."
    known = APPS[app].action(action)
    if known is None:
        names = [entry.name for entry in APPS[app].actions]
        return f"The app {app} has no action {action!r}.{_meant(action, names)} Its actions are: {', '.join(names)}."
    missing = [entry.name for entry in known.arguments if entry.required and entry.name not in arguments]
    if missing:
        names = [entry.name for entry in known.arguments]
        return f"{app}.{action} lacks {', '.join(missing)}. Its arguments are: {', '.join(names)}."
    if action == "switch_app" and unwrapped(arguments)["target_app"] not in SWITCHABLE:
        target = unwrapped(arguments)["target_app"]
        return f"There is no app {target!r} to switch to. The apps are: {', '.join(SWITCHABLE)}."
    return None


def _meant(name: object, known: Any) -> str:
    close = get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""
