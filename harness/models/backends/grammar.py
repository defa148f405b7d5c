"""GBNF: a grammar that admits exactly the given texts."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def choice_grammar(choices: Sequence[str]) -> str:
    """A GBNF grammar whose language is `choices`, the full texts: an index grammar makes a small model always answer 1.

    Raises ValueError for no choices: nothing could be said.
    """
    if not choices:
        raise ValueError("a choice grammar needs at least one choice")
    return "root ::= " + " | ".join(f'"{_escaped(choice)}"' for choice in dict.fromkeys(choices))


def _escaped(text: str) -> str:
    named = dict(_NAMED)
    return "".join(named.get(c) or (c if c.isprintable() else _numbered(c)) for c in text)


def _numbered(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
