"""The stored solutions: clicks by role and name on the page as it is, in scripts.json by task.

A move is ["click", role, name], ["fill", role, name, text], ["select_option", role, name, option], or any other action of the
action set with its arguments, as ["send_msg_to_user", text].
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from functools import cache
from importlib import resources
from typing import Any

from envs.browser.plan import Page
from envs.browser.session import Script
from envs.browser.tree import find

ON_ELEMENTS = ("click", "fill", "select_option")
Move = Sequence[Any]


@cache
def moves(task_id: str) -> tuple[Move, ...]:
    """The moves that solve a task. Raises KeyError for a task that is none of the double's."""
    text = resources.files(__package__).joinpath("scripts.json").read_text(encoding="utf-8")
    return tuple(json.loads(text)[task_id])


def action(move: Move, tree: str) -> str:
    """The action of a move on the page whose tree this is. Raises LookupError where the element is not there."""
    name, *arguments = move
    if name in ON_ELEMENTS:
        role, label, *rest = arguments
        node = find(tree, role, label)
        if node is None:
            raise LookupError(f"no {role} '{label}' on this page")
        arguments = [node.bid, *rest]
    return f"{name}({', '.join(map(repr, arguments))})"


def script(plan: Sequence[Move]) -> Script:
    """The moves as a script: one action a page."""

    def play(page: Page) -> Generator[str, Page, None]:
        for move in plan:
            page = yield action(move, page.tree)

    return play
