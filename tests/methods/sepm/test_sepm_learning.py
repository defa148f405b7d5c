"""What SEPM learns at the end of a task: extraction, updates, variants, warnings, retirement."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.contracts import Call, Guidance, Outcome, StepResult, Trajectory, Turn
from methods.sepm import store as store_module
from methods.sepm.memory import Sepm
from methods.sepm.procedure import ConditionalWarning, Procedure
from tests.methods.sepm.hooks_support import CHAIN, FACTS, begin, following, plan_of
from tests.methods.sepm.sepm_support import LOST, WON, Play, by_role, candidate, fact, memory, pool, post, procedure, task


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
        method = memory(by_role({"sepm.plan": following(*CHAIN), "sepm.extract": answer}), **config)
        bare = procedure("clean", *(t for _, t in self.BASE), conditions=("family=clean",))
        outcomes = (post("object", "location", "agent"), post("object", "clean", True), post("object", "location", "receptacle"))
        steps = tuple(replace(step, post=(outcome,)) for step, outcome in zip(bare.steps, outcomes, strict=True))
        method.pool.add_candidate(candidate(1, replace(bare, steps=steps), status="promoted"))
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
        method = memory(by_role({"sepm.plan": following(*CHAIN), "sepm.extract": self.extraction(*self.BASE)}))
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

    def test_a_changed_precondition_is_an_update(self) -> None:
        """The conditions of a step are part of the structure (equation 8)."""
        answer = json.loads(self.extraction(*self.BASE))
        answer["steps"][2]["pre"] = [{"entity": "receptacle", "attribute": "state", "value": "open"}]
        method = self.pooled(json.dumps(answer))
        self.play(method, 0)
        found = method.pool.candidates()[1]
        assert (found.op, [c.text() for c in found.procedure.steps[2].pre]) == ("update", ["receptacle.state=open"])

    def test_a_candidate_that_the_plan_ignores_is_not_supported_by_its_success_r28(self) -> None:
        """SEPM-R28: the same steps without it prove nothing for it; the trial is recorded, and is not a qualified one."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(*self.BASE)}))
        self.play(method, 0)
        self.play(method, 1)
        (trial,) = method.pool.trials("c1")
        assert (trial.success, trial.causal_supported) == (True, False)
        assert method.pool.head("c1") is None
        method = memory(by_role({"sepm.plan": following(*CHAIN), "sepm.extract": self.extraction(*self.BASE)}))
        self.play(method, 0)
        self.play(method, 1)
        assert method.pool.head("c1") == (1, True)

    def textual(self, *, evidence: bool = True) -> Sepm:
        """Two tasks of the textual control; the second one's plan is the procedure of the first, word for word."""
        sentences = ["A: take mug", "A: put mug in cabinet"]
        steps = [
            {"id": f"s{i}", "instruction": text, "record_ids": [i]}
            for i, text in enumerate(["take object", "put object in receptacle"], 1)
        ]

        def plan(call: Call) -> str:
            return json.dumps({"plan": sentences, "used": ["c1"] if "[c1" in call.messages[-1]["content"] else []})

        answers: dict[str, Any] = {"sepm.plan": plan, "sepm.extract": json.dumps({"title": "clean", "steps": steps})}
        method = memory(by_role(answers), graph="text", trial_policy="source")
        for number in range(2):
            play = Play(method, task(number), FACTS, "A")
            play.do("A", "take mug 1", *([fact("mug 1", "location", "agent", 1)] if evidence else []))
            play.do("A", "put mug 1 in cabinet 1", *([fact("mug 1", "location", "cabinet 1", 2)] if evidence else []))
            play.end()
        return method

    def test_the_control_extracts_only_what_the_graph_would_r38(self) -> None:
        """SEPM-R38: same budgets: no call without a qualified record, and none where the procedure was followed unchanged."""
        method = self.textual()
        assert method.pool.active() == [("c1", 1)]
        assert method.services.models.roles().count("sepm.extract") == 1  # type: ignore[attr-defined]
        assert "sepm.extract" not in self.textual(evidence=False).services.models.roles()  # type: ignore[attr-defined]

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

    def test_an_update_is_compared_with_the_structure_that_it_replaces_r35(self) -> None:
        """SEPM-R35: all revisions of that structure (warnings make new ones) and no later one; else the family; else flagged."""
        store = pool()

        def ended(number: int, score: float, steps: int, used: dict[str, int], on_trial: str | None = None) -> None:
            no = store.begin_task(f"x{number}", "clean")
            store.end_task(
                no, score=score, success=score > 0.5, status="completed", steps=steps, used=used, provisional=on_trial, graph={},
                counters={},
            )  # fmt: skip

        assert not store.baselines.of_trial("c9", "clean", ("c1", 1)).runs
        store.commit_version("c1", None, procedure("one"), "create", 1)
        store.commit_version("c1", 1, procedure("one", warnings=(ConditionalWarning("w"),)), "warning", 2)
        store.commit_version("c1", 2, procedure("one", "other"), "update", 3)
        ended(1, 0.0, 30, {})
        ended(2, 1.0, 10, {"c1": 1}, "c9")
        family = store.baselines.of_trial("c9", "clean", ("c1", 1))
        assert (family.runs, family.mean_score, family.mean_steps) == (1, 0.0, 30)
        ended(3, 0.4, 4, {"c1": 1})
        ended(4, 0.6, 8, {"c1": 2})
        ended(5, 1.0, 2, {"c1": 3})
        for version in (1, 2):
            found = store.baselines.of_trial("c9", "clean", ("c1", version))
            assert (found.runs, found.mean_score, found.mean_steps) == (2, 0.5, 6)
        assert store.baselines.of_trial("c9", "clean", ("c1", 3)).mean_score == 1.0
        assert store.baselines.of_trial("c8", "clean", ("c1", 1)).runs == 3

    def test_the_words_of_floats_do_not_tip_the_net_benefit_r28(self) -> None:
        """SEPM-R28: 0 passes: ten scores of 0.1 have the mean 0.1."""
        store = pool()
        for number in range(10):
            no = store.begin_task(f"x{number}", "clean")
            store.end_task(
                no, score=0.1, success=False, status="completed", steps=3, used={}, provisional=None, graph={}, counters={}
            )
        assert store.baselines.family("clean").mean_score == 0.1

    def test_a_replay_is_compared_with_the_episode_that_it_replays_r34_r35(self) -> None:
        """SEPM-R34, SEPM-R35: same task, the recorded score and steps; its guidance is that of the episode and the candidate."""
        told: list[Guidance] = []

        def rehearse(guidance: Guidance) -> tuple[Trajectory, Outcome]:
            told.append(guidance)
            result = StepResult("ok", 1.0, True, None, (fact("mug 1", "location", "agent"),))
            return Trajectory("A room.", tuple(Turn(i, "A", "x", "x", result) for i in range(1, 10))), WON

        answer = self.extraction(*self.BASE[:2], ("n3", "put object carefully in receptacle"))
        method = self.pooled(answer, trial_policy="replay")
        other = procedure("wipe", conditions=("family=clean",))
        method.pool.commit_version("c5", None, other, "create", 0)
        for number in range(3):  # the family does worse than the episode
            no = method.pool.begin_task(f"x{number}", "clean")
            method.pool.end_task(
                no, score=0.0, success=False, status="failed", steps=30, used={}, provisional=None, graph={}, counters={}
            )
        method.services = replace(method.services, rehearse=rehearse)
        play = self.play(method, 0)
        (trial,) = method.pool.trials("c2")
        assert (trial.r_candidate, trial.r_baseline, trial.no_baseline) == (1.0, 1.0, False)
        assert trial.cost == pytest.approx((9 - len(play.turns)) / 30)
        (guidance,) = told
        assert guidance.brief == play.guidance.brief != ""
        assert "[c2] (provisional)" in guidance.procedures[0]
        assert guidance.procedures[1:] == tuple(p for p in play.guidance.procedures if "[c5 v1]" in p)
        assert any("[c1 v1]" in p for p in play.guidance.procedures)

    def test_the_same_lesson_is_kept_once_and_counted_r32(self) -> None:
        """SEPM-R32: what a family waits with does not grow by repetition."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN)}))
        for number in range(4):
            self.play(method, number, fail_first=True, won=False)
        assert method.services.db.execute("SELECT times, attached_to FROM sepm_lesson").fetchall() == [(4, None)]
        assert len(method.pool.take_lessons("clean", "c1")) == 1
        self.play(method, 5, fail_first=True, won=False)
        assert len(method.pool.take_lessons("clean", "c2")) == 1

    def test_what_a_task_costs_does_not_grow_with_the_pool(self) -> None:
        """One active procedure of another family, or a thousand finished tasks, are not read again for every candidate."""
        method = memory(by_role({"sepm.plan": plan_of(*CHAIN), "sepm.extract": self.extraction(*self.BASE)}))
        for number in range(20, 60):
            method.pool.commit_version(f"c{number}", None, procedure("x", f"step {number}", family="other"), "create", 0)
            no = method.pool.begin_task(f"x{number}", "clean")
            method.pool.end_task(
                no, score=1.0, success=True, status="completed", steps=3, used={}, provisional=None, graph={}, counters={}
            )
        read: list[str] = []
        parse = store_module._parsed

        def counted(content: str) -> Procedure:
            read.append(content)
            return parse(content)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store_module, "_parsed", counted)
            self.play(method, 0)
        assert len(read) < 10
        assert method.pool.candidates()[-1].op == "create"
        plans = method.services.db.execute(
            "EXPLAIN QUERY PLAN SELECT 1 FROM sepm_candidate WHERE digest = 'x' AND status IN ('validated') LIMIT 1"
        ).fetchall()
        assert "sepm_candidate_digest" in plans[0][3]

    def test_the_state_s_words_are_remembered_for_later_plans(self) -> None:
        method, play = begin()
        play.do("A", "take mug 1", fact("mug 1", "location", "cabinet 2"))
        play.end()
        Play(method, task(1), FACTS, "A")
        calls = [c for c in method.services.models.calls if c.role == "sepm.plan"]  # type: ignore[attr-defined]
        assert "mug.location=cabinet" in calls[-1].messages[-1]["content"]

    @pytest.mark.parametrize("alignment", [False, True])
    def test_a_row_without_memory_plans_every_task_as_the_first_r38(self, alignment: bool) -> None:
        """SEPM-R38: nothing of an earlier task reaches a later one, not even the words of the state."""
        method, play = begin(None, procedural=False, alignment=alignment)
        play.do("A", "take mug 1", fact("mug 1", "location", "cabinet 2"))
        play.end()
        Play(method, task(), FACTS, "A", "B")
        first, second = [c for c in method.services.models.calls if c.role == "sepm.plan"]  # type: ignore[attr-defined]
        assert first.messages == second.messages
        assert method.pool.attributes() == []
