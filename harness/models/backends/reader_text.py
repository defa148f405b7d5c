"""How the scripted reader reads a prompt: sections, past episodes, commands, and what of a past episode carries over.

The headings are those of the common prompt (METHODS.md 1.4), matched tolerantly: past successes or procedures stand before a
heading that begins with "Current task"; an episode is `> action` lines with the observations between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_TASK = re.compile(r"^\W*current task\b.*$", re.IGNORECASE | re.MULTILINE)
_MEMORY = re.compile(r"^\W*(?:.*\bpast successes\b.*|(?:team )?procedures?\b.*)$", re.IGNORECASE | re.MULTILINE)
_CARD = re.compile(r"^\W*(?:task|procedure|example|case)\b[^:\n]{0,20}:", re.IGNORECASE | re.MULTILINE)
_GOAL = re.compile(r"\btask is to:?\s*(.+)", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s+(.*)$")
_VERB = re.compile(
    r"^(go to|pick up|take|move|put|place|clean|heat|cool|slice|use|turn on|toggle|open|close|examine|look at)\s+(.+)$"
)
_PREPOSITION = re.compile(r"\s+(?:from|to|into|onto|in/on|in|on|with|under)\s+")
_ID = re.compile(r"\s*\[[^\]]*\](?:\s*\([^)]*\))?\s*$")  # "… [s1]", "… [c1 v2] (provisional)"
_NUMBER = re.compile(r"\s*\d+$")
_WORD = re.compile(r"[a-z]+")

_SAME_VERB = (("pick up", "take"), ("put", "move"), ("place", "move"), ("turn on", "use"), ("toggle", "use"))
PERCEIVING = ("go to", "open", "close", "examine", "look", "look at", "inventory", "help", "wait", "think")
FAILED = ("nothing happens", "invalid", "error", "you can't", "unknown")

# words of a goal that name no thing: the others, in order, are what a plan is bound to
_FUNCTION_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a an the some any and or it its them then that this of is to in on at into onto with under from for your you task "
        "put place move find get look examine use take bring one two clean cleaned wash rinse hot heat heated warm cook cool "
        "cooled cold chill chilled turn",
    )
)

# what makes one goal of another kind than the next: kind, the words that show it, and the appliance it needs
_KINDS = (
    ("clean", frozenset({"clean", "cleaned", "wash", "rinse"}), "sinkbasin"),
    ("heat", frozenset({"hot", "heat", "heated", "warm", "cook"}), "microwave"),
    ("cool", frozenset({"cool", "cooled", "cold", "chill", "chilled"}), "fridge"),
    ("look", frozenset({"look", "examine"}), ""),
    ("two", frozenset({"two"}), ""),
)


@dataclass(frozen=True)
class Command:
    """A command: its verb and the things it names ("mug 1"); `types` are those without their numbers."""

    verb: str
    things: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(type_of(thing) for thing in self.things)

    @property
    def interacts(self) -> bool:
        return self.verb not in PERCEIVING


@dataclass(frozen=True)
class Step:
    """A command as it was given, and what came of it."""

    command: Command
    observation: str

    @property
    def failed(self) -> bool:
        return self.observation.strip().lower().startswith(FAILED)


@dataclass(frozen=True)
class Plan:
    """What carries over from a past episode: (verb, types) of its interactions, bound to the current goal, and where the
    things were found then."""

    steps: tuple[tuple[str, tuple[str, ...]], ...] = ()
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A prompt as the reader sees it: what memory gave, the current goal, and the current episode so far."""

    memory: str
    goal: str
    initial: str
    steps: tuple[Step, ...] = field(default=())


def type_of(thing: str) -> str:
    return _NUMBER.sub("", thing)


def parse_command(text: str) -> Command:
    """A command in any of the two ALFWorld grammars, or any other text as (first word, rest)."""
    text = text.strip().lower()
    match = _VERB.match(text)
    if match is None:
        verb, _, rest = text.partition(" ")
        return Command(verb, (rest,) if rest else ())
    verb = dict(_SAME_VERB).get(match[1], match[1])
    return Command(verb, tuple(part.strip() for part in _PREPOSITION.split(match[2]) if part.strip()))


def read_prompt(text: str) -> Prompt:
    """Split a user message into memory part, goal and the episode so far."""
    headings = list(_TASK.finditer(text))
    before, current = (text[: headings[-1].start()], text[headings[-1].end() :]) if headings else ("", text)
    found = _MEMORY.search(before)
    goal = _GOAL.search(current)
    first_line = next((line for line in current.splitlines() if line.strip()), "")
    return Prompt(
        memory=before[found.end() :] if found else "",
        goal=(goal[1] if goal else first_line).strip(),
        initial=current.partition("\n>")[0],
        steps=read_steps(current),
    )


def read_steps(text: str) -> tuple[Step, ...]:
    """The `> action` lines of an episode with their observations; a lone `>` is the prompt marker."""
    steps: list[Step] = []
    action: str | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), ">"]:
        if not line.startswith(">"):
            lines.append(line)
            continue
        if action:
            steps.append(Step(parse_command(action), "\n".join(lines)))
        action, lines = line[1:].strip(), []
    return tuple(steps)


def kinds_of(goal: str) -> frozenset[str]:
    """What kind of task a goal is: "put a clean mug in cabinet" → {clean}; empty for plain ones."""
    words = set(_WORD.findall(goal.lower()))
    return frozenset(kind for kind, shown_by, _ in _KINDS if words & shown_by)


def plan_from(memory: str, goal: str) -> Plan | None:
    """The plan of the first past episode (or procedure) whose goal is of the same kind; None where the memory shows none."""
    for card in _cards(memory):
        steps = [s.command for s in read_steps(card) if not s.failed] or _listed(card)
        doing = [c for c in steps if c.interacts and c.things]
        match = _GOAL.search(card)
        past_goal = _ID.sub("", match[1] if match else card.partition("\n")[0]).strip()
        if doing and kinds_of(past_goal) == kinds_of(goal):
            return _bind(doing, past_goal, goal)
    return None


def plan_from_goal(goal: str) -> Plan:
    """What a competent player would do for an ALFWorld goal without any memory."""
    kinds, things = kinds_of(goal), goal_things(goal)
    if len(things) < 2:
        return Plan()
    thing, target = things[0], things[-1]
    if "look" in kinds:
        return Plan((("take", (thing,)), ("use", (target,))))
    treatment = [(kind, (thing, appliance)) for kind, _, appliance in _KINDS if kind in kinds and appliance]
    once: list[tuple[str, tuple[str, ...]]] = [("take", (thing,)), *treatment, ("move", (thing, target))]
    return Plan(tuple(once * (2 if "two" in kinds else 1)))


def goal_things(goal: str) -> list[str]:
    """The things a goal names, in order: "put a clean mug in cabinet" → mug, cabinet."""
    return [word for word in _WORD.findall(goal.lower()) if word not in _FUNCTION_WORDS]


def _cards(memory: str) -> list[str]:
    starts = [m.end() for m in _CARD.finditer(memory)]
    ends = [*[m.start() for m in _CARD.finditer(memory)][1:], len(memory)]
    return [memory[a:b].strip() for a, b in zip(starts, ends, strict=True)] if starts else [memory.strip()]


def _listed(card: str) -> list[Command]:
    """The steps of a procedure written as a list, their identifiers left out."""
    texts = [_ID.sub("", m[1]) for line in card.splitlines() if (m := _BULLET.match(line))]
    return [parse_command(text) for text in texts if _VERB.match(text.strip().lower())]


def _bind(doing: Sequence[Command], past_goal: str, goal: str) -> Plan:
    """Replace the things of the past goal by those in the same place of the current one; everything else stays."""
    renamed = dict(zip(goal_things(past_goal), goal_things(goal), strict=False))
    steps: list[tuple[str, tuple[str, ...]]] = []
    places: list[str] = []
    for command in doing:
        types = tuple(renamed.get(t, t) for t in command.types)
        if command.verb == "take":
            places += [t for t in command.types[1:] if t not in places]
            types = types[:1]  # it may lie anywhere today
        steps.append((command.verb, types))
    return Plan(tuple(steps), tuple(places))
