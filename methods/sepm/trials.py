"""The trial policy `replay`: the same task once more in a fresh world, with the candidate shown (AMB-1).

It is compared with the episode that has just been played, from which it differs by the candidate. It keeps the task and its
seed, the host, the models, the step budget, the procedures that were shown (an update stands in the place of the revision that it
replaces) and the plan that the agents were told at the start. It has none of SEPM's hooks: no line of JSON, notes, gate,
corrections or new plan, which answer what happens in an episode and do not belong to it beforehand.

It costs an episode a candidate, which the paper's token counts exclude (METHODS.md 4.11); its model calls are of the ledger's
phase `validate`.
"""

from __future__ import annotations

from harness.contracts import Guidance, MemoryServices, Trajectory
from methods.sepm.conditions import bind
from methods.sepm.procedure import Procedure, render_all
from methods.sepm.promotion import Trial
from methods.sepm.store import Candidate
from methods.sepm.workspace import Workspace
from methods.text.hash256 import tokens


def rehearse(services: MemoryServices, ws: Workspace, candidate: Candidate, score: float, steps: int) -> Trial | None:
    """Play `ws.task` again with `candidate`; None where the harness offers no second world. `score` and `steps` are those of the
    recorded episode: the baseline (METHODS.md 4.7)."""
    if services.rehearse is None:
        return None
    trajectory, outcome = services.rehearse(guidance_with(candidate, ws))
    share = matched_in(candidate.procedure, ws, trajectory)
    return Trial(
        task_id=ws.task.task_id,
        success=outcome.success,
        r_candidate=outcome.score,
        r_baseline=score,
        cost=max(0, len(trajectory.turns) - steps) / services.max_steps,
        state_verified=any(ws.qualifies(e) for turn in trajectory.turns for e in turn.result.evidence),
        causal_supported=share >= ws.config.causal,
        environment=f"{ws.task.family}/replay",
    )


def guidance_with(candidate: Candidate, ws: Workspace) -> Guidance:
    """What the agents were told at the start of the episode, and the candidate."""
    replaced = candidate.target if candidate.op == "update" else None
    entries = [(candidate.procedure, candidate.id, "provisional")]
    entries += [
        (procedure, f"{sop} v{version}" if version else sop, "" if version else "provisional")
        for sop, (version, procedure) in ws.references.items()
        if sop != replaced
    ]
    return Guidance(procedures=render_all(entries, ws.config.context_budget_chars), brief=ws.brief)


def matched_in(procedure: Procedure, ws: Workspace, trajectory: Trajectory) -> float:
    """The share of the procedure's steps whose outcome the episode's evidence shows; by words where a step states none."""
    good = [turn for turn in trajectory.turns if not turn.result.error]
    facts = [e for turn in good for e in turn.result.evidence if ws.qualifies(e)]
    hits = 0
    for step in procedure.steps:
        if step.post:
            hits += any(c.bound(ws.names).met_by(e.key, e.value) for c in step.post for e in facts)
        else:
            said = set(tokens(bind(step.instruction, ws.names)))
            hits += any(len(said & set(tokens(turn.action))) * 2 >= len(set(tokens(turn.action))) for turn in good)
    return hits / len(procedure.steps) if procedure.steps else 0.0
