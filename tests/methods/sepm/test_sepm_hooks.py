"""The hooks one by one: records, status, gate, alignment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.contracts import Member, Trajectory
from harness.errors import LimitExceeded
from methods.sepm.goal_judge import GoalJudge, lexical_consistency
from tests.methods.sepm.hooks_support import CHAIN, FACTS, begin, graph, plan_of, said
from tests.methods.sepm.sepm_support import LOST, Play, by_role, candidate, fact, memory, procedure, task
from tests.support.fakes import FakeModels


class TestRecords:
    def test_a_step_appends_one_record_linked_to_its_node_without_reasoning_r2(self) -> None:
        """SEPM-R2: what the agent wrote beside its action is nowhere in the store."""
        method, play = begin()
        play.say("A", said("n1", "take mug") + "\nSECRET THOUGHT")
        play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
        play.do("A", "look", error="no such command")
        rows = method.services.db.execute("SELECT seq, node_id, content FROM sepm_record").fetchall()
        assert [(seq, node) for seq, node, _ in rows] == [(1, "n1"), (2, "n2")]
        assert not any("SECRET" in content for *_, content in rows)
        assert json.loads(rows[0][2])["action"] == "take mug 1"

    def test_without_a_header_evidence_tells_the_step_and_repeats_add_records_r4(self) -> None:
        """SEPM-R4: a repeated action is one more record on its step, and no edge."""
        method, play = begin()
        edges = graph(method).graph.edges
        play.do("A", "go to table", fact("agent", "location", "table"))
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 2))
        play.do("A", "clean mug 1", error="nothing happens")
        play.do("A", "clean mug 1", fact("mug 1", "clean", True, 4))
        assert [r.node_id for r in method.ws.blackboard] == ["n1", "n1", "n2", "n2"]  # type: ignore[union-attr]
        assert graph(method).graph.edges == edges
        assert graph(method).graph.status == {"n1": "verified", "n2": "verified", "n3": "pending"}

    def test_an_outcome_that_is_undone_fails_the_step_unless_it_was_built_upon_r5(self) -> None:
        """SEPM-R5, SEPM-R24."""
        method, play = begin()
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 1))
        play.do("A", "drop mug 1", fact("mug 1", "location", "table 1", 2))
        assert graph(method).graph.status["n1"] == "failed"
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 3))
        play.do("A", "clean mug 1", fact("mug 1", "clean", True, 4))
        play.do("A", "drop mug 1", fact("mug 1", "location", "table 1", 5))
        assert graph(method).graph.status == {"n1": "verified", "n2": "verified", "n3": "running"}

    def test_how_a_task_ended_is_kept_r7(self) -> None:
        """SEPM-R7."""
        method, play = begin()
        play.end(LOST)
        assert method.services.db.execute("SELECT status, steps, success FROM sepm_task").fetchall() == [("failed", 0, 0)]

    @pytest.mark.parametrize("graph", ["explicit", "text"])
    def test_a_task_that_a_limit_ends_while_it_is_planned_is_counted_with_its_trial_r7(self, graph: str) -> None:
        """SEPM-R7, SEPM-R27: the failed trial of the candidate that was shown is one of the trials."""

        def out_of_calls(call: Any) -> str:
            raise LimitExceeded("task", "calls", 1, 1)

        method = memory(by_role({"sepm.plan": out_of_calls}), graph=graph)
        method.pool.add_candidate(candidate(1, procedure("clean")))
        with pytest.raises(LimitExceeded):
            method.on_task_start(task(), FACTS, [Member("A", "A")])
        method.on_task_end(task(), Trajectory("A room.", ()), LOST)
        assert method.services.db.execute("SELECT status, provisional FROM sepm_task").fetchall() == [("failed", "c1")]
        (trial,) = method.pool.trials("c1")
        assert (trial.success, trial.qualified) == (False, False)


class TestGate:
    def test_one_block_a_step_and_none_when_switched_off_r6(self) -> None:
        """SEPM-R6: not executed, no environment step spent, at most one block before a step."""
        _, play = begin()
        assert "n1 (take mug) is not verified" in play.say("A", said("n2", "clean mug"))
        assert play.say("A", said("n2", "clean mug")) == ""
        play.do("A", "look")
        assert play.say("A", said("n2", "clean mug")) != ""
        assert begin(None, gate_not_ready=False)[1].say("A", said("n2", "clean mug")) == ""

    def test_the_reply_goes_on_without_the_header(self) -> None:
        method, _ = begin()
        review = method.review(Play(method, task(1), FACTS, "A").team[0], 0, said("n1", "take mug"))
        assert (review.text, review.blocked) == ("go", "")


class TestAlignment:
    def test_the_judge_gets_goal_assignment_and_objective_and_each_triple_once_r16(self) -> None:
        """SEPM-R16: model key judge; AMB-11: a call when goal or assignment changed."""
        method, play = begin({"sepm.judge_goal": '{"score": 0.9}'})
        for _ in range(3):
            play.say("A", said("n1", "get the mug"))
            play.do("A", "look")
        calls = [c for c in method.services.models.calls if c.role == "sepm.judge_goal"]  # type: ignore[attr-defined]
        assert len(calls) == 1 and calls[0].key == "judge" and calls[0].temperature == 0.0
        text = calls[0].messages[-1]["content"]
        assert "get the mug" in text and "take mug" in text and task().goal in text

    def test_a_goal_in_the_words_of_the_assignment_needs_no_judge(self) -> None:
        method, play = begin()
        play.say("A", said("n1", "Take  MUG"))
        play.do("A", "look")
        assert "sepm.judge_goal" not in method.services.models.roles()  # type: ignore[attr-defined]

    def test_a_drifted_goal_is_corrected_before_the_next_action_and_told_once_r15_r19(self) -> None:
        """SEPM-R15, SEPM-R19: the same signature is delivered once, until it was cleared."""
        _, play = begin(
            {"sepm.judge_goal": lambda call: '{"score": 0}' if "bake" in call.messages[-1]["content"] else '{"score": 1}'}
        )
        play.say("A", said("n1", "bake a cake"))
        play.do("A", "look")
        assert "Your assignment is: take mug" in play.notes("A")
        play.say("A", said("n1", "bake a cake"))
        play.do("A", "look")
        assert "Correction" not in play.notes("A")
        for goal in ("take mug", "bake a cake"):
            play.say("A", said("n1", goal))
            play.do("A", "look")
        assert "Your assignment is: take mug" in play.notes("A")

    def test_without_header_nothing_is_observed_r20(self) -> None:
        """SEPM-R20."""
        method, play = begin()
        play.say("A", "take mug 1")
        play.do("A", "take mug 1")
        assert "Correction" not in play.notes("A") and "sepm.judge_goal" not in method.services.models.roles()  # type: ignore[attr-defined]

    def test_a_stated_plan_that_reverses_an_edge_reaches_the_owners_of_descendants_r17_r19(self) -> None:
        """SEPM-R17, SEPM-R19: by the edges of the graph, and nobody else."""
        steps = [
            {"id": "n1", "action": "take mug", "agent": "A", "after": [], "post": [{"entity": "mug", "attribute": "at"}]},
            {"id": "n2", "action": "clean mug", "agent": "A", "after": ["n1"]},
            {"id": "n3", "action": "store mug", "agent": "B", "after": ["n2"]},
            {"id": "n4", "action": "sweep", "agent": "C", "after": []},
        ]
        _, play = begin({"sepm.plan": json.dumps({"subtasks": steps})}, "A", "B", "C")
        local = [{"id": "n2", "action": "clean mug", "after": []}, {"id": "n1", "action": "take mug", "after": ["n2"]}]
        play.say("A", said("n1", "take mug", plan=local))
        play.do("A", "look")
        assert "Your plan differs" in play.notes("A") and "A departs from the plan" in play.notes("B")
        assert "Correction" not in play.notes("C")

    def test_a_judge_without_calls_left_makes_nobody_drift_r20(self) -> None:
        """SEPM-R20: a goal in other words than the assignment's, which a judge would accept, is not held against the agent."""
        method, play = begin({"sepm.judge_goal": '{"score": 1}'}, judge_calls=1)
        for goal in ("get the mug", "fetch that cup", "look for it"):
            play.say("A", said("n1", goal))
            play.do("A", "look")
            assert "Correction" not in play.notes("A")
        play.end()
        (counters,) = method.services.db.execute("SELECT counters FROM sepm_task").fetchone()
        assert json.loads(counters)["sepm.judge_goal.over_budget"] == 2

    def test_claims_are_inference_and_the_speaker_s_own_r24(self) -> None:
        """SEPM-R24, and no claim writes into another agent's state: the source is who speaks, the tier is the lowest."""
        method, play = begin()
        claim = {
            "entity": "mug 1",
            "attribute": "clean",
            "value": True,
            "confidence": 1.0,
            "source": "env",
            "tier": 4,
            "agent": "B",
        }
        play.say("A", said("n1", "take mug", claims=[claim, {"entity": "x", "attribute": "y", "value": 1}]))
        play.do("A", "look")
        items = method.ws.state.items  # type: ignore[union-attr]
        assert [(e.source, e.tier, e.confidence) for e in items["mug 1", "clean"]] == [("A", 1, 1.0)]
        assert items["x", "y"][0].confidence == 0.5
        assert ("mug 1", "clean") not in method.ws.state.resolved  # type: ignore[union-attr]
        assert graph(method).graph.status["n2"] == "pending"

    def test_agents_that_differ_are_asked_to_observe_and_then_negotiate_once_r18_r23(self) -> None:
        """SEPM-R18, SEPM-R23, AMB-19: the outcome of negotiation stays an inference."""
        method, play = begin({"sepm.negotiate": '{"value": "shelf"}'})
        for number in range(5):
            for agent, where in (("A", "shelf"), ("B", "drawer")):
                claim = {"entity": "mug", "attribute": "location", "value": where, "confidence": 0.9}
                play.say(agent, said("n1", "take mug", claims=[claim]))
                play.do(agent, "look")
            if number == 1:
                assert "Reports about mug.location differ: get an observation by the environment" in play.notes("A")
        roles = method.services.models.roles()  # type: ignore[attr-defined]
        assert roles.count("sepm.negotiate") == 1
        assert "Assume shelf until it is observed" in play.notes("B")
        assert ("mug", "location") not in method.ws.state.resolved  # type: ignore[union-attr]

    def test_a_resolved_conflict_is_told_to_whoever_said_otherwise_r18(self) -> None:
        """SEPM-R18: environment before inference."""
        _, play = begin()
        claim = {"entity": "mug 1", "attribute": "location", "value": "shelf", "confidence": 0.9}
        play.say("B", said("none", "take mug", claims=[claim]))
        play.do("B", "look")
        play.do("A", "go to table", fact("mug 1", "location", "table 1", 2))
        assert "it is table 1" in play.notes("B") and "it is table 1" in play.notes("A")

    def test_a_step_that_keeps_failing_is_planned_anew_and_the_rest_keeps_its_evidence_r4_r5(self) -> None:
        """SEPM-R4, SEPM-R5: after `replan_after` failed checks, `max_replans` times a task."""
        revised = plan_of(CHAIN[0], ("n2", "wash mug in sink", "clean", True), CHAIN[2])
        method, play = begin({"sepm.replan": revised})
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 1))
        for _ in range(8):
            play.do("A", "clean mug 1", error="nothing happens")
        replans = [c for c in method.services.models.calls if c.role == "sepm.replan"]  # type: ignore[attr-defined]
        assert [c.phase for c in replans] == ["plan", "plan"]
        assert graph(method).graph.nodes["n2"].action == "wash mug in sink"
        assert graph(method).graph.status["n1"] == "verified"
        assert "The plan has changed" in play.notes("B")

    def test_no_ready_step_asks_for_the_missing_key_and_then_for_a_plan_r6(self) -> None:
        """SEPM-R6: also without alignment."""
        method, play = begin(None, alignment=False)
        graph(method).graph.nodes["n1"] = procedure_node()
        assert "To be observed first: door.state=open" in play.notes("A")
        play.do("A", "look")
        play.do("A", "look")
        assert "sepm.replan" in method.services.models.roles()  # type: ignore[attr-defined]


def procedure_node() -> Any:
    from methods.sepm.conditions import Condition
    from methods.sepm.graph import PlanNode

    return PlanNode("n1", "take mug", "A", (), (Condition("door", "state", "open"),))


def test_lexical_consistency_is_the_fallback_of_the_judge_r16() -> None:
    """SEPM-R16: on failure only; different negations make it 0. Beyond the budget a goal is not observed (SEPM-R20), and counted."""
    assert lexical_consistency("clean mug", "clean mug now") == pytest.approx(2 / 3)
    assert lexical_consistency("do not clean mug", "clean mug") == 0.0
    broken = GoalJudge(FakeModels(lambda call: "no idea"), 1)
    assert broken.consistency("clean mug", "clean mug now", "x") == pytest.approx(2 / 3)
    assert broken.consistency("clean mug", "other", "x") is None
    assert (broken.calls, broken.malformed, broken.over_budget) == (1, 1, 1)
    assert GoalJudge(FakeModels(lambda call: "Score: 17"), 1).consistency("a", "b", "x") == 1.0
