"""Figure 3 of the SEPM paper, played by scripted agents: A cleans the cup, B the dish, C inspects the cabinet and stores the cup."""

from __future__ import annotations

import json

import pytest

from harness.contracts import Call
from methods.sepm.memory import Sepm
from tests.methods.sepm.sepm_support import LOST, Play, by_role, fact, memory, task

GOAL = "Clean the cup and the dish, then store the cup in the cabinet."
FACTS = frozenset({"family=tidy", "room=kitchen"})


def step(
    node: str, action: str, agent: str, after: list[str], entity: str, attribute: str, value: object, source: str | None
) -> dict[str, object]:
    post = [{"entity": entity, "attribute": attribute, "value": value}]
    return {"id": node, "action": action, "agent": agent, "after": after, "post": post, "from": source}


def plan(call: Call) -> str:
    """The plan of the figure; it follows the procedure if the prompt shows one."""
    known = "c1" if "[c1" in call.messages[-1]["content"] else ""
    source = (lambda number: f"{known}#s{number}") if known else (lambda number: None)
    subtasks = [
        step("n1", "clean cup", "A", [], "cup", "clean", True, source(1)),
        step("n2", "clean dish", "B", [], "dish", "clean", True, source(2)),
        step("n3", "inspect cabinet", "C", [], "cabinet", "state", "open", source(3)),
        step("n4", "store cup in cabinet", "C", ["n1", "n3"], "cup", "location", "cabinet", source(4)),
    ]
    return json.dumps({"subtasks": subtasks, "used": [known] if known else []})


EXTRACTED = json.dumps(
    {
        "op": "create",
        "title": "clean cup and dish and store the cup",
        "context_conditions": ["family=tidy"],
        "steps": [
            {"id": f"s{i}", "instruction": text, "from_node": f"n{i}", "pre": [], "post": []}
            for i, text in enumerate(("clean cup", "clean dish", "inspect cabinet", "store cup in cabinet"), 1)
        ],
        "edges": [["s1", "s4"], ["s3", "s4"], ["s2", "s4"]],
    }
)


def team() -> Sepm:
    return memory(by_role({"sepm.plan": plan, "sepm.judge_goal": '{"score": 0.0}', "sepm.extract": EXTRACTED}))


def header(node: str, goal: str, action: str) -> str:
    return json.dumps({"node": node, "goal": goal}) + f"\n{action}"


def clean_and_store(play: Play) -> None:
    """The story without mistakes."""
    play.do("A", "clean cup 1", fact("cup 1", "clean", True, 1))
    play.do("B", "clean dish 1", fact("dish 1", "clean", True, 2))
    play.do("C", "open cabinet 1", fact("cabinet 1", "state", "open", 3))
    play.do("C", "move cup 1 to cabinet 1", fact("cup 1", "location", "cabinet 1", 4))


def test_the_figure_s_story_r6_r18_r19_r25_r29_r34() -> None:
    """SEPM-R6 (gate), R18 (z), R19 (who is told), R25 (edge by evidence), R29 (candidates stay out),
    SEPM-R34 (the retries and repairs of this task are no trials of what it taught)."""
    method = team()
    play = Play(method, task(0, GOAL, "tidy"), FACTS, "A", "B", "C")
    # B does something else: it is executed, and B alone is corrected, once
    assert play.say("B", header("none", "put the apple into the fridge", "put apple 1 in fridge 1")) == ""
    play.do("B", "put apple 1 in fridge 1", fact("apple 1", "location", "fridge 1", 1))
    assert "Correction" not in play.notes("A") + play.notes("C")
    told = play.notes("B")
    assert told.count("Correction") == 2 and "'put apple 1 in fridge 1' is not part of your plan" in told and "clean dish" in told
    assert "Correction" not in play.notes("B")
    # C wants the cup before cleaning is verified; that the cup is there does not verify it
    play.do("A", "go to table 1", fact("cup 1", "location", "table 1", 2))
    blocked = play.say("C", header("n4", "store cup in cabinet", "take cup 1 from table 1"))
    assert "prerequisite n1 (clean cup) is not verified" in blocked
    # the inspection is not held up
    assert play.say("C", header("n3", "inspect cabinet", "open cabinet 1")) == ""
    play.do("C", "open cabinet 1", fact("cabinet 1", "state", "open", 3))
    assert "n4 (store cup in cabinet) waits for n1 by A" in play.notes("C")
    # A's verified completion releases C's step
    assert play.say("A", header("n1", "clean cup", "clean cup 1")) == ""
    play.do("A", "clean cup 1", fact("cup 1", "clean", True, 4))
    assert "Your subtask now: n4: store cup in cabinet" in play.notes("C")
    assert "A did: clean cup 1" in play.notes("C")
    assert play.say("C", header("n4", "store cup in cabinet", "move cup 1 to cabinet 1")) == ""
    play.do("B", "clean dish 1", fact("dish 1", "clean", True, 5))
    play.do("C", "move cup 1 to cabinet 1", fact("cup 1", "location", "cabinet 1", 6))
    play.end()
    # a candidate keeps the dependency of the figure, and not the one that nothing supports
    (candidate,) = method.pool.candidates()
    assert (candidate.op, candidate.status, candidate.c_causal) == ("create", "validated", 1.0)
    assert ("s1", "s4") in candidate.procedure.edges and ("s2", "s4") not in candidate.procedure.edges
    assert method.pool.active() == [] and method.pool.trials("c1") == []


def test_the_next_task_is_its_trial_and_the_one_after_retrieves_it_r14_r29() -> None:
    """SEPM-R29: shown as provisional, promoted by the trial; SEPM-R14: then retrieved with its version as the reference."""
    method = team()
    first = Play(method, task(0, GOAL, "tidy"), FACTS, "A", "B", "C")
    clean_and_store(first)
    first.end()
    second = Play(method, task(1, GOAL, "tidy"), FACTS, "A", "B", "C")
    assert "[c1] (provisional)" in second.guidance.procedures[0]
    assert method.pool.search(GOAL, FACTS, 5) == []
    clean_and_store(second)
    second.end()
    (trial,) = method.pool.trials("c1")
    assert trial.qualified and trial.r_baseline == 1.0 and trial.cost == 0.0
    assert method.pool.active() == [("c1", 1)] and method.pool.candidates()[0].status == "promoted"
    third = Play(method, task(2, GOAL, "tidy"), FACTS, "A", "B", "C")
    assert "[c1 v1]" in third.guidance.procedures[0] and "provisional" not in third.guidance.procedures[0]
    assert method.ws is not None and method.ws.used == {"c1": 1} and method.ws.references["c1"][0] == 1


def test_a_failed_trial_is_recorded_and_does_not_promote_r27() -> None:
    """SEPM-R27."""
    method = team()
    first = Play(method, task(0, GOAL, "tidy"), FACTS, "A", "B", "C")
    clean_and_store(first)
    first.end()
    for number in (1, 2, 3):
        assert method.pool.candidates()[0].status == "validated"
        play = Play(method, task(number, GOAL, "tidy"), FACTS, "A", "B", "C")
        play.do("A", "look")
        play.end(LOST)
    assert method.pool.active() == [] and len(method.pool.trials("c1")) == 3
    assert method.pool.candidates()[0].status == "rejected"


@pytest.mark.parametrize("other", ["garden", "tidy"])
def test_a_trial_needs_the_family_and_the_conditions_r8(other: str) -> None:
    """SEPM-R8 for candidates: another family, or facts that do not hold, are no place for the trial."""
    method = team()
    first = Play(method, task(0, GOAL, "tidy"), FACTS, "A", "B", "C")
    clean_and_store(first)
    first.end()
    facts = FACTS if other == "garden" else frozenset({"room=kitchen"})
    assert Play(method, task(1, GOAL, other), facts, "A", "B", "C").guidance.procedures == ()
