"""From a model's text to an action: a JSON object (or Python dict) with `app`, `action` and the action's arguments."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from envs.officebench.apps.catalogue import unwrapped


@dataclass(frozen=True)
class Action:
    """A well-formed action."""

    app: str
    name: str
    arguments: Mapping[str, Any]

    def text(self) -> str:
        """The canonical form, one line of JSON."""
        return json.dumps({"app": self.app, "action": self.name, **self.arguments}, ensure_ascii=False)


def parse(text: str) -> Action | None:
    """The action in `text`: from its first brace to its last, as the official loop cuts it; None where it is malformed.

    A list of one element stands for the element, and `switch_app` belongs to the app system whatever `app` says (both as in
    the official loop).
    """
    found = _literal(text[text.find("{") : text.rfind("}") + 1]) if "{" in text and "}" in text else None
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        return None
    fields = unwrapped(found)
    app, name = fields.pop("app", None), fields.pop("action", None)
    if name == "switch_app":
        app = "system"
    if not isinstance(app, str) or not isinstance(name, str):
        return None
    return Action(app, name, fields)


def _literal(text: str) -> Any:
    readers: tuple[Callable[[str], Any], ...] = (partial(json.loads, strict=False), ast.literal_eval)
    for read in readers:
        try:
            value = read(text)
            json.dumps(value)
            return value
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return None


def normalise(text: str) -> str:
    """The action in its canonical form; a text without one as it is (it spends the turn); empty only for an empty text."""
    action = parse(text)
    return action.text() if action is not None else text.strip()
