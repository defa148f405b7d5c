"""`python -m methods.hosts.dylan_team RUN --keep K`: DyLAN's team optimisation over a finished run (METHODS.md 2.4).

Reads the importance that `dylan_original` wrote into the run's event log while it played its validation tasks, averages each
agent's over tasks, and prints the override that keeps the K most important agents.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from methods.hosts.dylan_importance import best_team


def importance_by_task(events: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Task → agent → importance, summed over the steps of the task's last attempt."""
    steps: dict[str, dict[int, dict[str, float]]] = {}
    for event in events:
        if event.get("event") == "attempt_start":
            steps.pop(event["task_id"], None)
        elif event.get("event") == "agent_importance":
            steps.setdefault(event["task_id"], {})[event["step"]] = event["importance"]
    found: dict[str, dict[str, float]] = {}
    for task, by_step in steps.items():
        sums = found.setdefault(task, {})
        for values in by_step.values():
            for agent, value in values.items():
                sums[agent] = sums.get(agent, 0.0) + value / len(by_step)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m methods.hosts.dylan_team", description=__doc__)
    parser.add_argument("run", type=Path, help="a run of host=dylan_original")
    parser.add_argument("--keep", type=int, required=True, help="how many agents to keep")
    options = parser.parse_args(arguments)
    log = options.run / "events.jsonl"
    if not log.is_file():
        print(f"{log} is missing: name the directory of a run.", file=sys.stderr)
        return 2
    with log.open(encoding="utf-8") as lines:
        tasks = importance_by_task(json.loads(line) for line in lines if line.endswith("\n"))
    if not tasks:
        print(f"{log} holds no importance: only host=dylan_original writes it.", file=sys.stderr)
        return 2
    names = sorted({name for values in tasks.values() for name in values}, key=lambda name: int(name.rpartition("_")[2]))
    if not 1 <= options.keep <= len(names):
        print(f"--keep must be from 1 to {len(names)}.", file=sys.stderr)
        return 2
    rows = [[values.get(name, 0.0) for name in names] for values in tasks.values()]
    for column, name in enumerate(names):
        print(f"{name}: {sum(row[column] for row in rows) / len(rows):.4f}")
    places = [int(names[column].rpartition("_")[2]) - 1 for column in best_team(rows, options.keep)]
    print(f"host.team=[{','.join(map(str, places))}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
