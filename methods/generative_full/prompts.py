"""What the memory stream asks a model. The wording is ours; contents and forms of answer follow METHODS.md 3.2."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Call, Message

SYSTEM_IMPORTANCE = (
    "You rate how much each memory of a team of agents matters for tasks to come, from 1 (mundane, like looking around) to 10 "
    "(decisive, like the step that solved or ruined a task). Answer with one line for each memory, in the form\n<number>: "
    "<rating>"
)
SYSTEM_QUESTIONS = (
    "You read the latest memories of a team of agents. Name the 3 most salient questions of a general kind that they can answer. "
    "Answer with a numbered list and nothing else."
)
SYSTEM_REFLECT = (
    "You answer a question from memories of a team of agents. Give 5 general insights, each with the numbers of the memories "
    "that "
    "it follows from. Answer with a numbered list and nothing else, each item in the form\n<insight> (because of 1, 5, 3)"
)


def importance(records: Sequence[str]) -> Call:
    return _call("importance", SYSTEM_IMPORTANCE, _numbered(records))


def questions(records: Sequence[str]) -> Call:
    return _call("questions", SYSTEM_QUESTIONS, _numbered(records))


def reflect(question: str, records: Sequence[str]) -> Call:
    return _call("reflect", SYSTEM_REFLECT, f"Question: {question}\n\nMemories:\n{_numbered(records)}")


def _numbered(records: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(records, 1))


def _call(purpose: str, instruction: str, text: str) -> Call:
    messages: tuple[Message, ...] = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
    return Call(f"memory.generative_full.{purpose}", messages, "memory", "write", "memory")
