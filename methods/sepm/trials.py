"""The trial policy `replay`: the same task once more in a fresh world, with the candidate shown (AMB-1).

It costs an episode a candidate, which the paper's token counts exclude (METHODS.md 4.11); its model calls are of the ledger's
phase `validate`.
"""

from __future__ import annotations

from harness.contracts import Guidance, MemoryServices, Trajectory
from methods.sepm.conditions import bind
from methods.sepm.procedure import Procedure, render
from methods.sepm.promotion import Trial
from methods.sepm.store import Candidate, PoolStore
from methods.sepm.workspace import Workspace
from methods.text.hash256 import tokens


def rehearse(services: MemoryServices, ws: Workspace, candidate: Candidate, pool: PoolStore) -> Trial | None:
    """Play `ws.task` again with `candidate`; None where the harness offers no second world. The baseline is the family's."""
    if services.rehearse is None:
        return None
    guidance = Guidance(procedures=(render(candidate.procedure, candidate.id, note="provisional"),))
    trajectory, outcome = services.rehearse(guidance)
    reward, steps, runs = pool.baseline(ws.task.family, without=candidate.id)
    share = matched_in(candidate.procedure, ws, trajectory)
    return Trial(
        task_id=ws.task.task_id,
        success=outcome.success,
        r_candidate=outcome.score,
        r_baseline=reward if runs else 0.0,
        cost=max(0.0, len(trajectory.turns) - steps) / services.max_steps if runs else 0.0,
        state_verified=any(ws.qualifies(e) for turn in trajectory.turns for e in turn.result.evidence),
        causal_supported=share >= ws.config.causal,
        environment=f"{ws.task.family}/replay",
        no_baseline=not runs,
    )


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
