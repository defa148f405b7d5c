"""What a memory method's own work costs as its stream grows: `python -m tests.bench.memories [METHOD …]`.

No host, no environment, no harness: the hooks of one task after another are called with synthetic episodes of 15 steps, in a SQLite
file on disk, one transaction a task; a scripted model answers at once. Printed is the CPU time per task at the positions 10, 100
and 1,000 of the stream, each the mean of 20 tasks around it, so that what is done every 5th and 20th task is in it, and the
ratios to position 10. Keys repeat as ALFWorld's do: 6 kinds of task, 40 things, 20 places.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.contracts import Call, Member, MemoryServices, Outcome, Reply, StepResult, Task, Trajectory, Turn, Usage
from harness.models.backends.scripted_text import utility_answer
from harness.registry import methods
from harness.seeds import rng

POSITIONS, WINDOW, STEPS = (10, 100, 1000), 20, 15
KINDS = (
    "put a {} in {}",
    "look at {} under {}",
    "clean {} and put it in {}",
    "heat {} and put it in {}",
    "cool {} and put it in {}",
    "find two {} and put them in {}",
)
TEAM = (Member("solver", "solver"), Member("grounding", "grounding"))


class Scripted:
    """A model that answers at once; its time is taken out of the measurement."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def complete(self, call: Call) -> Reply:
        started = time.process_time()
        text = "".join(message["content"] for message in call.messages)
        answer = utility_answer(call, hashlib.sha256((call.role + text).encode()).hexdigest())
        self.calls += 1
        self.seconds += time.process_time() - started
        return Reply(answer, Usage(len(text) // 4, len(answer) // 4, source="estimate"), "scripted")

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        return [self.complete(call) for call in calls]

    def embed(self, role: str, texts: Sequence[str], *, phase: Any, agent: str | None = None, local: Any = None) -> Any:
        return local.embed(texts)


def task(number: int) -> Task:
    draw = rng(0, "bench", "memories", number)
    goal = draw.choice(KINDS).format(f"thing{draw.randrange(40)}", f"place{draw.randrange(20)}")
    return Task(f"t{number}", number, f"Your task is to: {goal}.", f"{goal.split()[0]}-{goal}", goal.split()[0])


def episode(number: int) -> tuple[Turn, ...]:
    text = "On the countertop 1, you see a bread 1, a butterknife 2, a cellphone 1, and a statue 2."
    return tuple(Turn(i, "solver", f"go to place {i + number % 7}", "", StepResult(text, 0.0)) for i in range(1, STEPS + 1))


def play(method: Any, number: int) -> None:
    """All hooks of one task, as the stream and a host call them."""
    current, turns = task(number), episode(number)
    method.on_task_start(current, frozenset(), TEAM)
    for turn in turns:
        method.before_action(TEAM[0], turn.step - 1)
        method.episode(TEAM[0], Trajectory("A room.", turns[: turn.step - 1]))
        method.review(TEAM[0], turn.step - 1, turn.action)
        method.after_action(turn)
    won = rng(0, "bench", "won", number).random() < 0.6
    outcome = Outcome(float(won), won, "completed" if won else "failed", "It was graded.")
    method.on_task_end(current, Trajectory("A room.", turns), outcome)


def measure(name: str, path: Path) -> list[float]:
    """CPU milliseconds per task of the method's own work at POSITIONS."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    models, kind = Scripted(), methods().load(name)
    method: Any = kind(kind.Config(), MemoryServices(db, models, 0))  # type: ignore[call-arg, arg-type]
    method.open()
    sums = dict.fromkeys(POSITIONS, 0.0)
    for number in range(max(POSITIONS) + WINDOW // 2):
        db.execute("BEGIN")
        cpu, model = time.process_time(), models.seconds
        play(method, number)
        used = time.process_time() - cpu - (models.seconds - model)
        db.execute("COMMIT")
        for position in POSITIONS:
            if position - WINDOW // 2 <= number < position + WINDOW // 2:
                sums[position] += used
    db.close()
    return [sums[position] / WINDOW * 1000 for position in POSITIONS]


def report(names: Sequence[str]) -> None:
    """Print the table."""
    print(f"\nMemory methods: CPU per task of the method's own work (ms), {STEPS} steps a task, scripted model")
    print(f"  {'':18}" + "".join(f"{'at ' + str(position):>10}" for position in POSITIONS) + f"{'100/10':>9}{'1000/10':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            found = measure(name, Path(scratch) / f"{name}.sqlite")
            ratios = "".join(f"{value / found[0]:9.1f}" for value in found[1:])
            print(f"  {name:18}" + "".join(f"{value:10.3f}" for value in found) + ratios, flush=True)


if __name__ == "__main__":
    report(sys.argv[1:] or methods().names())
