"""The text forms that apps show and graders search."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from envs.officebench import readers
from tests.envs.officebench.apps import made


def test_a_workbook_is_cells_by_number_with_a_tab_behind_each_and_a_line_per_row(tmp_path: Path) -> None:
    path = made.workbook(tmp_path / "a b.xlsx", [["Name", 1.5, None], [None, "1,000", "=B1*2"], [date(2024, 5, 1), True, "é"]])
    assert readers.workbook_text(path) == (
        "(1, 1): Name\t(1, 2): 1.5\t(1, 3): [Empty Cell]\t\n"
        "(2, 1): [Empty Cell]\t(2, 2): 1,000\t(2, 3): =B1*2\t\n"
        "(3, 1): 2024-05-01 00:00:00\t(3, 2): True\t(3, 3): é\t\n"
    )


def test_a_workbook_shows_its_active_sheet_only(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active["A1"] = "first"
    book.active = book.create_sheet("other")
    book.active["B2"] = "second"
    book.save(tmp_path / "two.xlsx")
    assert "first" not in readers.workbook_text(tmp_path / "two.xlsx")
    assert readers.workbook_text(tmp_path / "two.xlsx").endswith("(2, 2): second\t\n")


def test_a_workbook_whose_active_sheet_is_a_chart_has_no_text(tmp_path: Path) -> None:
    import openpyxl.chart

    book = openpyxl.Workbook()
    chart = openpyxl.chart.BarChart()
    chart.add_data(openpyxl.chart.Reference(book.active, min_col=1, min_row=1, max_row=2))
    sheet = book.create_chartsheet("chart")
    sheet.add_chart(chart)
    book.active = sheet
    book.save(tmp_path / "chart.xlsx")
    with pytest.raises(ValueError, match="^the active sheet holds no cells$"):
        readers.workbook_text(tmp_path / "chart.xlsx")


def test_a_document_is_its_paragraphs_without_tables(tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_heading("Title", 1)
    document.add_table(1, 1).cell(0, 0).text = "in a table"
    document.add_paragraph("one\ntwo")
    document.add_paragraph("")
    document.save(str(tmp_path / "d.docx"))
    assert readers.document_text(tmp_path / "d.docx") == "Title\none\ntwo\n"


def test_the_pages_of_a_pdf_follow_each_other_without_a_break(tmp_path: Path) -> None:
    path = made.pdf(tmp_path / "p.pdf", [["first page", "second line"], ["next page"]])
    assert readers.pdf_text(path) == "first page\nsecond linenext page"


def test_a_calendar_shows_local_times_whatever_the_zone(tmp_path: Path) -> None:
    (tmp_path / "c.ics").write_text(made.CALENDAR)
    text = readers.calendar_text(tmp_path / "c.ics")
    rule = "-" * 50
    assert text.split(f"\n{rule}") == [
        "Summary: Zoned\nStart Time: 2024-05-01 09:00:00\nEnd Time: 2024-05-01 10:00:00\nDescription: None\nLocation: Room 1",
        "\nSummary: Universal\nStart Time: 2024-05-01 12:00:00\nEnd Time: 2024-05-01 13:00:00\nDescription: None\nLocation: None",
        "\nSummary: Floating\nStart Time: 2024-05-01 15:00:00\nEnd Time: None\nDescription: None\nLocation: None",
        "\nSummary: All day\nStart Time: 2024-05-02 00:00:00\nEnd Time: 2024-05-03 00:00:00\nDescription: Off\nLocation: None",
        "",
    ]


def test_a_calendar_without_events_is_empty_text(tmp_path: Path) -> None:
    (tmp_path / "c.ics").write_text("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nEND:VCALENDAR\n")
    assert readers.calendar_text(tmp_path / "c.ics") == ""


class TestMail:
    def test_a_mail_has_four_lines_and_three_dots(self, tmp_path: Path) -> None:
        path = made.mail(tmp_path / "x.eml", content="Hällo")
        assert readers.email_text(path) == ("From: ann@example.com\nTo: ben@example.com\nSubject: Lunch\nContent: Hällo\n...\n")

    def test_plain_and_html_parts_are_joined_and_attachments_left_out(self, tmp_path: Path) -> None:
        parts = "".join(
            f"--b\nContent-Type: {kind}\n\n{text}\n"
            for kind, text in (
                ("text/plain; charset=utf-8", "plain"),
                ("text/html; charset=utf-8", "<p>html</p>"),
                ("application/pdf", "attached"),
            )
        )
        made.mail(
            tmp_path / "x.eml", head="MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n", content=f"{parts}--b--"
        )
        assert "Content: plain\n<p>html</p>...\n" in readers.email_text(tmp_path / "x.eml", strict=True)

    def test_strict_reading_needs_a_charset_and_the_other_takes_utf8(self, tmp_path: Path) -> None:
        path = made.mail(tmp_path / "x.eml", head="", content="Hällo")
        with pytest.raises(ValueError, match="^a part of the mail names no charset$"):
            readers.email_text(path, strict=True)
        assert "Content: Hällo\n..." in readers.email_text(path)

    def test_strict_reading_refuses_an_unknown_charset(self, tmp_path: Path) -> None:
        path = made.mail(tmp_path / "x.eml", head="Content-Type: text/plain; charset=klingon\n")
        with pytest.raises(LookupError):
            readers.email_text(path, strict=True)
        assert "Content: Hello\n..." in readers.email_text(path)

    def test_a_mailbox_lists_its_mails_by_name_in_full_or_cut(self, tmp_path: Path) -> None:
        made.mail(tmp_path / "b.eml", content="x" * 30)
        made.mail(tmp_path / "a.eml", content="short")
        made.mail(tmp_path / ".hidden.eml")
        (tmp_path / "note.txt").write_text("no mail")
        head, rule = "From: ann@example.com\nTo: ben@example.com\nSubject: Lunch\n", "-" * 50
        assert readers.mailbox_text(tmp_path) == (
            f"Email ID: a.eml\n{head}Content: short\n\n{rule}\nEmail ID: b.eml\n{head}Content: {'x' * 30}\n\n{rule}\n"
        )
        assert f"Content: {'x' * 20}...\n" in readers.mailbox_text(tmp_path, preview=20)

    def test_one_mail_without_charset_costs_the_strict_reader_the_whole_mailbox(self, tmp_path: Path) -> None:
        made.mail(tmp_path / "a.eml")
        made.mail(tmp_path / "b.eml", head="", content="still there")
        assert readers.mailbox_text(tmp_path, strict=True) == "Error: Failed to list emails."
        lenient = readers.mailbox_text(tmp_path, strict=False)
        assert "Content: Hello" in lenient and "Content: still there" in lenient

    def test_a_mail_that_cannot_be_read_hides_no_other(self, tmp_path: Path) -> None:
        made.mail(tmp_path / "a.eml")
        (tmp_path / "b.eml").mkdir()
        lenient = readers.mailbox_text(tmp_path, strict=False)
        assert "Email ID: b.eml\nThis mail cannot be read (IsADirectoryError).\n" in lenient and "Content: Hello" in lenient

    def test_a_mailbox_that_is_empty_or_missing_says_so(self, tmp_path: Path) -> None:
        assert readers.mailbox_text(tmp_path) == readers.mailbox_text(tmp_path / "nobody") == "No emails found."


@pytest.mark.parametrize("kind", ["txt", "ics"])
def test_text_and_calendar_files_are_read_as_they_are(tmp_path: Path, kind: str) -> None:
    (tmp_path / "f").write_text("x,é\n", encoding="utf-8")
    assert readers.read_as(kind, tmp_path / "f") == "x,é\n"


def test_an_unknown_kind_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="kind 'odt'; known are xlsx, doc, docx, pdf, txt, ics\\.$"):
        readers.read_as("odt", tmp_path / "f")
