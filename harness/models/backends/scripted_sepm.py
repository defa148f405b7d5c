"""What a scripted model says where a method plans, judges and extracts with JSON (roles `sepm.*`), and the line of JSON that an
acting agent is asked for. Made from the prompt alone: the same prompt, the same answer.

It plans as the reader would play (see `reader_text`): find or take, treat, place. With a procedure of the same kind in the prompt
it follows that one's steps, looks for the thing first, and heeds a warning that something works only after another step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contracts import Call
from harness.models.backends.reader_text import kinds_of, parse_command, plan_from_goal

_LINE = r"^{}: (.*)$"
_PROCEDURE = re.compile(r"^Procedure: (?P<title>.*?) \[(?P<id>[^\]\s]+)[^\]]*\](?: \(provisional\))?$", re.MULTILINE)
_STEP = re.compile(r"^\d+\. (.*?)(?: \[([^\]]+)\])?$", re.MULTILINE)
_ONLY_AFTER = re.compile(r"works only after '([^']+)'")
_VERIFIED = re.compile(r"^(\S+): (.*?) \| done by: (.*?) \| verified: (.*)$", re.MULTILINE)
_RECORD = re.compile(r"^record (\d+): (.*?) -> ", re.MULTILINE)
_FAILURE = re.compile(r"^\[records ([\d, ]+)\] (.*)$", re.MULTILINE)
_NUMBERS = re.compile(r"\s*\b\d+\b")
_WORD = re.compile(r"\w+")
_PREPOSITION = {"take": " from ", "clean": " with ", "heat": " with ", "cool": " with ", "move": " to "}
HOUSEHOLD = ("put", "find", "look", "examine", "clean", "heat", "cool")  # how ALFWorld's goals begin
_NOW = re.compile(r"Your subtask now: (\S+): ([^;\n]+)")


def sepm_answer(call: Call) -> str | None:
    """The answer for a role that begins with "sepm."; None for any other."""
    if not call.role.startswith("sepm."):
        return None
    prompt = next((m["content"] for m in call.messages if m["role"] == "user"), "")
    writer = dict(WRITERS).get(call.role)
    return json.dumps(writer(prompt)) if writer is not None else "{}"


def with_header(call: Call, text: str) -> str:
    """An acting answer with the line of JSON before it that the rules ask for; as it is where they ask for none."""
    if not any(m["role"] == "system" and "one line of JSON" in m["content"] for m in call.messages) or not text.strip():
        return text
    user = "\n".join(m["content"] for m in call.messages if m["role"] == "user")
    found = _NOW.search(user)
    node, goal = (found[1], found[2]) if found else ("none", text.strip().splitlines()[0])
    if not found and "Your part: " in user:
        part = user.rpartition("Your part: ")[2].partition("\n")[0]
        # prose: the sentence that the action fits best, else the first
        node = goal = max(part.split(". "), key=lambda sentence: _overlap(text, sentence))
    return json.dumps({"node": node, "goal": f"Now: {goal}"[:120]}) + "\n" + text


# --- reading the prompts ----------------------------------------------------------------------------------------------
def _field(prompt: str, name: str) -> str:
    found = re.search(_LINE.format(re.escape(name)), prompt, re.MULTILINE)
    return found[1].strip() if found else ""


def _facts(prompt: str) -> dict[str, str]:
    """The kinds that the facts bind to a single value: object → mug."""
    values: dict[str, list[str]] = {}
    for fact in _field(prompt, "Facts").split("; "):
        kind, separator, value = fact.partition("=")
        if separator:
            values.setdefault(kind, []).append(value)
    return {kind: found[0] for kind, found in values.items() if len(found) == 1}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


def _agent(prompt: str) -> str:
    return _field(prompt, "Team").split(";")[0].split(" (")[0].strip()


@dataclass(frozen=True)
class _Card:
    """A procedure as it stands in a prompt, bound to the task: (text, step id) and what its warnings want done first."""

    id: str
    steps: tuple[tuple[str, str], ...]
    first: tuple[str, ...]


def _card(prompt: str, goal: str, names: Mapping[str, str]) -> _Card | None:
    """The first procedure in the prompt that is for the same kind of goal."""
    starts = list(_PROCEDURE.finditer(prompt))
    for found, end in zip(starts, [*(m.start() for m in starts[1:]), len(prompt)], strict=False):
        body = prompt[found.end() : end]
        if kinds_of(found["title"]) == kinds_of(goal):
            steps = tuple((_renamed(text.split(", after ")[0], names), step or "") for text, step in _STEP.findall(body))
            return _Card(found["id"], steps, tuple(_renamed(text, names) for text in _ONLY_AFTER.findall(body)))
    return None


# --- plans ------------------------------------------------------------------------------------------------------------
def _post(action: str) -> list[dict[str, Any]]:
    """How ALFWorld reports that an action is done."""
    command = parse_command(action)
    types = command.types
    if not types:
        return []
    entity, place = types[0], types[-1]
    known: dict[str, tuple[str, str, Any]] = {
        "find": (entity, "location", None),
        "take": (entity, "location", "agent"),
        "clean": (entity, "clean", True),
        "heat": (entity, "temperature", "hot"),
        "cool": (entity, "temperature", "cool"),
        "move": (entity, "location", place),
        "use": (entity, "on", True),
        "open": (entity, "state", "open"),
    }
    found = known.get(command.verb)
    return [dict(zip(("entity", "attribute", "value"), found, strict=True))] if found else []


def _actions(goal: str) -> list[str]:
    """The steps to a goal of ALFWorld's kind, else the goal's own clauses."""
    steps = plan_from_goal(goal).steps
    if not steps or goal.lower().split()[0] not in HOUSEHOLD:
        return [part.strip(" .") for part in re.split(r"\bthen\b|;", goal) if part.strip(" .")] or [goal]
    return [f"{verb} {_PREPOSITION.get(verb, ' ').join(types)}" for verb, types in steps]


def _plan_steps(prompt: str) -> tuple[list[tuple[str, str | None]], str | None]:
    """(action, "procedure#step" or None) in order, and the procedure that is followed."""
    goal, names = _field(prompt, "Objective"), _facts(prompt)
    card = _card(prompt, goal, names)
    if card is None or not card.steps:
        return [(action, None) for action in _actions(goal)], None
    steps: list[tuple[str, str | None]] = [(text, f"{card.id}#{step}" if step else None) for text, step in card.steps]
    said = [text for text, _ in steps]
    thing = next((parse_command(text).types[0] for text in said if parse_command(text).verb == "take"), None)
    if thing and not any(text.startswith("find ") for text in said):
        steps.insert(0, (f"find {thing}", None))
    for earlier in card.first:
        if earlier.startswith("open ") and earlier not in said:
            at = max(i for i, _ in enumerate(steps))
            steps.insert(at, (earlier, None))
    return steps, card.id


def _plan(prompt: str) -> dict[str, Any]:
    steps, used = _plan_steps(prompt)
    agent = _agent(prompt)
    subtasks: list[dict[str, Any]] = []
    before: str | None = None  # the last step of the chain; opening something needs nothing before it
    aside: list[str] = []
    for number, (action, source) in enumerate(steps, 1):
        opening = action.startswith("open ")
        after = [] if opening else [*([before] if before else []), *aside]
        subtasks.append(
            {"id": f"n{number}", "action": action, "agent": agent, "after": after, "post": _post(action), "from": source}
        )
        if opening:
            aside.append(f"n{number}")
        else:
            before, aside = f"n{number}", []
    return {"subtasks": subtasks, "used": [used] if used else [], "plan": _prose(steps, agent)}


def _prose(steps: Sequence[tuple[str, str | None]], agent: str) -> list[str]:
    """The same plan in sentences, for the textual control."""
    found = []
    for number, (action, _) in enumerate(steps):
        found.append(f"{agent}: {action}" + (f", after '{steps[number - 1][0]}' is done." if number else "."))
    return found


def _replan(prompt: str) -> dict[str, Any]:
    """The plan as it stands, in the form of an answer."""
    agent = _agent(prompt)
    subtasks = []
    for node, owner, after, action in re.findall(
        r"^(\S+) \((\S+?)(?:, after ([^)]*))?\): (.*?)(?: \[\w+\])?$", prompt, re.MULTILINE
    ):
        needs = [part.strip() for part in after.split(",") if part.strip()]
        subtasks.append({"id": node, "action": action, "agent": owner or agent, "after": needs, "post": _post(action)})
    return {"subtasks": subtasks, "plan": [line for line in prompt.splitlines() if line.startswith(f"{agent}: ")]}


# --- judging ----------------------------------------------------------------------------------------------------------
def _overlap(a: str, b: str) -> float:
    first, second = set(_WORD.findall(a.lower())), set(_WORD.findall(b.lower()))
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def _judge(prompt: str) -> dict[str, Any]:
    return {"score": round(_overlap(_field(prompt, "The agent's goal"), _field(prompt, "Assigned")), 3)}


def _compare(prompt: str) -> dict[str, Any]:
    plan, _, doing = prompt.partition("works on: ")
    return {"score": round(1.0 - _overlap(doing, plan), 3)}


def _affected(prompt: str) -> dict[str, Any]:
    found = re.search(r"^(\S+) works on: ", prompt, re.MULTILINE)
    return {"agents": [found[1]] if found else []}


# --- extraction -------------------------------------------------------------------------------------------------------
def _extract(prompt: str) -> dict[str, Any]:
    """A procedure of the verified steps: words of the facts made abstract, words of the procedure in use kept."""
    names = _facts(prompt)
    abstract = {value: kind for kind, value in names.items() if kind != "family"}
    goal = _field(prompt, "Objective")
    reference = _card(prompt, goal, {})
    kept = dict.fromkeys(text for text, _ in reference.steps) if reference else {}
    steps = _prose_steps(prompt, abstract) if _RECORD.search(prompt) else _node_steps(prompt, abstract, list(kept))
    conditions = [f"family={names['family']}"] if "family" in names else []
    opened = [s for s in steps if s["instruction"].startswith("open ")]
    if reference and opened and not any(text.startswith("open ") for text in kept):
        kind = opened[0]["instruction"].split()[-1]
        conditions += [f"{kind}={names[kind]}"] if kind in names else []
    by_node = {s["from_node"]: s["id"] for s in steps if "from_node" in s}
    pairs = re.findall(r"(\S+) -> (\S+?)(?:,|$)", _field(prompt, "Verified prerequisites"))
    return {
        "op": "update" if reference else "create",
        "target": reference.id if reference else None,
        "title": _renamed(goal, abstract).rstrip("."),
        "description": "",
        "applicability": [],
        "context_conditions": conditions,
        "exclusions": [],
        "tags": sorted(kinds_of(goal)),
        "steps": steps,
        "edges": [[by_node[u], by_node[w]] for u, w in pairs if u in by_node and w in by_node],
        "warnings": [
            {"text": text, "trigger": "", "record_ids": [int(n) for n in numbers.split(", ")]}
            for numbers, text in _FAILURE.findall(prompt)
        ],
    }


def _node_steps(prompt: str, abstract: Mapping[str, str], known: Sequence[str]) -> list[dict[str, Any]]:
    steps = []
    for number, (node, action, done, _) in enumerate(_VERIFIED.findall(prompt), 1):
        last = _NUMBERS.sub("", done.split("; ")[-1]) if done else ""
        same = parse_command(last).verb == parse_command(action).verb
        text = _renamed(last if same else _NUMBERS.sub("", action), abstract)
        # the place where a thing lay differs from task to task: the procedure's own words stay
        old = next(
            (
                k
                for k in known
                if parse_command(k).verb == parse_command(text).verb
                and parse_command(k).types[:1] == parse_command(text).types[:1]
            ),
            None,
        )
        steps.append({"id": f"s{number}", "instruction": old or text, "from_node": node, "post": []})
    return steps


def _prose_steps(prompt: str, abstract: Mapping[str, str]) -> list[dict[str, Any]]:
    """The textual control: the recorded interactions as sentences that name what comes before."""
    steps: list[dict[str, Any]] = []
    for number, action in _RECORD.findall(prompt):
        text = _renamed(_NUMBERS.sub("", action), abstract)
        if parse_command(text).interacts and parse_command(text).things:
            before = f", after '{steps[-1]['instruction'].split(',')[0]}'" if steps else ""
            steps.append({"id": f"s{len(steps) + 1}", "instruction": f"{text}{before}", "record_ids": [int(number)]})
    return steps


Writer = Callable[[str], dict[str, Any]]
WRITERS: tuple[tuple[str, Writer], ...] = (
    ("sepm.plan", _plan),
    ("sepm.replan", _replan),
    ("sepm.judge_goal", _judge),
    ("sepm.extract", _extract),
    ("sepm.negotiate", lambda prompt: {"value": _field(prompt, "Fact"), "evidence": "the agents' word"}),
    ("sepm.text.ready", lambda prompt: {"ready": True, "missing": ""}),
    ("sepm.text.compare", _compare),
    ("sepm.text.affected", _affected),
)
