"""What G-Memory asks a model. The wording is ours; contents and forms of answer follow METHODS.md 3.4."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Call, Message, Phase
from methods.trajectories import Record

FORM = (
    "Every rule reads 'X, because Y', holds for tasks of many kinds, and names no particular task, object number or place number."
)
OPERATIONS = (
    "Answer with at most four lines, each one of\n"
    "ADD: <new rule>\n"
    "EDIT <number>: <better wording of that rule>\n"
    "REMOVE <number>: <that rule>\n"
    "AGREE <number>: <that rule>\n"
    f"End every line with a period. {FORM}"
)
FULL = "The list is full: prefer to edit, agree with or remove a rule, and add one only if it is far better than what is there."


def key_steps(description: str, trajectory: str) -> Call:
    instruction = (
        "You read what a team of agents did in a task. Name the few steps that decided the result, in order and in general "
        "terms, as "
        "one short numbered list. Nothing else."
    )
    return _call("keysteps", instruction, f"Task: {description}\n\nWhat was done:\n{trajectory}", "write", temperature=0.1)


def mistake(description: str, trajectory: str) -> Call:
    instruction = (
        "You read what a team of agents did in a task that it did not solve. Say in one or two sentences what the decisive "
        "mistake "
        "was. Nothing else."
    )
    return _call("mistake", instruction, f"Task: {description}\n\nWhat was done:\n{trajectory}", "write")


def contrast(rules: Sequence[str], success: Record, failure: Record, *, full: bool) -> Call:
    instruction = (
        "You keep a list of rules that help a team of agents. Compare a task that was solved with one that was not, and improve "
        "the "
        f"list by what made the difference. {OPERATIONS}"
    )
    text = "\n\n".join(
        [
            _listed(rules, full),
            f"Solved: {success.description}\n{success.trajectory}",
            f"Not solved: {failure.description}\n{failure.trajectory}\nWhy it failed: {failure.fail_reason or 'unknown'}",
        ]
    )
    return _call("contrast", instruction, text, "write")


def common(rules: Sequence[str], successes: Sequence[Record], *, full: bool) -> Call:
    instruction = (
        "You keep a list of rules that help a team of agents. Look at tasks that were solved, and improve the list by what they "
        "have "
        f"in common. {OPERATIONS}"
    )
    cases = [f"Solved: {record.description}\nKey steps: {record.key_steps or 'unknown'}" for record in successes]
    return _call("insights", instruction, "\n\n".join([_listed(rules, full), *cases]), "write")


def merge(rules: Sequence[str], most: int) -> Call:
    instruction = (
        "You tidy a list of rules that help a team of agents: merge those that say alike things, keep what is specific and "
        "useful, "
        f"drop the rest. Answer with no more than {most} rules as a numbered list and nothing else. {FORM}"
    )
    return _call("merge", instruction, _numbered(rules), "write")


def project(role: str, task: str, rules: Sequence[str]) -> Call:
    instruction = (
        f"You adapt general rules to an agent of a team whose role is '{role}'. Reword each so that it helps that agent with "
        f"the task "
        "below. Answer with a numbered list of as many rules and nothing else."
    )
    return _call("project", instruction, f"Task: {task}\n\nRules:\n{_numbered(rules)}", "retrieve")


def _listed(rules: Sequence[str], full: bool) -> str:
    parts = ["Rules so far:", _numbered(rules) or "(none)"]
    return "\n".join([*parts, FULL] if full else parts)


def _numbered(rules: Sequence[str]) -> str:
    return "\n".join(f"{number}. {rule}" for number, rule in enumerate(rules, 1))


def _call(purpose: str, instruction: str, text: str, phase: Phase, temperature: float | None = None) -> Call:
    messages: tuple[Message, ...] = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
    return Call(f"memory.gmemory.{purpose}", messages, "memory", phase, "memory", temperature=temperature)
