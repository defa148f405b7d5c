"""From procedures to plans, from plans to revised ones, and who shares an assignment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.contracts import Member
from methods.hosts.dylan import Dylan
from methods.sepm.conditions import Condition
from methods.sepm.graph import GraphError, PlanNode, StepSource, TaskGraph
from methods.sepm.plans import Plan, read_plan
from methods.sepm.procedure import Procedure, Step
from tests.methods.sepm.hooks_support import CHAIN, FACTS, graph, plan_of, said
from tests.methods.sepm.sepm_support import Play, by_role, fact, memory, post, task

NAMES = {"object": "mug", "receptacle": "cabinet"}
TEAM = (Member("A", "A"),)
OPEN = Condition("receptacle", "state", "open")
STORED = Procedure(
    "store",
    family="clean",
    steps=(Step("s1", "take object"), Step("s2", "clean object"), Step("s3", "put object in receptacle", (OPEN,))),
    edges=(("s1", "s2"), ("s2", "s3"), ("s1", "s3")),
)


def cited(*steps: tuple[str, str, list[str]], **more: Any) -> str:
    subtasks = [
        {"id": node, "action": f"do {step}", "agent": "A", "after": after, "from": f"c1#{step}"} for node, step, after in steps
    ]
    return json.dumps({"subtasks": subtasks, **more})


def read(text: str) -> Plan:
    return read_plan(text, TEAM, {"c1": (2, STORED)}, NAMES)


class TestFromProcedures:
    def test_a_cited_step_brings_its_preconditions_bound_to_the_task_r6(self) -> None:
        """SEPM-R6: it is not ready before they hold."""
        plan = read(cited(("n1", "s1", []), ("n2", "s3", [])))
        assert plan.nodes[1].pre == (Condition("cabinet", "state", "open"),) and plan.nodes[0].pre == ()
        made = plan.graph()
        made.status["n1"] = "verified"
        assert made.ready(lambda condition: False) == [] and made.ready(lambda condition: True) == ["n2"]

    def test_and_the_prerequisites_between_the_steps_that_are_cited(self) -> None:
        assert read(cited(("n1", "s1", []), ("n2", "s3", []))).edges == (("n1", "n2"),)
        chain = read(cited(("n1", "s1", []), ("n2", "s2", ["n1"]), ("n3", "s3", [])))
        assert set(chain.edges) == {("n1", "n2"), ("n2", "n3"), ("n1", "n3")}

    def test_but_not_against_the_plan_s_own_order_and_not_between_repeated_steps(self) -> None:
        assert read(cited(("n1", "s2", []), ("n2", "s1", ["n1"]))).edges == (("n1", "n2"),)
        assert read(cited(("n1", "s1", []), ("n2", "s2", ["n1"]), ("n3", "s1", []), ("n4", "s2", ["n3"]))).edges == (
            ("n1", "n2"),
            ("n3", "n4"),
        )

    def test_a_cycle_of_the_plan_s_own_is_still_refused_r3(self) -> None:
        """SEPM-R3."""
        with pytest.raises(GraphError):
            read(cited(("n1", "s1", ["n2"]), ("n2", "s2", ["n1"])))


class TestRevisions:
    SOURCE = StepSource("c1", 2, "s3")
    PRE, POST = (post("cabinet", "state", "open"),), (post("mug", "location", "cabinet"),)

    def made(self) -> TaskGraph:
        old = PlanNode("n1", "put mug in cabinet", "A", self.POST, self.PRE, self.SOURCE)
        found = TaskGraph([old, PlanNode("n2", "close cabinet", "A")], [("n1", "n2")])
        found.status |= {"n1": "verified", "n2": "verified"}
        return found

    @pytest.mark.parametrize("conditions", [(), (post("Mug", "location", "Cabinet"),)])
    @pytest.mark.parametrize("name", ["n1", "n7"])
    def test_an_unchanged_step_keeps_source_conditions_and_status_r4(self, name: str, conditions: Any) -> None:
        """SEPM-R4: whether the answer repeats the outcome or leaves it out, and under the id of another step too."""
        made = self.made()
        assert (
            made.revise([PlanNode(name, "Put mug in  cabinet", "B", conditions), PlanNode("n2", "close cabinet", "A")], []) == []
        )
        node = made.nodes["n1"]
        assert (node.source, node.pre, node.agent) == (self.SOURCE, self.PRE, "B") and made.status["n1"] == "verified"
        assert node.post == (conditions or self.POST)

    @pytest.mark.parametrize(
        "changed", [{"post": (post("mug", "location", "shelf"),)}, {"pre": (post("door", "state", "open"),)}]
    )
    def test_other_conditions_modify_a_step_and_its_descendants_r5(self, changed: dict[str, Any]) -> None:
        """SEPM-R5."""
        made = self.made()
        lost = made.revise(
            [PlanNode("n1", "put mug in cabinet", "A", **changed), PlanNode("n2", "close cabinet", "A")], [("n1", "n2")]
        )
        assert lost == ["n1", "n2"] and made.status == {"n1": "pending", "n2": "pending"}

    def test_a_new_plan_of_the_manager_leaves_no_step_without_its_past_r4(self) -> None:
        """SEPM-R4: through the hooks: the step that comes from a procedure still does after replanning."""
        plan = json.loads(plan_of(*CHAIN, used="c1", sources=True))
        revised = plan_of(CHAIN[0], ("n2", "wash mug in sink", "clean", True), CHAIN[2])
        method = memory(by_role({"sepm.plan": json.dumps(plan), "sepm.replan": revised}))
        method.pool.commit_version("c1", None, STORED, "create", 0)
        play = Play(method, task(), FACTS, "A")
        for _ in range(2):
            play.do("A", "clean mug 1", error="nothing happens")
        sources = {i: node.source for i, node in graph(method).graph.nodes.items()}
        assert graph(method).graph.nodes["n2"].action == "wash mug in sink"
        assert sources == {"n1": StepSource("c1", 1, "s1"), "n2": None, "n3": StepSource("c1", 1, "s3")}
        assert graph(method).graph.nodes["n3"].pre == (Condition("cabinet", "state", "open"),)


class TestGrid:
    """METHODS.md 4.2: in a grid the assigned step is the same for all; divergence is that of the executed action."""

    def begun(self, **answers: Any) -> Play:
        host = Dylan(Dylan.Config(nodes=3), 0)
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN, agent="solver_2"), **answers}))
        play = Play(method, task(), FACTS, "A")
        play.team = list(host.team(task()))
        play.guidance = method.on_task_start(task(1), FACTS, play.team)
        return play

    def test_the_roster_are_the_nodes_of_the_grid(self) -> None:
        play = self.begun()
        prompt = play.method.services.models.calls[-1].messages[-1]["content"]  # type: ignore[attr-defined]
        assert "Team: solver_1 (solver); solver_2 (solver); solver_3 (solver)\n" in prompt
        assert "decision" not in prompt and "ranker" not in prompt

    def test_every_member_has_the_same_assignment(self) -> None:
        play = self.begun()
        for name in ("solver_1", "solver_2", "solver_3", "decision"):
            assert "Your subtask now: n1: take mug" in play.notes(name)

    def test_only_the_executed_action_is_compared_and_all_are_told_r19(self) -> None:
        """SEPM-R19: a drift of an answer that was not chosen is none."""
        play = self.begun(**{"sepm.judge_goal": '{"score": 0}'})
        play.say("solver_1", said("n1", "bake a cake"))
        play.say("solver_2", said("n1", "take mug"))
        play.do("solver_2", "look")
        assert all("Correction" not in play.notes(name) for name in ("solver_1", "solver_2", "decision"))
        play.say("decision", said("n1", "bake a cake"))
        play.do("decision", "look")
        for name in ("solver_1", "solver_2", "solver_3", "decision"):
            assert "Your assignment is: take mug" in play.notes(name)

    def test_who_does_it_does_not_matter_for_the_step_r2(self) -> None:
        """SEPM-R2: the record of an undeclared action is linked to the step that all of them have."""
        play = self.begun()
        play.do("solver_3", "look")
        play.do("decision", "take mug 1", fact("mug 1", "location", "agent", 2))
        assert [r.node_id for r in play.method.ws.blackboard] == ["n1", "n1"]  # type: ignore[union-attr]
        assert graph(play.method).graph.status["n1"] == "verified"
