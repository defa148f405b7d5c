"""A way to a passing state of a task, made from its checks and played through the applications.

It does what the checks ask for, not what the task says: it shows that a passing state can be reached from inside, and drives
tests end to end. Eight tasks cannot be won under the official grader as it is coded (ENVIRONMENTS.md).
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from envs.officebench import readers
from envs.officebench.actions import Action
from envs.officebench.grading import fixed, official
from envs.officebench.grading.places import Places
from harness.contracts import Task

# 1-14/2 compares with a file that does not exist; the others fail by slips that the grader `fixed` mends
UNWINNABLE = {
    "official": frozenset({"1-14/2", "2-48/0", "3-8/0", "3-29/0", "3-30/0", "3-32/0", "3-62/0", "3-82/0"}),
    "fixed": frozenset({"1-14/2"}),
}
_CALENDAR = re.compile(r"/testbed/calendar/[^/]+\.ics")
_EVENT = re.compile(r"(DTSTART|DTEND):(\d{4})(\d{2})(\d{2})T?(\d{0,6})")


def solution(task: Task, grader: str) -> list[str] | None:
    """The actions as text, the last one finishes the task; None where the grader cannot be satisfied."""
    if task.task_id in UNWINNABLE[grader]:
        return None
    plan = _Plan(task)
    for item in sorted(task.payload["evaluation"], key=_rank):
        plan.satisfy(str(item["function"]).removeprefix("evaluate_"), fixed.arguments_of(item))
    return plan.actions()


def _rank(item: Mapping[str, Any]) -> int:
    """What removes comes first, what only asks for a file comes last."""
    order = ("file_not_exist", "not_contain", "calendar_no_overlap", "exact_match")
    name = str(item["function"]).removeprefix("evaluate_")
    return order.index(name) if name in order else len(order) + (name == "file_exist")


class _Plan:
    """The actions so far, and what is known of the workspace after them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._places = Places(Path(task.payload["folder"]) / "testbed", Path(task.payload["folder"]))
        self._actions: list[Action] = []
        self._made: set[str] = set()
        self._answer = "None"
        self._row, self._event = 40, 0
        self._pdfs: dict[str, list[str]] = {}

    def actions(self) -> list[str]:
        for path, texts in self._pdfs.items():
            self._make_pdf(path, texts)
        finish = Action("system", "finish_task", {"answer": self._answer})
        return [action.text() for action in [*self._actions, finish]]

    def satisfy(self, check: str, arguments: Mapping[str, Any]) -> None:
        getattr(self, f"_{check}")(arguments)

    def _do(self, app: str, action: str, **arguments: Any) -> None:
        made = Action(app, action, arguments)
        if not self._actions or self._actions[-1] != made:
            self._actions.append(made)

    def _shell(self, command: str) -> None:
        self._do("shell", "command", command=command)

    def _path(self, text: str) -> str:
        return "/testbed/" + posixpath.normpath(text)

    def _there(self, path: str) -> bool:
        """Whether the file is in the testbed or was made since."""
        return path in self._made or (self._places.workspace / path.removeprefix("/testbed/")).is_file()

    # --- what removes ---------------------------------------------------------------------------------------------------
    def _file_not_exist(self, arguments: Mapping[str, Any]) -> None:
        self._shell(f"rm -f {shlex.quote(self._path(arguments['file']))}")

    def _not_contain(self, arguments: Mapping[str, Any]) -> None:
        if arguments["doc_type"] == "email":
            self._spare_mailbox(arguments)
            return
        path = self._path(arguments["file"])
        if arguments["doc_type"] == "xlsx" and self._there(path):
            for (row, column), value in official.active_cells(self._places.path(arguments["file"])).items():
                if any(keyword.lower() in str(value).lower() for keyword in arguments["keywords"]):
                    self._do("excel", "delete_cell", file_path=path, row_idx=row, column_idx=column)
        elif self._there(path):
            self._shell(f"rm -f {shlex.quote(path)}")

    def _spare_mailbox(self, arguments: Mapping[str, Any]) -> None:
        """Where there is no mailbox, the official check fails."""
        try:
            if official.contain(self._places, arguments):
                self._empty_mailbox(arguments["username"])
        except LookupError:
            self._mail(arguments["username"], "Hello", ["Hello"])

    def _calendar_no_overlap(self, arguments: Mapping[str, Any]) -> None:
        """An empty calendar where the given one has overlaps, or none is given."""
        try:
            fine = official.calendar_no_overlap(self._places, arguments)
        except Exception:  # the official check's way to say no
            fine = False
        if not fine:
            self._shell(f"rm -f {shlex.quote(self._path('calendar/' + arguments['username'] + '.ics'))}")
            self._add_event(arguments["username"], "Free")

    def _exact_match(self, arguments: Mapping[str, Any]) -> None:
        path = self._path(arguments["result_file"])
        if arguments["doc_type"] != "xlsx":
            self._shell(f"cp {shlex.quote(self._path(arguments['expected_file']))} {shlex.quote(path)}")
            self._made.add(path)
            return
        wanted = official.active_cells(self._places.path(arguments["expected_file"]))
        found = official.active_cells(self._places.path(arguments["result_file"])) if self._there(path) else {}
        if wanted == found:
            return
        values = json.dumps([[*place, wanted.get(place)] for place in sorted({*wanted, *found})])
        code = f"import json, openpyxl; b = openpyxl.load_workbook({path!r}) if {bool(found)} else openpyxl.Workbook(); "
        code += f"[b.active.cell(r, c).__setattr__('value', v) for r, c, v in json.loads({values!r})]; b.save({path!r})"
        self._shell(f"mkdir -p {shlex.quote(posixpath.dirname(path))} && python3 -c {shlex.quote(code)}")

    # --- what writes ----------------------------------------------------------------------------------------------------
    def _contain(self, arguments: Mapping[str, Any]) -> None:
        keywords = list(arguments["keywords"])
        if arguments["doc_type"] == "email":
            self._mail(arguments["username"], "Notes", keywords)
            return
        path = self._path(arguments["file"])
        kind = fixed.kind_of(arguments)
        if self._there(path) and official.contain(self._places, arguments) and kind != "txt":
            return
        write = {"txt": self._text, "ics": self._calendar, "xlsx": self._workbook, "pdf": self._pdf}.get(kind, self._document)
        write(path, keywords)

    def _text(self, path: str, keywords: Sequence[str]) -> None:
        if path == "/testbed/data/answer.txt":
            self._answer = "; ".join(keywords if self._answer == "None" else [self._answer, *keywords])
            return
        lines = " ".join(shlex.quote(keyword) for keyword in keywords)
        self._shell(f"mkdir -p {shlex.quote(posixpath.dirname(path))} && printf '%s\\n' {lines} >> {shlex.quote(path)}")
        self._made.add(path)

    def _document(self, path: str, keywords: Iterable[str]) -> None:
        self._new("word", path)
        if lines := list(keywords):
            self._do("word", "write_to_file", file_path=path, contents="\n".join(lines))

    def _new(self, app: str, path: str) -> None:
        if not self._there(path):
            self._do(app, "create_new_file", file_path=path)
            self._made.add(path)

    def _workbook(self, path: str, keywords: Sequence[str]) -> None:
        self._new("excel", path)
        self._cell(path, self._row, 1, " ".join(keywords))
        self._row += 1

    def _cell(self, path: str, row: int, column: int, text: str) -> None:
        self._do("excel", "set_cell", file_path=path, row_idx=row, column_idx=column, text=text)

    def _pdf(self, path: str, keywords: Sequence[str]) -> None:
        self._pdfs.setdefault(path, []).extend(keywords)

    def _make_pdf(self, path: str, keywords: Sequence[str]) -> None:
        draft = "/testbed/data/draft.docx"
        self._shell(f"rm -f {draft}")
        self._made.discard(draft)
        self._document(draft, keywords)
        self._do("word", "convert_to_pdf", word_file_path=draft, pdf_file_path=path)

    def _calendar(self, path: str, keywords: Sequence[str]) -> None:
        """One event at the time that the keywords name, and one more for each text that would not fit its line."""
        if not _CALENDAR.fullmatch(path):
            self._text(path, keywords)
            return
        user = posixpath.basename(path).removesuffix(".ics")
        times = {found.group(1): found for keyword in keywords if (found := _EVENT.match(keyword))}
        texts = [keyword.removeprefix("SUMMARY:") for keyword in keywords if not _EVENT.match(keyword)]
        moments = [_moment(times[name]) if name in times else None for name in ("DTSTART", "DTEND")]
        self._made.add(path)
        if any(moments):
            start, end = moments[0] or moments[1], moments[1]
            end = end or _later(str(start))
            self._do(
                "calendar", "create_event", user=user, summary=texts.pop(0) if texts else "Event", time_start=start, time_end=end
            )
        for keyword in keywords:
            if _EVENT.match(keyword) and keyword.endswith("Z"):  # the calendar writes times without a zone
                self._shell(f"sed -i {shlex.quote(f's/{keyword[:-1]}/&Z/')} {shlex.quote(path)}")
        for text in texts:
            self._add_event(user, text)

    def _add_event(self, user: str, summary: str) -> None:
        self._event += 1
        day = f"2031-{self._event // 28 + 1:02d}-{self._event % 28 + 1:02d}"
        self._do("calendar", "create_event", user=user, summary=summary, time_start=f"{day} 10:00:00", time_end=f"{day} 11:00:00")
        self._made.add(self._path(f"calendar/{user}.ics"))

    def _mail(self, user: str, subject: str, keywords: Sequence[str]) -> None:
        folder = self._places.workspace / "emails" / user
        if readers.mailbox_text(folder, strict=True) == readers.EMAILS_FAILED:
            self._empty_mailbox(user)
        self._do("email", "send_email", sender=user, recipient=user, subject=subject, content="\n".join(keywords))
        self._made.add(self._path(f"emails/{user}/{subject}.eml"))

    def _empty_mailbox(self, user: str) -> None:
        self._shell(f"rm -f {shlex.quote(self._path(f'emails/{user}'))}/*.eml")

    def _diff_contain_text(self, arguments: Mapping[str, Any]) -> None:
        self._workbook(self._path(arguments["output_file"]), arguments["keywords"])

    def _excel_cell_value(self, arguments: Mapping[str, Any]) -> None:
        path = self._path(arguments["file"])
        self._new("excel", path)
        for match in arguments["matches"]:
            self._cell(path, int(match["row"]), int(match["col"]), str(match["value"]))

    def _excel_cell_comparator(self, arguments: Mapping[str, Any]) -> None:
        for match in arguments["matches"]:
            text = official.listed(match["comparator"])[0]
            self._cell(self._path(arguments["file"]), int(match["row"]), int(match["col"]), text)

    # --- what only asks for a file --------------------------------------------------------------------------------------
    def _file_exist(self, arguments: Mapping[str, Any]) -> None:
        path = self._path(arguments["file"])
        if self._there(path) or path in self._pdfs or path == "/testbed/data/answer.txt":
            return
        folder, name = posixpath.split(path)
        if name.endswith(".docx"):
            self._document(path, [])
        elif name.endswith(".xlsx"):
            self._new("excel", path)
        elif _CALENDAR.fullmatch(path):
            self._add_event(name.removesuffix(".ics"), "Event")
        elif name.endswith(".eml"):
            self._mail(posixpath.basename(folder), name.removesuffix(".eml"), ["Empty"])
        else:
            self._shell(f"mkdir -p {shlex.quote(folder)} && touch {shlex.quote(path)}")


def _moment(found: re.Match[str]) -> str:
    """A keyword's time (`20240517T103000`, possibly cut short) as the calendar takes it."""
    clock = found.group(5).ljust(6, "0")
    return f"{found.group(2)}-{found.group(3)}-{found.group(4)} {clock[:2]}:{clock[2:4]}:{clock[4:]}"


def _later(moment: str) -> str:
    """A minute to the hour's end of `moment`: an end that overlaps with nothing that starts on the hour."""
    return f"{moment[:14]}59:00"
