"""What a finished task does to the pool: trial, promotion, extraction, warnings, retirement (SEPM paper 4.3, 4.4, B.5, B.6).

The order is fixed: the candidate on trial is judged first, then a new one is extracted, then lessons are attached; when the
task has been counted, procedures that do worse than their family are retired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.contracts import Call, Models, Outcome
from methods.sepm import extraction, prompts, textual
from methods.sepm.coordination import GraphCoordination
from methods.sepm.extraction import Extracted, Failure, Support
from methods.sepm.plans import ask_twice
from methods.sepm.procedure import MAX_WARNINGS, ConditionalWarning, Procedure, render
from methods.sepm.promotion import CandidateStatus, Op, Thresholds, Trial, Verdict, claimed_utility, judge, summary_score
from methods.sepm.safety import assess, assess_delete
from methods.sepm.store import Candidate, PoolStore, Promotion
from methods.sepm.textual import TextCoordination
from methods.sepm.workspace import Workspace
from methods.text.hash256 import bounded_similarity, embed

SAME_WARNING = 0.9  # bounded similarity from which two warnings are one
RETIRE_USES, RETIRE_BELOW, RETIRE_MARGIN = 3, 0.5, 0.2
Coordination = GraphCoordination | TextCoordination
# Plays the task again in a fresh world with a candidate shown, and compares with this score and these steps; None where that is
# impossible.
Rehearse = Callable[[Candidate, float, int], Trial | None]


@dataclass
class Learner:
    """The update 𝒰 of equation 2 for one finished task."""

    ws: Workspace
    coordination: Coordination
    pool: PoolStore
    models: Models
    outcome: Outcome
    steps: int
    max_steps: int
    rehearse: Rehearse

    def __post_init__(self) -> None:
        config = self.ws.config
        self.at = Thresholds(config.risk, config.causal, config.min_repro, config.lambda_cost)
        self.family = self.ws.task.family
        self.success = self.outcome.success
        self.failures = self._failures()
        self.kept = self._support()

    def learn(self) -> None:
        promoted = self._trial()
        self._extract(promoted)
        self._attach_lessons(promoted)

    def _failures(self) -> list[Failure]:
        graph = self.coordination.graph if isinstance(self.coordination, GraphCoordination) else None
        actions = {i: node.action for i, node in graph.nodes.items()} if graph else {}
        return extraction.failures(self.ws.blackboard, actions, {value: kind for kind, value in self.ws.names.items()})

    def _support(self) -> Support:
        if isinstance(self.coordination, GraphCoordination):
            return extraction.support(self.ws, self.coordination, self.success)
        return Support((), (), 0.0)

    def _state_verified(self) -> bool:
        if isinstance(self.coordination, GraphCoordination):
            return extraction.state_verified(self.ws, self.coordination.graph, self.kept.nodes)
        keys = {e.key for r in self.ws.blackboard if r.executed for e in r.evidence if self.ws.qualifies(e)}
        return bool(keys) and not keys & self.ws.state.unresolved.keys()

    # --- trials -------------------------------------------------------------------------------------------------------
    def _trial(self) -> tuple[str, int] | None:
        """Record the trial of the candidate that was shown, and judge it; the revision it became, if it did."""
        candidate = self.ws.provisional
        if candidate is None:
            return None
        share = extraction.matched_share(candidate.procedure, candidate.id, self.ws, self.coordination)
        self.pool.add_trial(
            candidate.id, self._as_trial(candidate, share), task_no=self.ws.task_no, family=self.family, policy="probation"
        )
        return self._consider(candidate)

    def _as_trial(self, candidate: Candidate, share: float) -> Trial:
        reference = None
        if candidate.target is not None and candidate.base_version is not None:
            reference = candidate.target, candidate.base_version
        before = self.pool.baselines.of_trial(candidate.id, self.family, reference)
        extra = max(0.0, self.steps - before.mean_steps) / self.max_steps if before.runs else 0.0
        return Trial(
            task_id=self.ws.task.task_id,
            success=self.success,
            r_candidate=self.outcome.score,
            r_baseline=before.mean_score,
            cost=extra,
            state_verified=self._state_verified(),
            causal_supported=share >= self.ws.config.causal,
            environment=self.family,
            no_baseline=not before.runs,
        )

    def _consider(self, candidate: Candidate) -> tuple[str, int] | None:
        """Equation 9 on all recorded trials; commit, keep waiting, or reject. The new revision (id, version), if any."""
        trials = self.pool.trials(candidate.id)
        base = self._target(candidate)
        safety = assess(candidate.procedure, base, specialises=candidate.op == "specialize")
        verdict = judge(
            trials,
            safe=safety.allowed(self.at.risk),
            state_verified=candidate.state_verified,
            causal_confidence=candidate.c_causal,
            at=self.at,
        )
        if verdict.accepted:
            return self._promote(candidate, verdict, safety.risk)
        reason = f"gates not passed: {', '.join(verdict.failed)}"
        if len(trials) >= self.ws.config.max_trials:
            self.pool.set_status(candidate.id, "rejected", f"{reason}, after {len(trials)} trials")
        else:
            self.pool.set_status(candidate.id, "validated", reason if trials else "waits for a trial")
        return None

    def _target(self, candidate: Candidate) -> Procedure | None:
        if candidate.target is None or candidate.base_version is None:
            return None
        return self.pool.get(candidate.target, candidate.base_version)

    def _promote(self, candidate: Candidate, verdict: Verdict, risk: float) -> tuple[str, int] | None:
        ws = self.ws
        own_entry = candidate.op in ("create", "specialize")
        sop_id = candidate.id if own_entry else str(candidate.target)
        procedure = candidate.procedure
        if own_entry:
            procedure = _merged(procedure, self.pool.take_lessons(self.family, sop_id))[0]
        score = summary_score(candidate.c_causal, verdict.qualified, self.at.reproductions, risk)
        about = Promotion(candidate.id, score, verdict.net_benefit)
        base = None if own_entry else candidate.base_version
        version = self.pool.commit_version(sop_id, base, procedure, candidate.op, ws.task_no, about)
        if version is None:
            self.pool.set_status(candidate.id, "needs_evidence", f"the head of {sop_id} is no longer version {base}")
            self._repropose(candidate)
            return None
        self.pool.set_status(candidate.id, "promoted", f"became {sop_id} v{version}")
        self.pool.audit(ws.task_no, "promoted", candidate=candidate.id, sop=sop_id, version=version, v_summary=score)
        return sop_id, version

    def _repropose(self, candidate: Candidate) -> None:
        """Once, against the new head, with the warnings that it has gained; it needs trials of its own (METHODS.md 4.7)."""
        head = self.pool.head(str(candidate.target))
        if candidate.reproposed_from is not None or head is None or not head[1]:
            return
        current = self.pool.get(str(candidate.target), head[0])
        again = replace(
            candidate,
            id=self.pool.next_candidate_id(),
            base_version=head[0],
            procedure=_merged(candidate.procedure, current.warnings)[0],
            task_no=self.ws.task_no,
            status="validated",
            reason=f"proposed again against version {head[0]}",
            reproposed_from=candidate.id,
        )
        self.pool.add_candidate(again)
        self.pool.set_status(candidate.id, "superseded", f"proposed again as {again.id}")

    # --- extraction ---------------------------------------------------------------------------------------------------
    def _extract(self, promoted: tuple[str, int] | None) -> None:
        """Propose a candidate from a success (AMB-20: a failure only leaves warnings)."""
        if not self.success:
            return
        if self.ws.provisional is not None and promoted is None:
            return  # the candidate on trial stands for this task: another one of the same kind would only queue up
        reference = self._reference(promoted)
        if not self._new(reference):
            return
        found = self._ask_extractor(reference)
        if found is not None:
            self._propose(found[0], found[1], reference)

    def _new(self, reference: tuple[str, int, Procedure] | None) -> bool:
        """Whether there is something to extract: verified work, and not just that of the procedure that was followed."""
        if isinstance(self.coordination, GraphCoordination):
            if not self.kept.nodes:
                return False
            return reference is None or not extraction.unchanged(
                self.coordination.graph, self.kept, self._followed(reference[0]), reference[2]
            )
        if not extraction.qualified_records(self.ws):
            return False
        return reference is None or not extraction.told_unchanged(self.coordination.sentences, self.ws, reference[2])

    def _reference(self, promoted: tuple[str, int] | None) -> tuple[str, int, Procedure] | None:
        """The procedure that the task followed, in the revision that was retrieved (SEPM-R14), or that it has just become."""
        if promoted is not None:
            return (*promoted, self.pool.get(*promoted))
        for sop_id in self.ws.used:
            version, procedure = self.ws.references[sop_id]
            return sop_id, version, procedure
        return None

    def _followed(self, sop_id: str) -> str:
        """Under which id the plan's steps name that procedure: a candidate on trial goes by its own."""
        candidate = self.ws.provisional
        return candidate.id if candidate is not None and candidate.id in self.ws.references else sop_id

    def _ask_extractor(self, reference: tuple[str, int, Procedure] | None) -> tuple[Extracted, float] | None:
        """The supported part of the extractor's answer, and c_causal."""
        ws = self.ws
        shown = render(reference[2], f"{reference[0]} v{reference[1]}")[:2000] if reference else ""
        failed = [f"[records {', '.join(map(str, f.seqs))}] {f.text}" for f in self.failures[:5]]
        graph = self.coordination.graph if isinstance(self.coordination, GraphCoordination) else None
        rules = prompts.EXTRACT_RULES if graph is not None else textual.EXTRACT_RULES
        messages = prompts.extract_messages(
            ws.objective, sorted(ws.facts), self._evident(), [f"{u} -> {w}" for u, w in self.kept.edges], failed, shown, rules
        )
        call = Call("sepm.extract", messages, key="memory", phase="write", agent="memory")
        pair = (reference[0], reference[2]) if reference else None
        offered: list[int] = []

        def read(text: str) -> list[Extracted]:
            offered[:] = [extraction.offered_steps(text)]
            found = extraction.read_extracted(text, ws, graph, self.kept, self.failures, pair)
            return [found] if found is not None else []

        found = ask_twice(self.models, call, read, ws.counters)
        if not found:
            return None
        causal = self.kept.causal if graph is not None else len(found[0].procedure.steps) / max(1, offered[0])
        return found[0], causal

    def _evident(self) -> list[str]:
        """The verified steps with what was done on them, for the extractor; in the textual control the records themselves."""
        if isinstance(self.coordination, GraphCoordination):
            graph = self.coordination.graph
            lines = []
            for i in self.kept.nodes:
                done = [r for r in self.ws.blackboard.on(i) if r.executed and (r.evidence or not graph.nodes[i].post)]
                acts = "; ".join(r.action for r in done[-3:])
                post = ", ".join(c.text() for c in graph.nodes[i].post)
                lines.append(f"{i}: {graph.nodes[i].action} | done by: {acts} | verified: {post or 'the outcome'}"[:220])
            return lines[:20]
        good = extraction.qualified_records(self.ws)
        return [f"record {r.seq}: {r.action} -> {r.result}"[:160] for r in good[-20:]]

    def _propose(self, found: Extracted, causal: float, reference: tuple[str, int, Procedure] | None) -> None:
        """Precheck (SEPM-R26) and keep a candidate."""
        op, procedure = self._operation(found.procedure, reference)
        if op is None or self._waits_already(procedure, op):
            return
        target = reference if op in ("update", "specialize") else None
        safety = assess(procedure, target[2] if target else None, specialises=op == "specialize")
        verified = self._state_verified()
        benefit, cost = self.outcome.score, min(1.0, self.steps / self.max_steps)
        utility = claimed_utility(benefit, cost, self.at.weight)
        candidate = Candidate(
            id=self.pool.next_candidate_id(),
            op=op,
            target=target[0] if target else None,
            base_version=target[1] if target else None,
            family=self.family,
            procedure=procedure,
            state_verified=verified,
            c_causal=causal,
            b_claim=benefit,
            c_claim=cost,
            risk=safety.risk,
            task_no=self.ws.task_no,
        )
        if not safety.allowed(self.at.risk):
            candidate = replace(
                candidate, status="safety_rejected", reason="; ".join(safety.violations) or f"risk {safety.risk:.2f}"
            )
        elif not verified or utility < 0 or causal < self.at.causal:
            why = "its state is not verified" if not verified else f"claimed utility {utility:.2f} is negative"
            if verified and utility >= 0:
                # no trial can raise it, so none is spent on it
                why = f"causal confidence {causal:.2f} is below {self.at.causal:g}"
            candidate = replace(candidate, status="needs_evidence", reason=why)
        else:
            candidate = replace(candidate, status="validated", reason="waits for a trial")
        self.pool.add_candidate(candidate)
        self.pool.audit(self.ws.task_no, "proposed", candidate=candidate.id, op=op, status=candidate.status)
        if candidate.status == "validated":
            self._immediate_trial(candidate)

    def _immediate_trial(self, candidate: Candidate) -> None:
        """The trial policies that do not wait for another task (AMB-1)."""
        policy = self.ws.config.trial_policy
        trial = None
        if policy == "source":
            trial = replace(self._as_trial(candidate, 1.0), cost=0.0, environment=f"{self.family}/source")
        elif policy == "replay":
            trial = self.rehearse(candidate, self.outcome.score, self.steps)
        if trial is not None:
            self.pool.add_trial(candidate.id, trial, task_no=self.ws.task_no, family=self.family, policy=policy)
            self._consider(candidate)

    def _operation(self, procedure: Procedure, reference: tuple[str, int, Procedure] | None) -> tuple[Op | None, Procedure]:
        """Which change this is (METHODS.md 4.7), and the procedure in the form that the change asks for."""
        if reference is None:
            return "create", procedure
        sop_id, _, target = reference
        procedure = with_inherited(procedure, target)
        narrower = [c for c in procedure.conditions if c.casefold() not in {t.casefold() for t in target.conditions}]
        if narrower:
            conditions = tuple(dict.fromkeys([*target.conditions, *narrower]))
            return "specialize", replace(procedure, conditions=conditions, variant_of=sop_id)
        procedure = replace(procedure, conditions=target.conditions, variant_of=target.variant_of)
        return (None if procedure.structure() == target.structure() else "update"), procedure

    def _waits_already(self, procedure: Procedure, op: Op) -> bool:
        """Whether a candidate or an active procedure of this structure and these conditions is there, or trials have already
        refused this very update."""
        waiting: tuple[CandidateStatus, ...] = ("validated", "needs_evidence")
        over: tuple[CandidateStatus, ...] = (*waiting, "rejected") if op == "update" else waiting
        return self.pool.known(procedure, over, active=op != "update")

    # --- warnings -----------------------------------------------------------------------------------------------------
    def _attach_lessons(self, promoted: tuple[str, int] | None) -> None:
        """Lessons go to the procedures that were used, as new revisions, without trials (SEPM-R32)."""
        lessons = [extraction.as_warning(f, self.ws.task_no) for f in self.failures]
        if not lessons:
            return
        used = dict(self.ws.used)
        if promoted is not None:
            used[promoted[0]] = promoted[1]
        active = {sop: version for sop, version in used.items() if self.pool.head(sop) is not None}
        if not active:
            for lesson in lessons:
                self.pool.keep_lesson(self.family, lesson, self.ws.task_no)
        for sop_id, version in sorted(active.items()):
            self._warn(sop_id, version, lessons)

    def _warn(self, sop_id: str, version: int, lessons: Sequence[ConditionalWarning]) -> None:
        """Compare-and-swap against the retrieved revision; if the head has moved on, once more against the new one."""
        for base in (version, (self.pool.head(sop_id) or (0, False))[0]):
            procedure, added = _merged(self.pool.get(sop_id, base), lessons)
            if not added:
                return
            made = self.pool.commit_version(sop_id, base, procedure, "warning", self.ws.task_no)
            if made is not None:
                self.pool.audit(self.ws.task_no, "warned", sop=sop_id, version=made, warnings=added)
                return

    # --- retirement ---------------------------------------------------------------------------------------------------
    def retire(self) -> None:
        """Propose to delete what does clearly worse than its family (AMB-18). After the task itself has been counted."""
        mean = self.pool.baselines.family(self.family).mean_score
        for sop_id in sorted(self.ws.used):
            head = self.pool.head(sop_id)
            if head is None or not head[1]:
                continue
            with_it = self.pool.baselines.structure(sop_id, head[0])
            uses, rate = with_it.runs, with_it.successes / max(1, with_it.runs)
            if uses < RETIRE_USES or rate >= RETIRE_BELOW or rate >= mean - RETIRE_MARGIN:
                continue
            procedure = self.pool.get(sop_id, head[0])
            safety = assess_delete(procedure)
            reason = f"{rate:.2f} of {uses} uses succeeded, the family's mean score is {mean:.2f}"
            allowed = safety.allowed(self.at.risk)
            candidate = Candidate(
                self.pool.next_candidate_id(), "delete", sop_id, head[0], self.family, procedure, True, 1.0, 0.0, 0.0,
                safety.risk,
                self.ws.task_no, "promoted" if allowed else "safety_rejected", reason,
            )  # fmt: skip
            self.pool.add_candidate(candidate)
            if allowed and self.pool.retire(sop_id, head[0]):
                self.pool.audit(self.ws.task_no, "retired", sop=sop_id, version=head[0], reason=reason)


def with_inherited(candidate: Procedure, target: Procedure) -> Procedure:
    """A revision keeps its target's exclusions, warnings and the prerequisites between steps that survive."""
    exclusions = tuple(dict.fromkeys([*target.exclusions, *candidate.exclusions]))
    merged = _merged(replace(candidate, warnings=target.warnings), candidate.warnings)[0]
    return extraction.with_kept_edges(replace(merged, exclusions=exclusions), target)


def _merged(procedure: Procedure, lessons: Sequence[ConditionalWarning]) -> tuple[Procedure, int]:
    """`procedure` with the lessons that it does not have yet, and how many those are; alike ones are one, ten at most."""
    held = list(procedure.warnings)
    added = 0
    for lesson in lessons:
        vector = embed(lesson.text)
        if len(held) < MAX_WARNINGS and all(bounded_similarity(vector, embed(w.text)) < SAME_WARNING for w in held):
            held.append(lesson)
            added += 1
    return procedure.with_warnings(held), added
