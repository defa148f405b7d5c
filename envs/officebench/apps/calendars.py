"""The calendar app, on icalendar: a file calendar/<user>.ics per user.

Times are written without a zone, as in the official app. Looking at a calendar that does not exist makes an empty one, as there:
a check that the file must not exist depends on it. Deleting works here; the official action always fails. An event's stamp and
identifier come from its content, so that two plays of a task leave the same bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..readers import calendar_text
from .workspace import Refused, Workspace, one_user, text

_FORMAT = "%Y-%m-%d %H:%M:%S"


def create_event(space: Workspace, arguments: Mapping[str, Any]) -> str:
    from icalendar import Event

    user, summary = one_user(arguments, "user"), text(arguments, "summary")
    start, end = _time(arguments, "time_start"), _time(arguments, "time_end")
    path = _file(space, user)
    calendar = _read(path, user)
    event = Event()
    event.add("summary", summary)
    event.add("dtstart", start)
    event.add("dtend", end)
    event.add("dtstamp", start.replace(tzinfo=UTC))
    event.add("uid", str(uuid.uuid5(uuid.NAMESPACE_URL, f"{user}\n{summary}\n{start}\n{end}")))
    calendar.add_component(event)
    path.write_bytes(calendar.to_ical())
    return f"Successfully created the event in {user}'s calendar."


def delete_event(space: Workspace, arguments: Mapping[str, Any]) -> str:
    user, summary = one_user(arguments, "user"), text(arguments, "summary").strip()
    path = _file(space, user)
    if not path.exists():
        raise Refused(f"{user} has no calendar.")
    calendar = _read(path, user)
    for event in calendar.walk("VEVENT"):
        if str(event.get("summary", "")).strip() == summary:
            calendar.subcomponents.remove(event)
            path.write_bytes(calendar.to_ical())
            return f"Successfully deleted the event {summary!r} from {user}'s calendar."
    raise Refused(f"{user}'s calendar has no event called {summary!r}.")


def list_events(space: Workspace, arguments: Mapping[str, Any]) -> str:
    user = one_user(arguments, "username")
    path = _file(space, user)
    if not path.exists():
        path.write_bytes(_read(path, user).to_ical())
    try:
        events = calendar_text(path)
    except Exception as error:
        raise _unreadable(user, error) from error
    return f"The events of {user}:\n{events}" if events else f"{user} has no events."


def _file(space: Workspace, user: str) -> Path:
    return space.folder("calendar") / f"{user}.ics"


def _read(path: Path, user: str) -> Any:
    from icalendar import Calendar

    if not path.exists():
        calendar = Calendar()
        calendar.add("prodid", "-//MemArena//OfficeBench//EN")
        calendar.add("version", "2.0")
        return calendar
    try:
        return Calendar.from_ical(path.read_bytes())
    except Exception as error:
        raise _unreadable(user, error) from error


def _unreadable(user: str, error: Exception) -> Refused:
    return Refused(f"The calendar of {user} cannot be read ({type(error).__name__}).")


def _time(arguments: Mapping[str, Any], name: str) -> datetime:
    given = text(arguments, name).strip()
    try:
        return datetime.strptime(given, _FORMAT)
    except ValueError as error:
        raise Refused(f"{name} is {given!r}, but must look like 2024-05-01 09:30:00.") from error
