"""The nine checks: a state that passes, its smallest spoiling that fails, and every slip that only the official grader makes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar, Event

from envs.officebench import grade
from envs.officebench.grading import CHECKS, GRADERS, fixed, official
from envs.officebench.grading.child import grade_apart
from envs.officebench.grading.places import Places
from harness.errors import ConfigError
from tests.envs.officebench.conftest import check, task_of, workbook


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """An empty workspace; the task's own folder lies beside it."""
    for name in ("data", "emails", "calendar"):
        (tmp_path / "work" / name).mkdir(parents=True)
    return tmp_path / "work"


def passes(space: Path, item: dict[str, Any], grader: str) -> bool:
    return grade(task_of(space.parent, item), space, grader).success


def mail(space: Path, user: str, text: str, name: str = "note") -> Path:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ann@example.com", "ben@example.com", "News"
    message.set_content(text)
    path = space / "emails" / user / f"{name}.eml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bytes(message))
    return path


def document(path: Path, *paragraphs: str, cell: str | None = None) -> Path:
    made = Document()
    for text in paragraphs:
        made.add_paragraph(text)
    if cell is not None:
        made.add_table(1, 1).cell(0, 0).text = cell
    made.save(str(path))
    return path


def calendar(space: Path, *events: tuple[Any, Any], user: str = "Ann") -> Path:
    made = Calendar()
    for start, end in events:
        event = Event()
        event.add("dtstart", start)
        if end is not None:
            event.add("dtend", end)
        made.add_component(event)
    path = space / "calendar" / f"{user}.ics"
    path.write_bytes(made.to_ical())
    return path


def at(hour: int, minute: int = 0, zone: Any = None) -> Any:
    from datetime import datetime

    return datetime(2030, 1, 7, hour, minute, tzinfo=zone)


# --- a passing state of each check, and its smallest spoiling ---------------------------------------------------------------
def contain_text(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = space / "data" / "answer.txt"
    path.write_text("The total is 1,250 and the name ANN.\n")
    spoil = lambda: path.write_text("The total is 1,250 and the name BEN.\n")  # noqa: E731
    return check("contain", doc_type="txt", file="./data/answer.txt", keywords=["ann", "1250"]), spoil


def contain_mail(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = mail(space, "Ben", "Hello Ben,\nsee you.")
    return check("contain", doc_type="email", username="Ben", keywords=["hello ben"]), path.unlink


def contain_document(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = document(space / "data" / "a b.docx", "First", "second line")
    return check("contain", doc_type="docx", file="data/a b.docx", keywords=["FIRST", "line"]), lambda: document(path, "First")


def not_contain(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = workbook(space / "data" / "t.xlsx", [["tea"]])
    item = check("not_contain", doc_type="xlsx", file="data/t.xlsx", keywords=["coffee", "milk"])
    return item, lambda: workbook(path, [["coffee", "milk"]])


def file_exist(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = space / "data" / "x.pdf"
    path.write_bytes(b"")
    return check("file_exist", file="data/x.pdf"), path.unlink


def file_not_exist(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    return check("file_not_exist", file="data/x.pdf"), (space / "data" / "x.pdf").touch


def diff_contain(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    workbook(space.parent / "testbed" / "data" / "s.xlsx", [["Ann", 71], ["Ben", 80]])
    path = workbook(space / "data" / "s.xlsx", [["Ann", 76], ["Ben", 80]])
    arguments = {"input_file": "../../../../cache/0/testbed/data/s.xlsx", "output_file": "./data/s.xlsx", "doc_type": "xlsx"}
    item = check("diff_contain_text", **arguments, keywords=["Ann", "71", "76"])
    return item, lambda: workbook(path, [["Ann", 71], ["Ben", 76]])


def cell_value(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = workbook(space / "data" / "t.xlsx", [["a", "b"], ["Ann", 5]])
    item = check(
        "excel_cell_value",
        file="data/t.xlsx",
        matches=[{"row": "2", "col": "1", "value": "Ann"}, {"row": 2, "col": 2, "value": 5}],
    )
    return item, lambda: workbook(path, [["a", "b"], ["Ann", 4]])


def comparator(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    path = workbook(space / "data" / "t.xlsx", [["2"]])
    matches = [{"row": "1", "col": "1", "comparator": "lambda x: x in ['1', '2']"}]
    return check("excel_cell_comparator", file="data/t.xlsx", matches=matches), lambda: workbook(path, [["3"]])


def exact_match(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    workbook(space.parent / "reference" / "t.xlsx", [["a", 1], ["b", None], ["c", 2]])
    path = workbook(space / "data" / "t.xlsx", [["a", 1], ["b", None], ["c", 2]])
    item = check("exact_match", doc_type="xlsx", result_file="./data/t.xlsx", expected_file="../../../../reference/t.xlsx")
    return item, lambda: workbook(path, [["a", 1], ["b", None], ["c", 2], ["d"]])


def no_overlap(space: Path) -> tuple[dict[str, Any], Callable[[], Any]]:
    calendar(space, (at(11), at(12)), (at(9), at(11)))
    return check("calendar_no_overlap", username="Ann"), lambda: calendar(space, (at(11), at(12)), (at(9), at(11, 1)))


STATES = [
    contain_text,
    contain_mail,
    contain_document,
    not_contain,
    file_exist,
    file_not_exist,
    diff_contain,
    cell_value,
    comparator,
    exact_match,
    no_overlap,
]


@pytest.mark.parametrize("grader", GRADERS)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_passing_state_passes_and_its_smallest_spoiling_fails(
    space: Path, state: Callable[[Path], tuple[dict[str, Any], Callable[[], Any]]], grader: str
) -> None:
    item, spoil = state(space)
    assert passes(space, item, grader)
    spoil()
    assert not passes(space, item, grader)


def test_the_states_cover_every_check_of_both_graders(space: Path) -> None:
    made = {state(space)[0]["function"] for state in STATES}
    assert made == {f"evaluate_{name}" for name in CHECKS} and len(made) == 9
    assert all(callable(getattr(grader, name)) for grader in (official, fixed) for name in CHECKS)


# --- where the two graders differ -------------------------------------------------------------------------------------------
def differ(space: Path, item: dict[str, Any], official_says: bool) -> None:
    assert passes(space, item, "official") is official_says
    assert passes(space, item, "fixed") is not official_says


class TestDeviations:
    def test_every_deviation_of_the_list_has_a_test_here(self) -> None:
        assert {name.removeprefix("test_") for name in dir(self) if name.startswith("test_")} >= set(fixed.DEVIATIONS)

    def test_not_contain(self, space: Path) -> None:
        workbook(space / "data" / "t.xlsx", [["coffee"]])
        differ(space, check("not_contain", doc_type="xlsx", file="data/t.xlsx", keywords=["coffee", "milk"]), True)
        differ(space, check("not_contain", doc_type="xlsx", file="data/none.xlsx", keywords=["coffee"]), True)

    def test_numbers(self, space: Path) -> None:
        (space / "data" / "a.txt").write_text("In 2025 it was 1,000 for Doe, Jane.")
        differ(space, check("contain", doc_type="txt", file="data/a.txt", keywords=["5"]), True)
        # the official text has lost its commas after the number
        differ(space, check("contain", doc_type="txt", file="data/a.txt", keywords=["1000", "Doe, Jane"]), False)

    def test_short_words(self, space: Path) -> None:
        (space / "data" / "answer.txt").write_text("None\n")
        differ(space, check("contain", doc_type="txt", file="data/answer.txt", keywords=["No"]), True)
        (space / "data" / "answer.txt").write_text("No.\n")
        assert passes(space, check("contain", doc_type="txt", file="data/answer.txt", keywords=["No"]), "fixed")

    def test_mailbox(self, space: Path) -> None:
        item = check("contain", doc_type="email", username="Ben", keywords=["see you"])
        mail(space, "BEN", "see you")
        differ(space, item, False)
        mail(space, "Ben", "see you")
        (space / "emails" / "Ben" / "old.eml").write_bytes(b"From: a\nTo: b\nSubject: c\n\nno charset\n")
        differ(space, item, False)
        # the official search in a mailbox that is missing stops with an error
        differ(space, check("not_contain", doc_type="email", username="Eve", keywords=["see you"]), False)

    def test_documents(self, space: Path) -> None:
        document(space / "data" / "a.docx", "text", cell="in a table")
        differ(space, check("contain", doc_type="docx", file="data/a.docx", keywords=["table"]), False)
        (space / "calendar" / "Ann.ics").write_text("BEGIN:VEVENT\nSUMMARY:a long lin\n e that goes on\nEND:VEVENT\n")
        differ(space, check("contain", doc_type="ics", file="calendar/Ann.ics", keywords=["line that"]), False)

    def test_cell_value(self, space: Path) -> None:
        workbook(space / "data" / "t.xlsx", [["50"], ["Annabel"], ["Dr ann"]])
        cell = lambda row, value: check("excel_cell_value", file="data/t.xlsx", matches=[{"row": row, "col": 1, "value": value}])  # noqa: E731
        differ(space, cell(1, "5"), True)
        differ(space, cell(2, "Ann"), True)
        differ(space, cell(3, "Ann"), False)
        differ(space, cell(1, "50.0"), False)

    def test_misplaced_file(self, space: Path) -> None:
        workbook(space / "data" / "t.xlsx", [["x"]])
        item = check("excel_cell_value", matches=[{"row": 1, "col": 1, "value": "x"}])
        differ(space, {**item, "file": "data/t.xlsx"}, False)

    def test_diff(self, space: Path) -> None:
        workbook(space.parent / "testbed" / "data" / "s.xlsx", [["a"], ["b"]])
        workbook(space / "data" / "s.xlsx", [["a"], ["c"]])
        files = {"input_file": "../../../../cache/0/testbed/data/s.xlsx", "output_file": "data/s.xlsx", "doc_type": "xlsx"}
        differ(space, check("diff_contain_text", **files, keywords=["2"]), True)  # the row's number
        differ(space, check("diff_contain_text", **files, keywords=["C"]), False)  # case-sensitive

    def test_exact_match(self, space: Path) -> None:
        for folder in (space, space.parent / "reference"):
            folder.mkdir(exist_ok=True)
            document(folder / "a.docx", "same")
        item = check("exact_match", doc_type="doc", result_file="a.docx", expected_file="../../../../reference/a.docx")
        differ(space, item, False)
        workbook(space.parent / "reference" / "t.xlsx", [[1000]])
        workbook(space / "t.xlsx", [["1,000"]])
        item = check("exact_match", doc_type="xlsx", result_file="t.xlsx", expected_file="../../../../reference/t.xlsx")
        differ(space, item, False)

    def test_comparator(self, space: Path) -> None:
        workbook(space / "data" / "t.xlsx", [["no"]])
        matches = [{"row": 1, "col": 1, "comparator": "lambda x: x in ['no']"}]
        item = check("excel_cell_comparator", file="data/t.xlsx", matches=matches)
        assert passes(space, item, "official") and passes(space, item, "fixed")
        matches[0]["comparator"] = "lambda x: x in ['half way']"
        workbook(space / "data" / "t.xlsx", [["half way"]])
        differ(space, item, False)

    def test_calendar(self, space: Path) -> None:
        from datetime import date

        calendar(space, (date(2030, 1, 6), date(2030, 1, 7)), (at(9), None))
        differ(space, check("calendar_no_overlap", username="Ann"), False)

    def test_files(self, space: Path) -> None:
        (space / "data" / "folder").mkdir()
        differ(space, check("file_exist", file="data/folder"), True)
        differ(space, check("file_not_exist", file="data/folder"), False)

    def test_doc_type(self, space: Path) -> None:
        document(space / "data" / "a.docx", "text")
        differ(space, check("contain", doc_type="xlsx", file="data/a.docx", keywords=["text"]), False)


class TestWhatBothDo:
    def test_times_without_a_zone_are_utc(self, space: Path) -> None:
        from zoneinfo import ZoneInfo

        berlin = ZoneInfo("Europe/Berlin")  # an hour ahead in January
        item = check("calendar_no_overlap", username="Ann")
        calendar(space, (at(9, zone=berlin), at(10, zone=berlin)), (at(9), at(10)))
        assert passes(space, item, "official") and passes(space, item, "fixed")
        calendar(space, (at(9, zone=berlin), at(10, 1, zone=berlin)), (at(9), at(10)))
        assert not passes(space, item, "official") and not passes(space, item, "fixed")

    @pytest.mark.parametrize("grader", GRADERS)
    def test_all_checks_must_hold_and_the_first_that_does_not_is_named(self, space: Path, grader: str) -> None:
        (space / "data" / "a").touch()
        items = [check("file_exist", file="data/a"), check("file_exist", file="data/b"), check("file_exist", file="data/c")]
        outcome = grade(task_of(space.parent, *items), space, grader)
        assert (outcome.score, outcome.status) == (0.0, "failed")
        assert outcome.metrics == {"grader": grader, "checks": 3, "checks_passed": 1, "first_failed": "file_exist"}

    @pytest.mark.parametrize("grader", GRADERS)
    def test_a_check_that_raises_has_failed(self, space: Path, grader: str) -> None:
        (space / "data" / "t.xlsx").write_bytes(b"no workbook")
        assert not passes(
            space, check("excel_cell_value", file="data/t.xlsx", matches=[{"row": 1, "col": 1, "value": ""}]), grader
        )
        assert not passes(space, check("unheard_of"), grader)
        assert not passes(space, check("contain", doc_type="txt", file="data/t.xlsx", keywords=[5]), grader)

    @pytest.mark.parametrize("grader", GRADERS)
    def test_no_check_looks_outside_the_workspace_and_the_tasks_folder(self, space: Path, grader: str) -> None:
        (space.parent / "secret").touch()
        for path in ("../secret", str(space.parent / "secret"), "../../../../secret", "data/../../secret"):
            assert not passes(space, check("file_exist", file=path), grader), path

    def test_a_task_without_checks_is_not_passed(self, space: Path) -> None:
        assert not grade(task_of(space.parent), space).success

    def test_an_unknown_grader_is_refused(self, space: Path) -> None:
        with pytest.raises(ConfigError, match=r"There is no grader 'strict'\. There are: official, fixed\."):
            grade(task_of(space.parent), space, "strict")

    def test_a_comparator_is_read_and_never_run(self) -> None:
        assert official.listed("lambda x: x in ['1', '2']") == ["1", "2"]
        for text in (
            "lambda x: __import__('os').system('true')",
            "lambda x: x in open('/etc/passwd')",
            "1",
            "lambda x: x not in ['1']",
        ):
            with pytest.raises((ValueError, SyntaxError)):
                official.listed(text)


@given(st.text(max_size=40), st.lists(st.text(alphabet="ab1,. ", min_size=1, max_size=4), max_size=3))
def test_keywords_of_a_text_are_found_in_it_by_both(text: str, words: list[str]) -> None:
    """Without numbers the two agree; a text has each of its own parts."""
    plain = [word for word in words if len(word.strip()) > 3 and not any(character.isdigit() for character in word)]
    whole = " | ".join([text, *plain])
    stripped = [word.strip() for word in plain]
    assert official.has_keywords(whole, plain) and fixed.has_keywords(whole, stripped)


class TestInAProcessOfItsOwn:
    def test_the_outcome_is_the_same(self, space: Path) -> None:
        (space / "data" / "a").touch()
        task = task_of(space.parent, check("file_exist", file="data/a"))
        assert grade_apart(task, space, "fixed") == grade(task, space, "fixed")

    def test_a_reader_that_is_killed_is_a_failure(self, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bomb = space / "data" / "t.xlsx"
        os.mkfifo(bomb)  # a reader that waits for ever stands for one that a file makes explode
        monkeypatch.setattr("envs.officebench.grading.child.SECONDS", 2)
        outcome = grade_apart(
            task_of(space.parent, check("contain", doc_type="txt", file="data/t.xlsx", keywords=["x"])), space, "official"
        )
        assert not outcome.success  # a pipe is no file
        outcome = grade_apart(
            task_of(space.parent, check("exact_match", doc_type="txt", result_file="data/t.xlsx", expected_file="data/t.xlsx")),
            space,
            "official",
        )
        assert (outcome.score, outcome.metrics["grading_error"]) == (0.0, "took longer than 2 s")

    def test_what_a_reader_prints_is_not_the_answer(self, space: Path) -> None:
        task = task_of(space.parent, check("file_exist", file="data"))
        assert json.loads(json.dumps(dict(grade_apart(task, space, "official").metrics)))["checks_passed"] == 1


def test_places_of_the_official_layout(tmp_path: Path) -> None:
    places = Places(tmp_path / "work", tmp_path / "task")
    assert places.path("./data/a") == tmp_path / "work" / "data" / "a"
    assert places.path("../../../../reference/a") == tmp_path / "task" / "reference" / "a"
    assert places.path("../../../../cache/3/testbed/data/a") == tmp_path / "task" / "testbed" / "data" / "a"
