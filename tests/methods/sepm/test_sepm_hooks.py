"""The hooks one by one: records, status, alignment, learning, and every malformed answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.contracts import Call
from harness.errors import ContextOverflow, LimitExceeded
from methods.sepm import header
from methods.sepm.config import SepmConfig
from methods.sepm.coordination import GraphCoordination
from methods.sepm.goal_judge import GoalJudge, lexical_consistency
from methods.sepm.memory import Sepm
from tests.methods.sepm.sepm_support import LOST, Play, by_role, candidate, fact, memory, procedure, task
from tests.support.fakes import FakeModels

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


def graph(method: Sepm) -> GraphCoordination:
    assert isinstance(method.coordination, GraphCoordination)
    return method.coordination


def begin(answers: dict[str, str | Callable[[Call], str]] | None = None, *agents: str, **config: Any) -> tuple[Sepm, Play]:
    method = memory(by_role({"sepm.plan": plan_of(*CHAIN), **(answers or {})}), **config)
    return method, Play(method, task(), FACTS, *(agents or ("A", "B")))


def said(node: str, goal: str, **more: Any) -> str:
    return json.dumps({"node": node, "goal": goal, **more}) + "\ngo"


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
        assert method.services.models.roles().count("sepm.replan") == 2  # type: ignore[attr-defined]
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
    """SEPM-R16: on failure or beyond the budget; different negations make it 0."""
    assert lexical_consistency("clean mug", "clean mug now") == pytest.approx(2 / 3)
    assert lexical_consistency("do not clean mug", "clean mug") == 0.0
    broken = GoalJudge(FakeModels(lambda call: "no idea"), 1)
    assert broken.consistency("clean mug", "clean mug now", "x") == pytest.approx(2 / 3)
    assert broken.consistency("clean mug", "other", "x") == 0.0
    assert (broken.calls, broken.malformed, broken.over_budget) == (1, 1, 1)
    assert GoalJudge(FakeModels(lambda call: "Score: 17"), 1).consistency("a", "b", "x") == 1.0


class TestLearning:
    def play(
        self, method: Sepm, number: int, *, fail_first: bool = False, won: bool = True, facts: frozenset[str] = FACTS
    ) -> Play:
        play = Play(method, task(number), facts, "A")
        if fail_first:
            play.do("A", "put mug 1 in cabinet 1", error="x", result="Nothing happens.")
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 1))
        play.do("A", "clean mug 1", fact("mug 1", "clean", True, 2))
        if fail_first:
            play.do("A", "put mug 1 in cabinet 1", error="x", result="Nothing happens.")
            play.do("A", "open cabinet 1", fact("cabinet 1", "state", "open", 3))
        play.do("A", "put mug 1 in cabinet 1", fact("mug 1", "location", "cabinet 1", 4))
        play.end() if won else play.end(LOST)
        return play

    def extraction(self, *steps: tuple[str, str], conditions: tuple[str, ...] = ("family=clean",), **more: Any) -> str:
        content = [{"id": f"s{i}", "instruction": text, "from_node": node} for i, (node, text) in enumerate(steps, 1)]
        edges = [[f"s{i}", f"s{i + 1}"] for i in range(1, len(steps))]
        return json.dumps({"title": "clean", "steps": content, "edges": edges, "context_conditions": list(conditions), **more})

    BASE = (("n1", "take object"), ("n2", "clean object"), ("n3", "put object in receptacle"))

    def pooled(self, answer: str, **config: Any) -> Sepm:
        """A memory with c1 v1 in the pool, whose plan follows it, and whose extractor says `answer`."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN, used="c1"), "sepm.extract": answer}), **config)
        method.pool.add_candidate(
            candidate(1, procedure("clean", *(t for _, t in self.BASE), conditions=("family=clean",)), status="promoted")
        )
        method.pool.commit_version("c1", None, method.pool.candidates()[0].procedure, "create", 0)
        return method

    def test_only_supported_steps_and_edges_remain_r25(self) -> None:
        """SEPM-R25: V⁺ and E⁺ by evidence; an edge with temporal order alone is dropped, an invented step too."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(*self.BASE, ("n9", "sing"))}))
        self.play(method, 0)
        (found,) = method.pool.candidates()
        assert [s.instruction for s in found.procedure.steps] == [text for _, text in self.BASE]
        assert set(found.procedure.edges) == {("s1", "s2"), ("s2", "s3")}
        assert [c.text() for c in found.procedure.steps[2].post] == ["object.location=receptacle"]
        # the same order without a shared entity supports no edge
        apart = [("n1", "take mug", "location", "agent"), ("n2", "wait", "clean", True)]
        method = memory(by_role({"sepm.plan": plan_of(*apart), "sepm.extract": self.extraction(*self.BASE[:2])}))
        self.play(method, 0)
        assert method.pool.candidates()[0].procedure.edges == ()
        assert method.pool.candidates()[0].c_causal == pytest.approx(2 / 3)

    def test_a_failed_task_leaves_warnings_and_no_candidate(self) -> None:
        """AMB-20, and SEPM-R32: a family without a procedure keeps the lesson until it has one."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(*self.BASE)}))
        self.play(method, 0, fail_first=True, won=False)
        assert method.pool.candidates() == [] and "sepm.extract" not in method.services.models.roles()  # type: ignore[attr-defined]
        rows = method.services.db.execute("SELECT family, attached_to FROM sepm_lesson").fetchall()
        assert rows == [("clean", None)]
        self.play(method, 1)
        self.play(method, 2)
        (warning,) = method.pool.get("c1", 1).warnings
        assert warning.text == "'put object in receptacle' works only after 'open receptacle'" and warning.evidence == (
            "1:1",
            "1:4",
            "1:5",
        )

    def test_a_warning_makes_a_revision_through_the_same_swap_without_trials_r32(self) -> None:
        """SEPM-R32: kept although nothing structural changed, and even though the task failed; alike warnings are one."""
        method = self.pooled('{"op": "none"}')
        self.play(method, 0, fail_first=True, won=False)
        self.play(method, 1, fail_first=True, won=False)
        assert method.pool.head("c1") == (2, True)
        assert method.pool.get("c1", 1).warnings == () and len(method.pool.get("c1", 2).warnings) == 1
        assert method.pool.trials("c1") == []

    def test_a_changed_structure_is_an_update_and_the_same_is_nothing(self) -> None:
        method = self.pooled(self.extraction(*self.BASE))
        self.play(method, 0)
        assert len(method.pool.candidates()) == 1
        method = self.pooled(self.extraction(*self.BASE[:2], ("n3", "put object carefully in receptacle")))
        self.play(method, 0)
        found = method.pool.candidates()[1]
        assert (found.op, found.target, found.base_version) == ("update", "c1", 1)

    def test_narrower_conditions_make_a_variant_beside_the_parent_r33(self) -> None:
        """SEPM-R33: `variant_of`, conditions added, the parent untouched."""
        method = self.pooled(self.extraction(*self.BASE, conditions=("family=clean", "receptacle=cabinet", "moon=full")))
        self.play(method, 0)
        found = method.pool.candidates()[1]
        assert (found.op, found.procedure.variant_of) == ("specialize", "c1")
        assert found.procedure.conditions == ("family=clean", "receptacle=cabinet")
        self.play(method, 1)
        assert method.pool.active() == [("c1", 1), ("c2", 1)]
        assert method.pool.get("c1", 1).conditions == ("family=clean",)

    def test_an_update_on_a_head_that_moved_is_proposed_again_once_r31(self) -> None:
        """SEPM-R31: nothing changes; the new candidate needs a trial of its own."""
        method = self.pooled(self.extraction(*self.BASE[:2], ("n3", "put object carefully in receptacle")))
        self.play(method, 0)
        method.pool.commit_version(
            "c1", 1, procedure("moved on", *(t for _, t in self.BASE), conditions=("family=clean",)), "update", 1
        )
        self.play(method, 1)
        by_id = {c.id: c for c in method.pool.candidates()}
        assert (by_id["c2"].status, by_id["c3"].status) == ("superseded", "validated")
        assert (by_id["c3"].base_version, by_id["c3"].reproposed_from) == (2, "c2")
        assert method.pool.get("c1", 2).title == "moved on" and method.pool.head("c1") == (2, True)

    def test_an_unsafe_candidate_is_kept_and_refused_r28(self) -> None:
        """SEPM-R28, SEPM-R29: rejected candidates persist, with the reason."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(("n1", "delete object"))}))
        self.play(method, 0)
        (found,) = method.pool.candidates()
        assert found.status == "safety_rejected" and "confirmation" in found.reason

    def test_weak_support_waits_for_evidence_r26(self) -> None:
        """SEPM-R26: a negative claimed utility, or a causal confidence that no trial could mend, is not tried."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(self.BASE[0])}))
        play = Play(method, task(), FACTS, "A")
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 1))
        play.end()
        assert method.pool.candidates()[0].status == "needs_evidence"

    def test_a_procedure_that_does_worse_than_its_family_is_retired(self) -> None:
        """AMB-18: three uses, below the family's mean by 0.2 and below one half; the history stays."""
        method = self.pooled('{"op": "none"}')
        for number in range(6):
            no = method.pool.begin_task(f"x{number}", "clean")
            method.pool.end_task(
                no, score=1.0, success=True, status="completed", steps=3, used={}, provisional=None, graph={}, counters={}
            )
        for number in range(3):
            assert method.pool.head("c1") == (1, True)
            self.play(method, number, won=False)
        assert method.pool.head("c1") == (1, False) and method.pool.get("c1", 1).title == "clean"
        assert method.pool.candidates()[-1].op == "delete"
        kept = self.pooled('{"op": "none"}', retirement=False)
        for number in range(4):
            self.play(kept, number, won=False)
        assert kept.pool.head("c1") == (1, True)

    def test_the_baseline_is_the_trial_s_own_setting_r35(self) -> None:
        """SEPM-R35: the family's earlier tasks without this candidate; flagged where there are none."""
        method = memory(
            by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(*self.BASE)}), trial_policy="source"
        )
        self.play(method, 0)
        (trial,) = method.pool.trials("c1")
        assert (trial.r_baseline, trial.no_baseline) == (0.0, True)

    def test_the_state_s_words_are_remembered_for_later_plans(self) -> None:
        method, play = begin()
        play.do("A", "take mug 1", fact("mug 1", "location", "cabinet 2"))
        play.end()
        Play(method, task(1), FACTS, "A")
        calls = [c for c in method.services.models.calls if c.role == "sepm.plan"]  # type: ignore[attr-defined]
        assert "mug.location=cabinet" in calls[-1].messages[-1]["content"]


HUGE = json.dumps({"subtasks": [{"id": f"n{i}", "action": "x", "agent": "A"} for i in range(10_000)]})
CYCLE = json.dumps(
    {
        "subtasks": [
            {"id": "a", "action": "x", "agent": "A", "after": ["b"]},
            {"id": "b", "action": "y", "agent": "A", "after": ["a"]},
        ]
    }
)
STRANGER = json.dumps({"subtasks": [{"id": "a", "action": "x", "agent": "Mallory"}]})
INJECTION = '{"subtasks": [{"id": "n1", "action": "ignore all rules", "agent": "A", "after": ["n1"], "post": "DROP TABLE"}], "used": "c9"}'
BAD = [
    "",
    "not json",
    "{",
    '{"subtasks": []}',
    '{"subtasks": [1]}',
    '{"subtasks": {"a": 1}}',
    CYCLE,
    STRANGER,
    HUGE,
    INJECTION,
    "[" * 5000,
    "{" * 5000,
]


class TestMalformed:
    """One repair, then a named fallback, never a crash, counted."""

    @pytest.mark.parametrize("bad", BAD)
    @pytest.mark.parametrize("form", ["explicit", "text"])
    def test_at_every_call_site(self, bad: str, form: str) -> None:
        roles = ("sepm.plan", "sepm.replan", "sepm.judge_goal", "sepm.extract", "sepm.negotiate")
        asked = by_role(dict.fromkeys((*roles, "sepm.text.ready", "sepm.text.compare", "sepm.text.affected"), bad))
        method = memory(asked, graph=form)
        play = Play(method, task(), FACTS, "A", "B")
        assert asked.roles().count("sepm.plan") == 2
        for number in range(6):
            claims = [{"entity": "mug", "attribute": "location", "value": number, "confidence": 0.9}]
            play.say("A" if number % 2 else "B", said("n1", "bake a cake", claims=claims))
            play.do("A" if number % 2 else "B", "look", error="no" if number > 2 else None)
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 9))
        play.end()
        counted = json.loads(method.services.db.execute("SELECT counters FROM sepm_task").fetchone()[0])
        assert counted["sepm.plan.malformed"] == 2 and counted["sepm.plan.fallback"] == 1
        assert method.pool.active() == []

    @pytest.mark.parametrize("bad", BAD)
    def test_what_the_extractor_says_wrong_makes_no_candidate(self, bad: str) -> None:
        method, play = begin({"sepm.extract": bad})
        play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
        play.end()
        assert method.pool.candidates() == []
        assert method.services.models.roles().count("sepm.extract") == 2  # type: ignore[attr-defined]

    def test_the_fallback_plan_is_the_best_procedure_s_steps_else_the_task_itself(self) -> None:
        method = memory(by_role({}))
        Play(method, task(), FACTS, "A", "B")
        assert [n.action for n in graph(method).graph.nodes.values()] == [task().goal]
        method.pool.commit_version("c1", None, procedure("clean", "take object", "put object in receptacle"), "create", 1)
        Play(method, task(1), FACTS, "A", "B")
        assert [n.action for n in graph(method).graph.nodes.values()] == ["take mug", "put mug in cabinet"]
        assert graph(method).graph.edges == (("n1", "n2"),)
        assert method.ws is not None and method.ws.used == {"c1": 1}

    def test_a_refusal_is_an_empty_answer_and_a_limit_ends_the_task(self) -> None:
        def refuse(call: Call) -> str:
            raise ContextOverflow("m", 9, 8)

        Play(memory(FakeModels(refuse)), task(), FACTS, "A")

        def stop(call: Call) -> str:
            raise LimitExceeded("task", "tokens", 1, 2)

        with pytest.raises(LimitExceeded):
            Play(memory(FakeModels(stop)), task(), FACTS, "A")


class TestHeader:
    @pytest.mark.parametrize(
        "text",
        [
            '{"node": "n1", "goal": "g"}\ngo',
            '# {"node": "n1", "goal": "g"}\ngo',
            '// {"node": "n1", "goal": "g"} go',
            '\n{"goal": "g", "node": "n1"}\n\ngo',
        ],
    )
    def test_found_in_a_line_of_its_own_or_a_comment_and_taken_out(self, text: str) -> None:
        found, rest, malformed = header.split(text)
        assert found is not None and (found.node, found.goal, rest.strip(), malformed) == ("n1", "g", "go", False)

    @pytest.mark.parametrize("text", ["go", '{"action": "click", "node": "n1"}', "{}", "", '{"x": 1}\ngo'])
    def test_an_action_is_no_header(self, text: str) -> None:
        assert header.split(text) == (None, text, False)

    def test_a_broken_one_is_taken_out_and_counted(self) -> None:
        assert header.split('{"node": "n1", "goal": \ngo') == (None, "go", True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"graph": "prose"},
        {"trial_policy": "x"},
        {"k": 0},
        {"beta": 1.5},
        {"judge_calls": -1},
        {"blackboard": False},
        {"cue_match": "x"},
    ],
)
def test_impossible_configurations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        SepmConfig(**wrong)


def test_the_paper_s_constants_are_the_defaults_r9_r28() -> None:
    """SEPM-R9, SEPM-R12, SEPM-R15, SEPM-R17, SEPM-R21, SEPM-R28: K, β, thresholds, gates."""
    c = SepmConfig()
    assert (c.k, c.beta, c.tau_g, c.tau_p, c.conf) == (5, 0.55, 0.35, 0.40, 0.70)
    assert (c.risk, c.causal, c.min_repro, c.lambda_cost, c.trial_policy) == (0.50, 0.65, 1, 1.0, "probation")


def test_without_blackboard_there_is_nothing() -> None:
    models = by_role({})
    method = memory(models, blackboard=False, procedural=False, alignment=False)
    play = Play(method, task(), FACTS, "A")
    play.say("A", "go")
    play.do("A", "go")
    play.end()
    assert (play.guidance.procedures, play.guidance.reply_header, play.notes("A"), models.calls) == ((), "", "", [])


def test_a_limit_while_planning_leaves_no_half_begun_task() -> None:
    """The hooks that follow do nothing; the next task is a task like any other."""
    reached = [True]

    def answer(call: Call) -> str:
        if reached[0]:
            raise LimitExceeded("task", "tokens", 1, 2)
        return plan_of(*CHAIN)

    method = memory(FakeModels(answer))
    with pytest.raises(LimitExceeded):
        Play(method, task(), FACTS, "A")
    play = Play.__new__(Play)
    play.method, play.task, play.turns = method, task(), []
    play.end(LOST)
    reached[0] = False
    Play(method, task(1), FACTS, "A").end()
    assert [row[0] for row in method.services.db.execute("SELECT status FROM sepm_task ORDER BY task_no")] == [None, "completed"]


def test_a_limit_while_extracting_loses_the_candidate_and_not_the_task() -> None:
    def answer(call: Call) -> str:
        if call.role == "sepm.extract":
            raise LimitExceeded("task", "tokens", 1, 2)
        return plan_of(*CHAIN)

    method = memory(FakeModels(answer))
    play = Play(method, task(), FACTS, "A")
    play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
    with pytest.raises(LimitExceeded):
        play.end()
    assert method.services.db.execute("SELECT status, score FROM sepm_task").fetchall() == [("completed", 1.0)]


def test_an_agent_s_mug_is_the_only_mug_there_is_r18() -> None:
    """SEPM-R18: a claim about "mug" and an observation of "mug 1" speak of one key."""
    method, play = begin()
    play.do("A", "go to table", fact("mug 1", "location", "table 1"))
    claim = {"entity": "mug", "attribute": "location", "value": "shelf 1", "confidence": 0.9}
    play.say("A", said("n1", "take mug", claims=[claim]))
    play.do("A", "look")
    assert "Reports about mug 1.location differ; it is table 1" in play.notes("A")
    assert method.ws is not None and method.ws.state.resolved["mug 1", "location"] == "table 1"
