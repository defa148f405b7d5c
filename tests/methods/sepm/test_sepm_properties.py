"""Whatever happens in a series of tasks: nothing unpromoted is in the pool, nothing that was there is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.contracts import Call
from methods.sepm.promotion import Thresholds, judge
from tests.methods.sepm.sepm_support import LOST, WON, Play, by_role, fact, memory, task

FACTS = ("family=clean", "object=mug", "receptacle=cabinet")
STEPS = (("take mug", "location", "agent"), ("clean mug", "clean", True), ("put mug in cabinet", "location", "cabinet 1"))
TEXTS = ("take object", "clean object", "pay for object", "put object in receptacle")

episodes = st.fixed_dictionaries(
    {
        "won": st.booleans(),
        "done": st.lists(st.integers(0, 2), max_size=4),  # which steps show evidence, in this order
        "failures": st.integers(0, 2),
        "follow": st.booleans(),  # the plan follows the first procedure shown
        "answer": st.lists(st.tuples(st.integers(1, 4), st.sampled_from(TEXTS)), max_size=3),
        "conditions": st.lists(st.sampled_from([*FACTS, "moon=full"]), max_size=2, unique=True),
        "facts": st.sets(st.sampled_from(FACTS)),
    }
)


def answers(episode: dict[str, Any]) -> Any:
    def plan(call: Call) -> str:
        shown = call.messages[-1]["content"].partition("Procedure: ")[2]
        used = shown.partition("[")[2].partition("]")[0].split()[0] if shown and episode["follow"] else ""
        subtasks = [
            {"id": f"n{i}", "action": action, "agent": "A", "after": [f"n{i - 1}"] if i > 1 else [], "from": f"{used}#s{i}",
             "post": [{"entity": "mug", "attribute": attribute, "value": value}]}
            for i, (action, attribute, value) in enumerate(STEPS, 1)
        ]  # fmt: skip
        return json.dumps({"subtasks": subtasks, "used": [used] if used else []})

    def extract(call: Call) -> str:
        steps = [{"id": f"s{i}", "instruction": text, "from_node": f"n{n}"} for i, (n, text) in enumerate(episode["answer"], 1)]
        return json.dumps({"title": "clean", "steps": steps, "context_conditions": episode["conditions"]})

    return {"sepm.plan": plan, "sepm.extract": extract}


@settings(max_examples=80, deadline=None)
@given(st.lists(episodes, min_size=1, max_size=7), st.sampled_from(["probation", "source", "none"]))
def test_the_pool_holds_only_what_passed_every_gate_r28_r29_r31(series: list[dict[str, Any]], policy: str) -> None:
    """SEPM-R28, SEPM-R29, SEPM-R31 over random series of tasks, plans, evidence, answers and outcomes."""
    method = memory(by_role({}), trial_policy=policy, min_repro=1)
    seen: dict[tuple[str, int], str] = {}
    for number, episode in enumerate(series):
        method.services.models.answer = by_role(answers(episode)).answer  # type: ignore[attr-defined]
        play = Play(method, task(number), frozenset(episode["facts"]), "A")
        for _ in range(episode["failures"]):
            play.do("A", "put mug 1 in cabinet 1", error="refused")
        for place in episode["done"]:
            action, attribute, value = STEPS[place]
            play.do("A", action, fact("mug 1", attribute, value, len(play.turns) + 1))
        play.end(WON if episode["won"] else LOST)
        check_pool(method, policy, seen)


def check_pool(method: Any, policy: str, seen: dict[tuple[str, int], str]) -> None:
    db = method.services.db
    candidates = {c.id: c for c in method.pool.candidates()}
    rows = db.execute("SELECT sop_id, version, kind, candidate, procedure FROM sepm_version").fetchall()
    for sop_id, version, kind, origin, content in rows:
        assert seen.setdefault((sop_id, version), content) == content  # nothing is rewritten
        if kind == "warning":
            continue
        candidate = candidates[origin]
        verdict = judge(
            method.pool.trials(origin),
            safe=candidate.risk < 0.5,
            state_verified=candidate.state_verified,
            causal_confidence=candidate.c_causal,
            at=Thresholds(),
        )
        assert candidate.status == "promoted" and verdict.accepted
    assert {(r[0], r[1]) for r in rows} == set(seen)  # nothing is lost
    found = method.pool.search("clean", FACTS, 50)
    assert {(hit.sop_id, hit.version) for hit in found} <= set(method.pool.active())
    if policy == "none":
        assert rows == []
