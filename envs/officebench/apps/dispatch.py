"""From a request to an answer: finds the function of an action, and turns whatever goes wrong into an observation."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from .catalogue import check, unwrapped
from .workspace import Refused, Workspace

KEPT = 100_000  # characters of an observation, far below what a channel holds
# imported when first used: a sandbox that never opens a PDF does not load pypdf
FUNCTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("calendar", "create_event"): "calendars:create_event",
        ("calendar", "delete_event"): "calendars:delete_event",
        ("calendar", "list_events"): "calendars:list_events",
        ("excel", "read_file"): "sheets:read_file",
        ("excel", "set_cell"): "sheets:set_cell",
        ("excel", "delete_cell"): "sheets:delete_cell",
        ("excel", "create_new_file"): "sheets:create_new_file",
        ("excel", "convert_to_pdf"): "conversions:excel_to_pdf",
        ("ocr", "recognize_file"): "images:recognize_file",
        ("pdf", "convert_to_image"): "pdfs:convert_to_image",
        ("pdf", "convert_to_word"): "pdfs:convert_to_word",
        ("pdf", "read_file"): "pdfs:read_file",
        ("shell", "command"): "shell:command",
        ("word", "convert_to_pdf"): "conversions:word_to_pdf",
        ("word", "create_new_file"): "documents:create_new_file",
        ("word", "read_file"): "documents:read_file",
        ("word", "write_to_file"): "documents:write_to_file",
        ("email", "send_email"): "mail:send_email",
        ("email", "list_emails"): "mail:list_emails",
        ("email", "read_email"): "mail:read_email",
    }
)


def perform(space: Workspace, app: str, action: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
    """(observation, whether the action did its work). Raises nothing that a model could cause."""
    if problem := check(app, action, arguments):
        return problem, False
    if (app, action) not in FUNCTIONS:
        return f"{app}.{action} is not played in here.", False
    module, _, name = FUNCTIONS[app, action].partition(":")
    function = getattr(import_module(f".{module}", __package__), name)
    try:
        observation, ok = str(function(space, unwrapped(arguments))), True
    except Refused as error:
        observation, ok = str(error), False
    except OSError as error:
        observation, ok = f"{app}.{action} failed: {error.strerror or type(error).__name__}.", False
    except Exception as error:  # a library that stumbles over a file a model has made
        observation, ok = f"{app}.{action} failed ({type(error).__name__}: {str(error)[:200]}).", False
    if len(observation) > KEPT:
        observation = observation[:KEPT] + "\n[cut here]"
    return observation.strip(), ok
