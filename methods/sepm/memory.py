"""SEPM: self-evolving procedural memory on task graphs (arXiv 2610.14515), as a memory method. The hooks; the rest has rooms.

Retrieved procedures become a plan on a shared blackboard; each step's evidence settles the state; what diverges is corrected;
what was verified becomes procedures. The manager, the judge and the extractor are model calls beside the host's own agents,
whose orchestration stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.contracts import (
    TIER_INFERENCE,
    Evidence,
    Guidance,
    Member,
    MemoryServices,
    Outcome,
    Review,
    Task,
    Trajectory,
    Turn,
)
from methods.base import MemoryMethod
from methods.sepm import describe, header, trials
from methods.sepm.aligner import Aligner
from methods.sepm.blackboard import MAX_EVIDENCE, Record
from methods.sepm.conditions import kind_of, plain_text
from methods.sepm.config import SepmConfig
from methods.sepm.coordination import GraphCoordination
from methods.sepm.evidence import VerifiedState
from methods.sepm.goal_judge import GoalJudge
from methods.sepm.learning import Learner
from methods.sepm.notes import Notes
from methods.sepm.procedure import Procedure, render_all
from methods.sepm.promotion import Trial
from methods.sepm.retrieval import compatible
from methods.sepm.store import Candidate, PoolStore
from methods.sepm.textual import TextCoordination
from methods.sepm.workspace import Workspace
from methods.text.hash256 import tokens

LONGEST = 1000  # characters of an observation or result in a record


class Sepm(MemoryMethod):
    """The full method, its ablations and its textual control, by configuration (METHODS.md 4.10)."""

    Config = SepmConfig
    name = "sepm"
    version = "1-A"
    inspect = staticmethod(describe.inspect)
    diagram = staticmethod(describe.diagram)

    def __init__(self, config: SepmConfig, services: MemoryServices) -> None:
        super().__init__(config, services)
        self.pool = PoolStore(services.db, services.note)
        self.ws: Workspace | None = None

    def open(self) -> None:
        self.pool.open()

    # --- task start ---------------------------------------------------------------------------------------------------
    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        self.ws = None
        if not self.config.blackboard:
            return Guidance()
        ws = Workspace(
            task=task,
            task_no=self.pool.begin_task(task.task_id, task.family),
            facts=facts,
            team=tuple(team),
            config=self.config,
            judge=GoalJudge(self.services.models, self.config.judge_calls),
            state=VerifiedState(self.config.conf),
        )
        entries = self._retrieve(ws) if self.config.procedural else []
        shown = render_all(entries, self.config.context_budget_chars)
        kind = TextCoordination if self.config.graph == "text" else GraphCoordination
        self.coordination: GraphCoordination | TextCoordination = kind(ws, self.services.models)
        self.aligner = Aligner(ws, self.coordination, self.services.models)
        self.ws = ws  # before the first call: a limit may end the task while it is planned, and it is counted in any case
        known = self.pool.attributes() if self.config.procedural else []
        self.coordination.start(shown, [f"{entity}.{attribute}={value}" for entity, attribute, value in known])
        ws.brief = self.coordination.brief()
        self.notes = Notes(self.services.note)
        self.notes.plan(0, self.coordination.plain())
        return Guidance(procedures=shown, brief=ws.brief, reply_header=self.coordination.reply_header)

    def _retrieve(self, ws: Workspace) -> list[tuple[Procedure, str, str]]:
        """ℛ(q) with the revisions kept as references (SEPM-R14), and the candidate on trial in the place that it claims."""
        config = self.config
        hits = self.pool.search(ws.task.key, ws.facts, config.k, adaptive=config.adaptive, cue_match=config.cue_match)
        found = {hit.sop_id: (hit.version, self.pool.get(hit.sop_id, hit.version)) for hit in hits}
        candidate = self._candidate_on_trial(ws, found) if config.trial_policy == "probation" else None
        ws.provisional = candidate
        if candidate is None:
            ws.references = found
            return [(procedure, f"{sop} v{version}", "") for sop, (version, procedure) in found.items()]
        if candidate.op == "update" and candidate.target in found:
            del found[str(candidate.target)]
        ws.references = {candidate.id: (0, candidate.procedure), **found}
        return [
            (procedure, f"{sop} v{version}" if version else sop, "" if version else "provisional")
            for sop, (version, procedure) in ws.references.items()
        ]

    def _candidate_on_trial(self, ws: Workspace, found: dict[str, tuple[int, Procedure]]) -> Candidate | None:
        """First in, first out, one a task, and only while the family has fewer than K procedures (METHODS.md 4.7)."""
        if sum(procedure.family == ws.task.family for _, procedure in found.values()) >= self.config.k:
            return None
        waiting = self.pool.candidates(ws.task.family, "validated")
        return next((c for c in waiting if compatible(c.procedure.conditions, c.procedure.exclusions, ws.facts)), None)

    # --- each step ----------------------------------------------------------------------------------------------------
    def before_action(self, agent: Member, step: int) -> str:
        ws = self.ws
        if ws is None:
            return ""
        lines = [*self.coordination.note(agent.name), *self._warnings(ws, agent.name)]
        looks = sorted(".".join(key) for key in ws.state.reobserve)
        if looks and self.config.alignment:
            lines.append(f"Look again at: {', '.join(looks[:4])}")
        for correction in ws.outbox.deliver(agent.name):
            lines.append(f"Correction: {correction.text}")
            self.notes.correction(step, correction)
        return "\n".join(lines)

    def _warnings(self, ws: Workspace, agent: str) -> list[str]:
        """Warnings of the procedures in use whose trigger is about what the agent does now."""
        now = set(tokens(self.coordination.assignment(agent)))
        found = []
        for sop_id in ws.used:
            for warning in ws.references[sop_id][1].warnings:
                trigger = {word for word in tokens(warning.trigger) if word not in ws.names}
                if len(trigger & now) * 2 >= len(trigger):
                    found.append(f"Mind: {warning.text}")
        return list(dict.fromkeys(found))[:3]

    def review(self, agent: Member, step: int, text: str) -> Review:
        ws = self.ws
        if ws is None:
            return Review(text)
        found, rest, malformed = header.split(text)
        ws.counters.add("header.malformed", int(malformed))
        ws.counters.add("header.given" if found is not None else "header.missing", int(bool(rest.strip()) and not malformed))
        seen = ws.seen(agent.name)
        seen.hear(found, self.coordination.assignment(agent.name))
        seen.claims = tuple(
            Evidence(
                (ws.instance(c.entity), c.attribute),
                c.value,
                TIER_INFERENCE,
                agent.name,
                (step + 1, MAX_EVIDENCE + number),
                confidence,
            )
            for number, (c, confidence) in enumerate(found.claims if found is not None else ())
        )
        if self.config.gate_not_ready and rest.strip() and step not in ws.gated_at:
            reason = self.coordination.blocked(agent.name, rest)
            if reason:
                ws.gated_at.add(step)
                ws.counters.add("gate.blocked")
                return Review(rest, reason)
        return Review(rest)

    def after_action(self, turn: Turn) -> None:
        ws = self.ws
        if ws is None:
            return
        seen = ws.seen(turn.agent)
        external = turn.result.evidence[:MAX_EVIDENCE]
        evidence = (*external, *seen.claims[: MAX_EVIDENCE - len(external)])
        seen.claims = ()
        ws.state.add(evidence)
        found = self.coordination.attribute(turn.agent, evidence, turn.result.error)
        record = Record(
            seq=len(ws.blackboard) + 1,
            step=turn.step,
            agent=turn.agent,
            subtask=seen.assigned or self.coordination.assignment(turn.agent),
            observation=ws.observation[:LONGEST],
            action=turn.action,
            result=turn.result.observation[:LONGEST],
            error=turn.result.error,
            node_id=found.node_id,
            established=found.established,
            declared=found.declared,
            goal=seen.goal if seen.declared_now else None,
            plan={"actions": dict(seen.plan[0]), "edges": sorted(seen.plan[1])} if seen.plan and seen.declared_now else None,
            evidence=evidence,
        )
        ws.blackboard.append(record)
        self.pool.add_record(ws.task_no, record)
        ws.observation = turn.result.observation
        self.coordination.settle(found, evidence, turn.result.error)
        if self.config.alignment:
            self.notes.divergence(turn.step, turn.agent, self.aligner.after_step(turn.agent, turn.action))
        if problem := self.coordination.stuck():
            self.coordination.replan(problem)
        seen.declared_now, seen.node = False, None
        self.notes.plan(turn.step, self.coordination.plain())

    # --- task end -----------------------------------------------------------------------------------------------------
    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        ws, self.ws = self.ws, None
        if ws is None:
            return
        learner = self._learner(ws, trajectory, outcome) if self.config.procedural else None
        try:
            if learner is not None:
                learner.learn()
        finally:  # a limit may end the learning; the task itself is counted in any case
            self._close(ws, trajectory, outcome)
        if learner is not None and self.config.retirement:
            learner.retire()

    def _learner(self, ws: Workspace, trajectory: Trajectory, outcome: Outcome) -> Learner:
        def rehearse(candidate: Candidate, score: float, steps: int) -> Trial | None:
            return trials.rehearse(self.services, ws, candidate, score, steps)

        steps, most = len(trajectory.turns), self.services.max_steps
        return Learner(ws, self.coordination, self.pool, self.services.models, outcome, steps, most, rehearse)

    def _close(self, ws: Workspace, trajectory: Trajectory, outcome: Outcome) -> None:
        """Keep how the task went (SEPM-R7) and in which words the environment spoke."""
        ws.counters.add("sepm.judge_goal.malformed", ws.judge.malformed)
        ws.counters.add("sepm.judge_goal.over_budget", ws.judge.over_budget)
        self.pool.end_task(
            ws.task_no,
            score=outcome.score,
            success=outcome.success,
            status=outcome.status,
            steps=len(trajectory.turns),
            used={sop: version for sop, version in ws.used.items() if version},
            provisional=ws.provisional.id if ws.provisional else None,
            graph=self.coordination.plain(),
            counters=ws.counters.values,
        )
        if self.config.procedural:  # a row without memory remembers nothing
            self._learn_vocabulary(ws)

    def _learn_vocabulary(self, ws: Workspace) -> None:
        """How the environment speaks of the state: the manager of later tasks states conditions in these words."""
        seen: dict[str, tuple[str, str, str]] = {}
        for record in ws.blackboard:
            for e in record.evidence:
                if ws.qualifies(e):
                    value: Any = e.value if not isinstance(e.value, list | tuple | dict) else "…"
                    seen.setdefault(e.key[1], (kind_of(e.key[0]), e.key[1], kind_of(plain_text(value))[:60]))
        self.pool.note_attributes(list(seen.values()))
