"""The email app, on the standard library: a folder emails/<user> per user, a file <subject>.eml per mail.

As in the official app addresses are <name>@example.com, both mailboxes get a copy, a mail replaces one of the same subject, and
looking into a mailbox makes its folder. A slash in a subject becomes an underscore in the file's name (the official app fails on
it), quotes are kept, and one mail that cannot be read hides no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any

from ..readers import NO_EMAILS, PREVIEW, email_text, mailbox_text
from .workspace import Refused, Workspace, file_name, one_user, text

_DOMAIN = "example.com"


def send_email(space: Workspace, arguments: Mapping[str, Any]) -> str:
    sender, recipient = one_user(arguments, "sender"), one_user(arguments, "recipient")
    subject, content = text(arguments, "subject").strip(), text(arguments, "content")
    if "\n" in subject or "\r" in subject:
        raise Refused("subject must be a single line.")
    message = EmailMessage()
    try:
        message["From"], message["To"], message["Subject"] = f"{sender}@{_DOMAIN}", f"{recipient}@{_DOMAIN}", subject
        message.set_content(content)
        written = message.as_string()
    except ValueError as error:
        raise Refused(f"The mail cannot be written: {error}.") from error
    for user in (recipient, sender):
        (space.folder("emails", user) / _id(subject)).write_text(written, encoding="utf-8")
    return f"Successfully sent the mail to {recipient}."


def list_emails(space: Workspace, arguments: Mapping[str, Any]) -> str:
    user = one_user(arguments, "username")
    listed = mailbox_text(space.folder("emails", user), strict=False, preview=PREVIEW)
    return f"{user} has no mails." if listed == NO_EMAILS else f"The mails of {user}:\n{listed}"


def read_email(space: Workspace, arguments: Mapping[str, Any]) -> str:
    user, wanted = one_user(arguments, "username"), text(arguments, "email_id").strip()
    path = space.folder("emails", user) / _id(wanted.removesuffix(".eml"))
    if not path.is_file():
        raise Refused(f"{user} has no mail {wanted!r}; list_emails shows the IDs.")
    try:
        return f"The mail {path.name} of {user}:\n{email_text(path)}"
    except Exception as error:
        raise Refused(f"The mail {path.name} of {user} cannot be read ({type(error).__name__}).") from error


def _id(subject: str) -> str:
    return f"{file_name(subject) or 'no subject'}.eml"
