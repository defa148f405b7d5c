"""Goal, plan and state divergence (SEPM paper 4.2, equations 5 to 7, and B.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.contracts import Evidence
from methods.sepm.conditions import Key, canonical
from methods.sepm.graph import Edge, normal
from methods.text.hash256 import bounded_similarity, embed


@dataclass(frozen=True)
class PlanView:
    """A plan as equation 6 sees it: action by persistent id, and directed edges. Owner and status take no part."""

    actions: Mapping[str, str]
    edges: frozenset[Edge] = frozenset()


@dataclass(frozen=True)
class Divergence:
    """What was found for one agent at one step; a part that could not be observed is None and never triggers (SEPM-R20)."""

    goal: float | None = None
    plan: float | None = None
    conflicts: tuple[Key, ...] = ()
    reasons: tuple[str, ...] = field(default=())

    @property
    def triggered(self) -> bool:
        """z of equation 7."""
        return bool(self.reasons)


def goal_divergence(goal: str, assigned: str, consistency: float, beta: float = 0.55) -> float:
    """D_g of equation 5; `consistency` is J_goal in [0, 1]."""
    similarity = bounded_similarity(embed(goal), embed(assigned))
    return beta * (1.0 - similarity) + (1.0 - beta) * (1.0 - consistency)


def plan_divergence(a: PlanView, b: PlanView) -> float:
    """D_p of equation 6 in [0, 1]: nodes are matched by identifier alone, a missing node has a label of its own."""
    nodes = a.actions.keys() | b.actions.keys()
    edges = a.edges | b.edges
    different = sum(_label(a, node) != _label(b, node) for node in nodes)
    return (different + len(a.edges ^ b.edges)) / max(1, len(nodes) + len(edges))


def _label(plan: PlanView, node: str) -> str | None:
    action = plan.actions.get(node)
    return None if action is None else normal(action)


def state_conflicts(
    evidence: Mapping[Key, Sequence[Evidence]], relevant: Iterable[Key], threshold: float = 0.70
) -> tuple[Key, ...]:
    """C_s of equation 7: the relevant keys on which qualified evidence disagrees, sorted.

    Of each source what it observed last counts (B.3): that the world changed is no conflict. Two values that one source gave
    for the same moment are one.
    """
    return tuple(sorted(key for key in set(relevant) if _disagree(evidence.get(key, ()), threshold)))


def _disagree(items: Iterable[Evidence], threshold: float) -> bool:
    last: dict[str, tuple[tuple[int, int], set[str]]] = {}
    for e in items:
        if e.confidence < threshold:
            continue
        at, values = last.get(e.source, (e.observed_at, set()))
        if e.observed_at > at:
            at, values = e.observed_at, set()
        if e.observed_at == at:
            values.add(canonical(e.value))
        last[e.source] = at, values
    return len({value for _, values in last.values() for value in values}) > 1


def classify(
    goal: float | None, plan: float | None, conflicts: tuple[Key, ...], tau_g: float = 0.35, tau_p: float = 0.40
) -> Divergence:
    """z of equation 7: goal and plan trigger strictly above their thresholds (SEPM-R15, R17, R18)."""
    reasons = []
    if conflicts:
        reasons.append("state")
    if goal is not None and goal > tau_g:
        reasons.append("goal")
    if plan is not None and plan > tau_p:
        reasons.append("plan")
    return Divergence(goal, plan, conflicts, tuple(reasons))
