"""Action text: from a model's answer to a command that the game admits. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection

NOTHING_HAPPENS = "Nothing happens."
THINK = "think:"

_PUT = re.compile(r"(?:put (?P<put>.+?) (?:in/on|in|on)|move (?P<move>.+?) to) (?P<place>.+)")


def normalise(text: str) -> str:
    """The action in a model's answer (METHODS.md 2.1): no `<`/`>`, first line only, no `OK`/`OK.` tokens.

    Runs of blanks become one, since the engine compares commands letter by letter. Idempotent; "" where nothing is left.
    """
    lines = text.replace("<", "").replace(">", "").strip().splitlines()
    return " ".join(word for word in lines[0].split() if word not in ("OK", "OK.")) if lines else ""


def to_command(action: str, admissible: Collection[str]) -> str:
    """`action` in the grammar of the game.

    Releases of ALFWorld's data from 0.4.0 on say `move X to Y`, older ones `put X in/on Y`; models have read both. An action
    of either kind becomes the spelling that is admissible now; everything else is left as it is.
    """
    if action in admissible:
        return action
    found = _PUT.fullmatch(action)
    if found is None:
        return action
    thing, place = found["put"] or found["move"], found["place"]
    return next((command for command in spellings(thing, place) if command in admissible), action)


def spellings(thing: str, place: str) -> tuple[str, str]:
    """The two ways to say that `thing` goes to `place`: new grammar, old grammar."""
    return f"move {thing} to {place}", f"put {thing} in/on {place}"
