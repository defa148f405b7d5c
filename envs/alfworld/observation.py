"""What ALFWorld's texts say, as facts and evidence. Pure functions.

Evidence is environment-tier: every line read here is the simulator's own. Entities are named as in the game ("apple 2",
"fridge 1", "agent", "task"). Attributes and values:

| entity | attribute | value |
|---|---|---|
| object | `location` | a receptacle, or "agent" when carried |
| object | `clean`, `on` | true, false |
| object | `temperature` | "hot", "cool" |
| receptacle | `state` | "open", "closed" |
| receptacle | `contents` | the objects in or on it, sorted |
| agent | `location`, `holding` | a receptacle; an object or "nothing" |
| task | `completed` | true, as soon as the goal holds |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from harness.contracts import TIER_ENVIRONMENT, Evidence

Fact = tuple[str, str, object]  # entity, attribute, value

_NAME = r"[a-z]+ \d+"
_ITEM = re.compile(rf"\ban? ({_NAME})")
_GOALS = (
    r"put (?:a|some) (?:clean |hot |cool )?(?P<object>\w+) (?:in|on) (?P<receptacle>\w+)",
    r"(?:clean|heat|cool) some (?P<object>\w+) and put it in (?P<receptacle>\w+)",
    r"(?:put|find) two (?P<object>\w+) (?:in|and put them in) (?P<receptacle>\w+)",
    r"look at (?P<object>\w+) under the (?P<lamp>\w+)",
    r"examine the (?P<object>\w+) with the (?P<lamp>\w+)",
)


def strip_banner(text: str) -> str:
    """The first observation without TextWorld's line of welcome, which says nothing about the task."""
    return re.sub(r"\A-= Welcome.*?=-\s*", "", text)


def parse_goal(goal: str) -> dict[str, str]:
    """The types that a goal sentence names: `object` with `receptacle` or `lamp`; empty for a sentence of another form."""
    for pattern in _GOALS:
        found = re.fullmatch(pattern, goal.rstrip("."))
        if found:
            return found.groupdict()
    return {}


def context_facts(family: str, goal: str, first_observation: str) -> frozenset[str]:
    """F_q: `family=…`, `object=…`, `receptacle=…` or `lamp=…` from the goal, `room=…` for each type of receptacle in the room."""
    room = first_observation.partition("Your task is to:")[0]
    facts = {f"family={family}", *(f"{kind}={name}" for kind, name in parse_goal(goal).items())}
    return frozenset(facts | {f"room={name.rsplit(' ', 1)[0]}" for name in _ITEM.findall(room)})


def _contents(place: str, listing: str) -> Iterator[Fact]:
    items = sorted(_ITEM.findall(listing))
    yield place, "contents", tuple(items)
    for item in items:
        yield item, "location", place


def _taken(thing: str, _place: str) -> Iterator[Fact]:
    yield thing, "location", "agent"
    yield "agent", "holding", thing


def _moved(thing: str, place: str) -> Iterator[Fact]:
    yield thing, "location", place
    yield "agent", "holding", "nothing"


def _described(words: str, thing: str) -> Iterator[Fact]:
    if "clean" in words:
        yield thing, "clean", True
    for word, value in (("hot", "hot"), ("cool", "cool"), ("cold", "cool")):
        if word in words:
            yield thing, "temperature", value


# In the order in which the engine puts them together: an arrival may be followed by the state and the contents of the place.
_RULES: tuple[tuple[str, Callable[..., Iterator[Fact]]], ...] = (
    (rf"You arrive at ({_NAME})\.", lambda place: iter([("agent", "location", place)])),
    (
        rf"You (open|close) the ({_NAME})\.",
        lambda verb, place: iter([(place, "state", {"open": "open", "close": "closed"}[verb])]),
    ),
    (rf"The ({_NAME}) is (open|closed)\.", lambda place, state: iter([(place, "state", state)])),
    (rf"On the ({_NAME}), you see ([^.]*)\.", _contents),
    (rf"The ({_NAME}) is open\. In it, you see ([^.]*)\.", _contents),
    (rf"You pick up the ({_NAME}) from the ({_NAME})\.", _taken),
    (rf"You move the ({_NAME}) to the ({_NAME})\.", _moved),
    (rf"You put the ({_NAME}) in/on the ({_NAME})\.", _moved),
    (rf"You clean the ({_NAME}) using", lambda thing: iter([(thing, "clean", True)])),
    (rf"You heat the ({_NAME}) using", lambda thing: iter([(thing, "temperature", "hot")])),
    (rf"You cool the ({_NAME}) using", lambda thing: iter([(thing, "temperature", "cool")])),
    (rf"You turn (on|off) the ({_NAME})\.", lambda switch, thing: iter([(thing, "on", switch == "on")])),
    (rf"This is a ([a-z ]+?) ({_NAME})\.", _described),
    (rf"This ({_NAME}) is (on|off)\.", lambda thing, switch: iter([(thing, "on", switch == "on")])),
    (rf"You are carrying: an? ({_NAME})\.", lambda thing: _taken(thing, "")),
    (r"You are not (carrying) anything\.", lambda _: iter([("agent", "holding", "nothing")])),
)
_COMPILED = tuple((re.compile(pattern), read) for pattern, read in _RULES)


def read_evidence(observation: str, won: bool, step: int) -> tuple[Evidence, ...]:
    """The facts that the feedback of step number `step` (from 1) states, in the order of the text's kinds, without repeats."""
    facts: list[Fact] = []
    for pattern, read in _COMPILED:
        for found in pattern.finditer(observation):
            facts += read(*found.groups())
    if won:
        facts.append(("task", "completed", True))
    return tuple(
        Evidence(key=(entity, attribute), value=value, tier=TIER_ENVIRONMENT, source="alfworld", observed_at=(step, number))
        for number, (entity, attribute, value) in enumerate(dict.fromkeys(facts))
    )
