"""The calendar and email apps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.envs.officebench.apps import made
from tests.envs.officebench.apps.conftest import Act

RULE = "-" * 50
MEETING = {"user": "Ann", "summary": 'Plan; "A, B" / C', "time_start": "2024-05-01 09:00:00", "time_end": "2024-05-01 10:00:00"}
LUNCH = {"sender": "Ann", "recipient": "ben@elsewhere.org", "subject": "Lunch", "content": "At one?\nAnn"}


class TestCalendar:
    def test_events_are_created_listed_and_deleted(self, act: Act) -> None:
        assert act("calendar.create_event", **MEETING) == "Successfully created the event in Ann's calendar."
        assert act("calendar.list_events", username="Ann") == (
            'The events of Ann:\nSummary: Plan; "A, B" / C\nStart Time: 2024-05-01 09:00:00\nEnd Time: 2024-05-01 10:00:00\n'
            f"Description: None\nLocation: None\n{RULE}"
        )
        said = act("calendar.delete_event", user="Ann", summary=MEETING["summary"])
        assert said == "Successfully deleted the event 'Plan; \"A, B\" / C' from Ann's calendar."
        assert act("calendar.list_events", username="Ann") == "Ann has no events."

    def test_times_are_written_without_a_zone_and_twice_the_same(self, act: Act, testbed: Path) -> None:
        act("calendar.create_event", **MEETING)
        first = (testbed / "calendar/Ann.ics").read_bytes()
        assert b"DTSTART:20240501T090000\r\n" in first and b"DTEND:20240501T100000\r\n" in first
        (testbed / "calendar/Ann.ics").unlink()
        act("calendar.create_event", **MEETING)
        assert (testbed / "calendar/Ann.ics").read_bytes() == first

    def test_zones_universal_floating_and_all_day_events_live_together(self, act: Act, testbed: Path) -> None:
        (testbed / "calendar").mkdir()
        (testbed / "calendar/Ann.ics").write_text(made.CALENDAR)
        act("calendar.create_event", **MEETING)
        act("calendar.delete_event", user="Ann", summary="Universal")
        listed = act("calendar.list_events", username="Ann")
        assert [line for line in listed.splitlines() if line.startswith(("Summary", "Start"))] == [
            "Summary: Zoned", "Start Time: 2024-05-01 09:00:00",
            "Summary: Floating", "Start Time: 2024-05-01 15:00:00",
            "Summary: All day", "Start Time: 2024-05-02 00:00:00",
            'Summary: Plan; "A, B" / C', "Start Time: 2024-05-01 09:00:00",
        ]  # fmt: skip
        written = (testbed / "calendar/Ann.ics").read_text()
        assert "DTSTART;TZID=America/New_York:20240501T090000" in written and "DTSTART;VALUE=DATE:20240502" in written

    def test_looking_at_a_calendar_makes_it_and_deleting_does_not(self, act: Act, testbed: Path) -> None:
        assert act("calendar.delete_event", user="Ben", summary="x") == "! Ben has no calendar."
        assert not (testbed / "calendar/Ben.ics").exists()
        assert act("calendar.list_events", username="Ben") == "Ben has no events."
        assert (testbed / "calendar/Ben.ics").is_file()
        assert act("calendar.delete_event", user="Ben", summary="x") == "! Ben's calendar has no event called 'x'."

    @pytest.mark.parametrize("time", ["tomorrow", "2024-05-01 09:00", "2024-02-30 09:00:00", "2024-05-01T09:00:00Z"])
    def test_another_form_of_time_is_refused(self, act: Act, testbed: Path, time: str) -> None:
        said = act("calendar.create_event", **{**MEETING, "time_end": time})
        assert said == f"! time_end is {time!r}, but must look like 2024-05-01 09:30:00."
        assert not (testbed / "calendar/Ann.ics").exists()

    @pytest.mark.parametrize(
        ("user", "message"),
        [
            (["Ann", "Ben"], "user must be a single name; do it for one after the other."),
            ("../Ann", "user must be a user's name, without slashes."),
            ("..", "user must be a user's name, without slashes."),
            ("", "user must be a user's name, without slashes."),
            ("x" * 300, "user is too long for a user's name."),
            (None, "user must be text, not nothing."),
        ],
    )
    def test_a_user_is_one_plain_name(self, act: Act, user: Any, message: str) -> None:
        assert act("calendar.create_event", **{**MEETING, "user": user}) == f"! {message}"

    def test_a_broken_calendar_is_said_and_kept(self, act: Act, testbed: Path) -> None:
        (testbed / "calendar").mkdir()
        (testbed / "calendar/Ann.ics").write_text("no calendar")
        assert act("calendar.list_events", username="Ann") == "! The calendar of Ann cannot be read (ValueError)."
        assert act("calendar.create_event", **MEETING) == "! The calendar of Ann cannot be read (ValueError)."
        assert (testbed / "calendar/Ann.ics").read_text() == "no calendar"


class TestEmail:
    def test_both_mailboxes_get_the_mail(self, act: Act, testbed: Path) -> None:
        assert act("email.send_email", **LUNCH) == "Successfully sent the mail to ben."
        assert sorted(str(path.relative_to(testbed)) for path in testbed.rglob("*.eml")) == [
            "emails/Ann/Lunch.eml",
            "emails/ben/Lunch.eml",
        ]
        read = "From: Ann@example.com\nTo: ben@example.com\nSubject: Lunch\nContent: At one?\nAnn\n..."
        for name in ("Lunch", "Lunch.eml"):
            assert act("email.read_email", username="ben", email_id=name) == f"The mail Lunch.eml of ben:\n{read}"
        assert act("email.list_emails", username="ben@elsewhere.org") == (
            f"The mails of ben:\nEmail ID: Lunch.eml\n{read}\n{RULE}"
        )

    def test_a_list_shows_the_beginning(self, act: Act) -> None:
        act("email.send_email", **{**LUNCH, "content": "x" * 50})
        assert f"Content: {'x' * 20}...\n" in act("email.list_emails", username="Ann")

    @pytest.mark.parametrize(
        ("subject", "file"),
        [
            ('a/b: "it\'s" é', 'a_b: "it\'s" é.eml'),
            ("", "no subject.eml"),
            ("y" * 300, "y" * 200 + ".eml"),
            ("é" * 150, "é" * 100 + ".eml"),
            ("../../escape", ".._.._escape.eml"),
        ],
    )
    def test_any_subject_makes_a_file_that_is_found_again(self, act: Act, testbed: Path, subject: str, file: str) -> None:
        assert act("email.send_email", **{**LUNCH, "subject": subject}).startswith("Successfully")
        assert (testbed / "emails/ben" / file).is_file()
        assert f"Subject: {subject}\n" in act("email.read_email", username="ben", email_id=subject)

    def test_a_mail_replaces_one_of_the_same_subject(self, act: Act) -> None:
        act("email.send_email", **LUNCH)
        act("email.send_email", **{**LUNCH, "content": "At two."})
        listed = act("email.list_emails", username="ben")
        assert listed.count("Email ID") == 1 and "At two." in listed

    def test_one_broken_mail_hides_no_other(self, act: Act, testbed: Path) -> None:
        made.mail(testbed / "emails/Ann/good.eml", content="good")
        made.mail(testbed / "emails/Ann/nocharset.eml", head="", content="plain")
        (testbed / "emails/Ann/noise.eml").write_bytes(bytes(range(256)))
        listed = act("email.list_emails", username="Ann")
        assert [line for line in listed.splitlines() if line.startswith("Email ID")] == [
            "Email ID: good.eml",
            "Email ID: nocharset.eml",
            "Email ID: noise.eml",
        ]
        assert "Content: plain" in listed
        assert act("email.read_email", username="Ann", email_id="nocharset").endswith("Content: plain\n...")

    def test_empty_mailboxes_and_missing_mails_are_said(self, act: Act, testbed: Path) -> None:
        assert act("email.list_emails", username="Cid") == "Cid has no mails."
        assert (testbed / "emails/Cid").is_dir()
        said = act("email.read_email", username="Cid", email_id="x/y.eml")
        assert said == "! Cid has no mail 'x/y.eml'; list_emails shows the IDs."

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"recipient": ["ben", "cid"]}, "recipient must be a single name; do it for one after the other."),
            ({"subject": "two\nlines"}, "subject must be a single line."),
            ({"sender": "a/b"}, "sender must be a user's name, without slashes."),
            ({"content": None}, "content must be text, not nothing."),
        ],
    )
    def test_what_cannot_be_sent_is_said_and_leaves_nothing(
        self, act: Act, testbed: Path, changed: dict[str, Any], message: str
    ) -> None:
        assert act("email.send_email", **{**LUNCH, **changed}) == f"! {message}"
        assert not list(testbed.rglob("*.eml"))

    def test_a_file_in_the_place_of_a_mailbox_is_said(self, act: Act, testbed: Path) -> None:
        (testbed / "emails").mkdir()
        (testbed / "emails/Ann").write_text("no folder")
        said = act("email.list_emails", username="Ann")
        assert said == "! The folder /testbed/emails/Ann cannot be made: File exists."
