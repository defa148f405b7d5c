"""What the tests of SEPM's hooks share: a plan over one chain, and a method that has begun a task."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from harness.contracts import Call
from methods.sepm.coordination import GraphCoordination
from methods.sepm.memory import Sepm
from tests.methods.sepm.sepm_support import Play, by_role, memory, task

_SHOWN = re.compile(r"^Procedure: .*\[(c\d+)", re.MULTILINE)
FACTS = frozenset({"family=clean", "object=mug", "receptacle=cabinet"})
CHAIN = [
    ("n1", "take mug", "location", "agent"),
    ("n2", "clean mug", "clean", True),
    ("n3", "put mug in cabinet", "location", "cabinet"),
]


def plan_of(*steps: tuple[str, str, str, Any], agent: str = "A", used: str = "", sources: bool = False) -> str:
    subtasks = [
        {
            "id": node,
            "action": action,
            "agent": agent,
            "after": [steps[i - 1][0]] if i else [],
            "post": [{"entity": "mug", "attribute": attribute, "value": value}],
            "from": f"{used}#s{i + 1}" if sources else None,
        }
        for i, (node, action, attribute, value) in enumerate(steps)
    ]
    return json.dumps({"subtasks": subtasks, "used": [used] if used else []})


def following(*steps: tuple[str, str, str, Any], sources: bool = False) -> Callable[[Call], str]:
    """A manager that says it follows the first procedure of its prompt, the candidate on trial if there is one."""

    def answer(call: Call) -> str:
        found = _SHOWN.search(call.messages[-1]["content"])
        return plan_of(*steps, used=found[1] if found else "", sources=sources and found is not None)

    return answer


def graph(method: Sepm) -> GraphCoordination:
    assert isinstance(method.coordination, GraphCoordination)
    return method.coordination


def begin(answers: dict[str, str | Callable[[Call], str]] | None = None, *agents: str, **config: Any) -> tuple[Sepm, Play]:
    method = memory(by_role({"sepm.plan": plan_of(*CHAIN), **(answers or {})}), **config)
    return method, Play(method, task(), FACTS, *(agents or ("A", "B")))


def said(node: str, goal: str, **more: Any) -> str:
    return json.dumps({"node": node, "goal": goal, **more}) + "\ngo"
