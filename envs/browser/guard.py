"""What an agent may not ask of the browser, although BrowserGym would try: to wait for ever, to read this machine's files, and to
run a page of its own, whose endless loop would count as a failure of the browser instead of the task."""

from __future__ import annotations

import ast
import urllib.parse

LONGEST_WAIT = 10_000  # ms of a noop, as long as the slowest page may take: the worker's own limit is for failures only
LONGEST_TYPED = 2_000  # characters of keyboard_type, which presses key after key (4 ms each); fill has no such limit
FARTHEST = 1_000_000  # pixels: at what is no 32-bit float Chromium never answers
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
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    for part in arguments:
        number = part.operand if isinstance(part, ast.UnaryOp) else part
        if isinstance(number, ast.Constant) and isinstance(number.value, int | float) and not number.value <= FARTHEST:
            raise ValueError(f"numbers go up to {FARTHEST}")
    first = next(iter(arguments), None)
    value = first.value if isinstance(first, ast.Constant) else None
    if call.func.id == "noop" and isinstance(value, int | float) and value > LONGEST_WAIT:
        raise ValueError(f"noop waits for {LONGEST_WAIT} ms at most")
    if call.func.id == "keyboard_type" and isinstance(value, str) and len(value) > LONGEST_TYPED:
        raise ValueError(f"keyboard_type writes {LONGEST_TYPED} characters at most")
    if call.func.id == "goto" and isinstance(value, str):
        scheme = urllib.parse.urlsplit(value.strip()).scheme.lower()
        if scheme in CLOSED:
            raise ValueError(f"addresses that begin with {scheme}: cannot be opened")
