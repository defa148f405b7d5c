"""The scripted answers to JSON roles, the line of JSON before an action, and the reader that follows a procedure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from models_doubles import call

from harness.contracts import Call, Message
from harness.models.backends.base import Request
from harness.models.backends.reader import ReaderPolicy
from harness.models.backends.reader_text import plan_from
from harness.models.backends.scripted_sepm import sepm_answer, with_header

FACTS = "Facts: family=clean; object=mug; receptacle=cabinet; room=cabinet; room=fridge"
PROCEDURE = (
    "Procedure: put a clean object in receptacle [c1 v2] (provisional)\nHolds for: family=clean\n1. take object from shelf [s1]\n"
    "2. clean object with sinkbasin [s2]\n3. move object to receptacle [s3]\nPrerequisites: s1 -> s2, s2 -> s3\n"
    "Warning: 'move object to receptacle' works only after 'open receptacle' (when: move object to receptacle)"
)


def answer(role: str, prompt: str) -> dict[str, Any]:
    user: Message = {"role": "user", "content": prompt}
    found = sepm_answer(Call(role, (user,), key="planner", phase="plan"))
    assert found is not None and found == sepm_answer(Call(role, (user,), key="planner", phase="plan"))
    loaded = json.loads(found)
    assert isinstance(loaded, dict)
    return loaded


def prompt(procedures: str, goal: str = "put a clean mug in cabinet") -> str:
    return f"Objective: {goal}\nFamily: clean\n{FACTS}\nTeam: solver; grounding\n\nProcedures:\n{procedures}"


def test_a_plan_without_procedure_is_take_treat_place_with_observable_conditions() -> None:
    plan = answer("sepm.plan", prompt("none"))
    assert [s["action"] for s in plan["subtasks"]] == ["take mug", "clean mug with sinkbasin", "move mug to cabinet"]
    assert [s["after"] for s in plan["subtasks"]] == [[], ["n1"], ["n2"]]
    assert plan["subtasks"][1]["post"] == [{"entity": "mug", "attribute": "clean", "value": True}]
    assert plan["used"] == [] and {s["agent"] for s in plan["subtasks"]} == {"solver"}


def test_a_plan_follows_a_procedure_of_the_same_kind_and_heeds_its_warning() -> None:
    plan = answer("sepm.plan", prompt(PROCEDURE))
    assert [s["action"] for s in plan["subtasks"]] == [
        "find mug",
        "take mug from shelf",
        "clean mug with sinkbasin",
        "open cabinet",
        "move mug to cabinet",
    ]
    assert plan["used"] == ["c1"] and plan["subtasks"][1]["from"] == "c1#s1" and plan["subtasks"][4]["after"] == ["n3", "n4"]
    assert answer("sepm.plan", prompt(PROCEDURE, "put a hot mug in cabinet"))["used"] == []


def test_a_goal_of_another_environment_is_planned_by_its_clauses() -> None:
    plan = answer("sepm.plan", prompt("none", "Press red then green."))
    assert [s["action"] for s in plan["subtasks"]] == ["Press red", "green"]


def test_an_extraction_abstracts_the_things_of_the_facts_and_keeps_the_procedure_s_words() -> None:
    body = (
        f"Objective: put a clean mug in cabinet\n{FACTS}\n\nVerified steps:\n"
        "n1: take mug | done by: go to desk 1; take mug 1 from desk 1 | verified: mug.location=agent\n"
        "n2: open cabinet | done by: open cabinet 1 | verified: cabinet.state=open\n"
        "n3: move mug to cabinet | done by: move mug 1 to cabinet 1 | verified: mug.location=cabinet\n\n"
        "Verified prerequisites: n1 -> n3, n2 -> n3\n\nFailures:\n[records 4, 6] it failed\n\nProcedure that was used:\n"
    )
    alone = answer("sepm.extract", body + "none")
    assert [s["instruction"] for s in alone["steps"]] == ["take object from desk", "open receptacle", "move object to receptacle"]
    assert (alone["edges"], alone["context_conditions"]) == ([["s1", "s3"], ["s2", "s3"]], ["family=clean"])
    assert alone["title"] == "put a clean object in receptacle" and alone["warnings"][0]["record_ids"] == [4, 6]
    after = answer("sepm.extract", body + PROCEDURE)
    assert after["target"] == "c1" and after["steps"][0]["instruction"] == "take object from shelf"
    assert after["context_conditions"] == ["family=clean", "receptacle=cabinet"]


def test_judge_and_comparison_score_by_common_words() -> None:
    assert answer("sepm.judge_goal", "Assigned: take mug\nThe agent's goal: Now: take mug")["score"] == 1.0
    assert answer("sepm.judge_goal", "Assigned: take mug\nThe agent's goal: bake cake")["score"] == 0.0
    assert answer("sepm.text.compare", "Plan:\nA: take mug.\n\nA works on: take mug")["score"] == 0.0
    assert sepm_answer(call()) is None


@pytest.mark.parametrize(
    ("note", "node"),
    [("Your subtask now: n2: clean mug; n5: wait", "n2"), ("Your part: A: go. A: take mug.", "A: take mug."), ("", "none")],
)
def test_the_line_before_an_action_only_where_the_rules_ask_for_it(note: str, node: str) -> None:
    user: Message = {"role": "user", "content": f"## Current task\n[Note: {note}\n]\n>"}
    rules: Message = {"role": "system", "content": "Before the action write one line of JSON."}
    first, _, action = with_header(Call("host.x", (rules, user), key="actor", phase="act"), "take mug 1").partition("\n")
    assert json.loads(first)["node"] == node and action == "take mug 1"
    assert with_header(Call("host.x", (user,), key="actor", phase="act"), "take mug 1") == "take mug 1"


class TestReader:
    CHOICES = ("go to cabinet 1", "go to shelf 1", "open cabinet 1", "look")
    CARRYING = (
        "> take mug 1 from shelf 1\nYou pick up the mug 1 from the shelf 1.\n> clean mug 1 with sinkbasin 1\nYou clean the mug 1."
    )

    def act(self, text: str, **options: Any) -> str:
        user: Message = {"role": "user", "content": text}
        one = Call("host.x", (user,), key="actor", phase="act", choices=self.CHOICES)
        return ReaderPolicy({"luck": 1.0, **options}, 0).act(Request(one, {}, False, 1.0, 0, "d"))

    def test_it_follows_the_steps_of_a_procedure_bound_to_the_goal(self) -> None:
        plan = plan_from(PROCEDURE, "put a clean plate in drawer")
        assert plan is not None and plan.places == ("shelf",)
        assert plan.steps == (("take", ("plate",)), ("clean", ("plate", "sinkbasin")), ("move", ("plate", "drawer")))

    def test_a_hasty_one_errs_once_at_a_closed_place_unless_warned(self) -> None:
        at = f"## Current task\nYour task is to: put a clean mug in cabinet.\n{self.CARRYING}\n> go to cabinet 1\nThe cabinet 1 is closed.\n"
        assert self.act(f"{at}>") == "open cabinet 1"
        assert self.act(f"{at}>", hasty=1.0) == "move mug 1 to cabinet 1"
        assert self.act(f"{at}> move mug 1 to cabinet 1\nNothing happens.\n>", hasty=1.0) == "open cabinet 1"
        assert self.act(f"## Procedures\n{PROCEDURE}\n\n{at}>", hasty=1.0) == "open cabinet 1"
