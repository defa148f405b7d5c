"""How much a past case helps with a task, by a model's rating: shared by `generative` and `gmemory` (METHODS.md 3.2, 3.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.contracts import Call, Message, Models, Task
from methods.text.lists import integer
from methods.trajectories import Record

RATING_INSTRUCTION = (
    "You judge how much a past case helps with a task that is about to start. A case helps when its goal and the steps it took "
    "carry over to the task. Give a whole number from 1 (of no use) to 10 (the same problem), on one line of the form\n"
    "Score: <number>"
)


def parse_rating(text: str) -> int:
    """The first integer in `text`, 0 where there is none (METHODS.md 3.2)."""
    found = re.search(r"\d+", text)
    return integer(found.group()) if found else 0


def best_rated(models: Models, role: str, task: Task, candidates: Sequence[Record], keep: int) -> list[Record]:
    """The `keep` candidates that a model rates best for `task`, one call each; among equal ratings the order stays."""
    replies = models.complete_many([_rating(role, task, record) for record in candidates])
    ratings = [parse_rating(reply.text) for reply in replies]
    order = sorted(range(len(candidates)), key=lambda place: -ratings[place])
    return [candidates[place] for place in order[:keep]]


def _rating(role: str, task: Task, record: Record) -> Call:
    case = f"Past case: {record.description}\n\nWhat was done:\n{record.trajectory}\n\nTask about to start: {task.key}"
    messages: tuple[Message, ...] = (
        {"role": "system", "content": RATING_INSTRUCTION},
        {"role": "user", "content": case},
    )
    return Call(role, messages, key="memory", phase="retrieve", agent="memory")
