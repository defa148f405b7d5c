"""What a scripted model says in the roles of hosts and memories that do not act: made from the prompt and the request's digest.

The same request always gets the same answer; different requests exercise different branches (a rule is added, edited, agreed
with or removed; a critic supports or objects), so that a scripted run goes through the whole of a method. A role without an
entry here gets one of the general answers of `scripted_text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.contracts import Call

Writer = Callable[[str, int], str]  # the prompt and a number drawn from the digest → the answer

_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_SPEAKER = re.compile(r"^(user|planner|solver|critic|environment): ", re.MULTILINE)
_REPLY = re.compile(r"^- reply \d+: ", re.MULTILINE)

RULES = (
    "Look for the needed object before anything else, because every later step depends on it.",
    "Open closed places when an object is missing, because most objects are kept inside something.",
    "Check what is being carried before moving on, because only one object can be held.",
    "Do not repeat an action that changed nothing, because the result will be the same.",
    "Treat the object before placing it, because a placed object no longer counts as treated.",
    "Visit likely places first, because the number of steps is limited.",
    "Read the goal again when stuck, because a condition may have been overlooked.",
)


def role_answer(call: Call, digest: str) -> str | None:
    """The answer for the call's role, None where it has no entry."""
    writer = dict(WRITERS).get(call.role)
    if writer is None:
        return None
    return writer("\n".join(message["content"] for message in call.messages if message["role"] == "user"), int(digest[:8], 16))


def with_ratings(call: Call, text: str, digest: str) -> str:
    """An acting answer of `dylan_original`, the ratings of the upstream replies added where the prompt shows any."""
    user = "\n".join(message["content"] for message in call.messages if message["role"] == "user")
    count = len(_REPLY.findall(user)) if call.role == "host.dylan_original.agent" else 0
    ratings = ", ".join(str(int(digest[place % 16], 16) % 5 + 1) for place in range(count))
    return f"{text}\n[[{ratings}]]" if count else text


def _items(prompt: str) -> list[str]:
    """The last numbered list of a prompt (numbers counting up from 1)."""
    items: list[str] = []
    for number, text in _NUMBERED.findall(prompt):
        items = [text] if number == "1" else [*items, text]
    return items


# --- hosts ------------------------------------------------------------------------------------------------------------
def _order(prompt: str, number: int) -> str:
    """A ranking of the listed proposals, rotated."""
    places = list(range(1, (len(_items(prompt)) or 3) + 1))
    turn = number % len(places) if _items(prompt) else 0
    return " > ".join(map(str, places[turn:] + places[:turn]))


def _best_two(prompt: str, number: int) -> str:
    count = max(2, len(_items(prompt)))
    first = number % count
    return f"[{first + 1}, {(first + 1) % count + 1}]"


def _next_speaker(prompt: str, number: int) -> str:
    """The planner first, then solver and environment by turns; every third proposal goes to the critic first."""
    speakers = _SPEAKER.findall(prompt)
    last = speakers[-1] if speakers else "user"
    if last == "user":
        return "planner"
    if last == "solver":
        return "critic" if number % 3 == 0 else "environment"
    return "environment" if last == "critic" else "solver"


def _opinion(prompt: str, number: int) -> str:
    return "Support" if number % 2 else "Look around before you decide."


# --- memories ---------------------------------------------------------------------------------------------------------
def _operations(prompt: str, number: int) -> str:
    """One operation on the listed rules; new rules while there are few."""
    rules, text = _items(prompt), RULES[number % len(RULES)]
    place = number % max(1, len(rules)) + 1
    if not rules or number % 8 < 3:
        return f"ADD: {text}"
    if number % 8 == 3:
        return f"REMOVE {place}: {rules[place - 1]}"
    return f"{'EDIT' if number % 8 == 4 else 'AGREE'} {place}: {text if number % 8 == 4 else rules[place - 1]}"


def _first_third(prompt: str, number: int) -> str:
    items = _items(prompt)
    return "\n".join(f"{place}. {text}" for place, text in enumerate(items[: max(1, -(-len(items) // 3))], 1))


def _same_list(prompt: str, number: int) -> str:
    return "\n".join(f"{place}. {text}" for place, text in enumerate(_items(prompt), 1))


def _scores(prompt: str, number: int) -> str:
    return "\n".join(f"{place}: {(number + 3 * place) % 10 + 1}" for place in range(1, len(_items(prompt)) + 1))


def _questions(prompt: str, number: int) -> str:
    return "1. What helped most?\n2. What cost steps without result?\n3. Where are objects usually found?"


def _reflections(prompt: str, number: int) -> str:
    count = max(1, len(_items(prompt)))
    return "\n".join(
        f"{place}. {RULES[(number + place) % len(RULES)].rstrip('.')} (because of {number % count + 1})"
        for place in (1, 2, 3, 4, 5)
    )


def _summary(prompt: str, number: int) -> str:
    actions = [line[2:].strip() for line in prompt.splitlines() if line.startswith("> ")]
    return f"The team took {len(actions)} actions, the last of them: {actions[-1] if actions else 'none'}."


def _verdict(prompt: str, number: int) -> str:
    return "OK" if number % 2 else "REPLAN: too many places were visited twice."


# --- environments -----------------------------------------------------------------------------------------------------
# the lines of WebArena's two judging prompts that are compared, and what their judge says then or else
_JUDGED = (
    ("reference answer: ", "student answer: ", "correct", "incorrect"),
    ("actual unachievable reason: ", "reported unachievable reason: ", "same", "different"),
)


def _judge(prompt: str, number: int) -> str:
    """A strict teacher: the answer must hold the reference word for word. Other judging prompts get a score."""
    lines = prompt.lower().splitlines()
    for wanted, given, right, wrong in _JUDGED:
        found = [next((line[len(mark) :] for line in lines if line.startswith(mark)), None) for mark in (wanted, given)]
        if found[0] is not None and found[1] is not None:
            return right if found[0].strip(" .") in found[1] else wrong
    return "Score: 1"


WRITERS: tuple[tuple[str, Writer], ...] = (
    ("env.judge", _judge),
    ("host.dylan.ranker", _order),
    ("host.dylan.critic", _opinion),
    ("host.dylan_original.ranker", _best_two),
    ("host.autogen_selector.selector", _next_speaker),
    ("host.autogen_selector.planner", lambda prompt, number: "Find the object first, then bring it where it belongs."),
    ("host.autogen_selector.critic", _opinion),
    ("memory.gmemory.contrast", _operations),
    ("memory.gmemory.insights", _operations),
    ("memory.gmemory.merge", _first_third),
    ("memory.gmemory.project", _same_list),
    ("memory.gmemory.mistake", lambda prompt, number: "The needed object was never found."),
    ("memory.generative_full.importance", _scores),
    ("memory.generative_full.questions", _questions),
    ("memory.generative_full.reflect", _reflections),
    ("memory.voyager.summarise", _summary),
    ("memory.memorybank.summarise", _summary),
    ("memory.chatdev.summarise", _summary),
    ("memory.metagpt_pool.plan", lambda prompt, number: "1. Find the object. 2. Treat it if needed. 3. Put it in its place."),
    ("memory.metagpt_pool.verify", _verdict),
)
