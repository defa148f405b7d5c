"""What an agent may not ask of the browser, although BrowserGym would try: to wait for ever, to read this machine's files, and to
run a page of its own, whose endless loop would count as a failure of the browser instead of the task."""

from __future__ import annotations

import ast
import urllib.parse

LONGEST_WAIT = 10_000  # ms of a noop, as long as the slowest page may take: the worker's own limit is for failures only
CLOSED = ("file", "filesystem", "view-source", "chrome", "devtools", "javascript", "data", "blob")


def check_call(code: str) -> None:
    """Raises ValueError, which becomes the action's error, for a call that is refused.

    `code` is what BrowserGym has made of an action: its last line is the call, with literals only.
    """
    lines = code.rstrip().splitlines()
    try:
        call = ast.parse(lines[-1], mode="eval").body if lines else None
    except (SyntaxError, ValueError):
        return
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return
    first = next(iter([*call.args, *(keyword.value for keyword in call.keywords)]), None)
    value = first.value if isinstance(first, ast.Constant) else None
    if call.func.id == "noop" and isinstance(value, int | float) and value > LONGEST_WAIT:
        raise ValueError(f"noop waits for {LONGEST_WAIT} ms at most")
    if call.func.id == "goto" and isinstance(value, str):
        scheme = urllib.parse.urlsplit(value.strip()).scheme.lower()
        if scheme in CLOSED:
            raise ValueError(f"addresses that begin with {scheme}: cannot be opened")
