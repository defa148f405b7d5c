"""Two records of one cell, compared as a replay must: everything but clocks, retries and how a call was answered."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.store import canonical

Row = dict[str, Any]
# a retry that was needed, and whether an answer came from a recording, are how a run was carried out; the database counts rows
# of failed attempts too, and an error's text may hold what a pack leaves out
_CARRIED_OUT = ("id", "attempt", "replayed", "error")
_FIRST = ("score", "success", "steps", "kind", "status")  # what a reader wants to know first of a task that differs
_REFUSALS = ("ContextOverflow:", "ContentRefused:")
LONGEST = 120  # characters of a value in a message


@dataclass(frozen=True)
class Difference:
    """Where two records part: the task (None: the memory's tables at the end), what of it, and both values."""

    task: str | None
    what: str
    then: Any
    now: Any

    def __str__(self) -> str:
        place = f"task {self.task}: " if self.task is not None else ""
        return f"{place}{self.what} was {shortened(self.then)}, is {shortened(self.now)}."


@dataclass(frozen=True)
class Stopped(Difference):
    """The replay came no further than `task`; `now` says why."""

    def __str__(self) -> str:
        return f"task {self.task}: {self.what}: {self.now}"


def compare(kept: Path, played: Path, order: Sequence[int], *, costs: bool, stopped: str = "") -> Difference | None:
    """The first difference in the order of play; None where there is none. `stopped` says why the replay ended early."""
    before, after = _tables(kept, costs), _tables(played, costs)
    then, now = (_by_position(side.pop("task", [])) for side in (before, after))
    calls_then, calls_now = (_by_position(side.pop("ledger", [])) for side in (before, after))
    for position in order:
        (task,) = then[position]
        if position not in now:
            return Stopped(task["task_id"], "the replay stopped in it", None, stopped or "it has no result")
        found = _first_field(task, now[position][0], _FIRST)
        if found is None:
            found = _calls(calls_then.get(position, []), calls_now.get(position, []))
        if found is not None:
            return Difference(task["task_id"], *found)
    return _memory(before, after)


def summary(directory: Path) -> str:
    """sha256 over what is compared, so that two replays on two machines can be set side by side."""
    total = hashlib.sha256()
    for table, rows in sorted(_tables(directory, costs=False).items()):
        total.update(json.dumps([table, rows], sort_keys=True).encode())
    return total.hexdigest()


def _tables(directory: Path, costs: bool) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for line in canonical.lines(directory):
        table, row = json.loads(line)
        if table == "ledger":
            if not row["ok"] and not (row["error"] or "").startswith(_REFUSALS):
                continue  # an attempt that was tried again
            row = {key: value for key, value in row.items() if key not in _CARRIED_OUT and (costs or key != "cost_usd")}
        found.setdefault(table, []).append(row)
    return found


def _by_position(rows: Sequence[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["position"], []).append(row)
    return found


def _first_field(then: Row, now: Row, first: Sequence[str] = ()) -> tuple[str, Any, Any] | None:
    for key in [*first, *(key for key in then if key not in first)]:
        if then.get(key) != now.get(key):
            return key, then.get(key), now.get(key)
    return None


def _calls(then: Sequence[Row], now: Sequence[Row]) -> tuple[str, Any, Any] | None:
    for number, (before, after) in enumerate(zip(then, now, strict=False), 1):
        if (found := _first_field(before, after)) is not None:
            key, old, new = found
            return f"{key} of its model call {number} ({before['role']})", old, new
    return ("the number of its model calls", len(then), len(now)) if len(then) != len(now) else None


def _memory(then: Mapping[str, list[Row]], now: Mapping[str, list[Row]]) -> Difference | None:
    for table in sorted(then.keys() | now.keys()):
        before, after = (Counter(json.dumps(row) for row in side.get(table, [])) for side in (then, now))
        if before != after:
            lost, new = next(iter(before - after), None), next(iter(after - before), None)
            return Difference(None, f"a row of the memory's table {table}", lost, new)
    return None


def shortened(value: Any) -> str:
    """A value as a message can hold it."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
