"""Realignment: who is told what when goals, plans or states diverge (SEPM paper 4.2; METHODS.md 4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from methods.sepm.conditions import Key
from methods.sepm.graph import TaskGraph

Signature = tuple[str, tuple[str, ...], tuple[Key, ...], str]  # agent, reasons, keys, node


@dataclass(frozen=True)
class Correction:
    """A message for one agent; what it is about makes its signature."""

    agent: str
    reasons: tuple[str, ...]
    text: str
    node_id: str = ""
    keys: tuple[Key, ...] = ()

    @property
    def signature(self) -> Signature:
        return self.agent, self.reasons, self.keys, self.node_id


@dataclass
class Outbox:
    """Corrections on their way. Each is delivered once, in the next prompt of its agent; the same one is not sent again before
    it is cleared (SEPM-R19)."""

    pending: dict[str, list[Correction]] = field(default_factory=dict)
    sent: set[Signature] = field(default_factory=set)

    def post(self, corrections: Iterable[Correction]) -> list[Correction]:
        """Queue what was not sent yet; returns what was queued."""
        queued = []
        for correction in corrections:
            if correction.signature not in self.sent:
                self.sent.add(correction.signature)
                self.pending.setdefault(correction.agent, []).append(correction)
                queued.append(correction)
        return queued

    def deliver(self, agent: str) -> list[Correction]:
        """What `agent` has to know before its next action; nothing of it stays."""
        return self.pending.pop(agent, [])

    def clear(self, agent: str, reasons: Iterable[str]) -> None:
        """These divergences of `agent` are over: the same correction may be sent again later."""
        over = set(reasons)
        self.sent = {s for s in self.sent if not (s[0] == agent and over & set(s[1]))}


def affected(graph: TaskGraph, faults: Iterable[str], agent: str) -> list[str]:
    """Who must hear of it: `agent`, and the owners of the steps at fault and of everything that depends on them.

    A fault that is no step of the plan (an action of the agent's own) concerns nobody else.
    """
    reached: set[str] = set()
    for node_id in faults:
        if node_id in graph.nodes:
            reached |= {node_id} | graph.descendants(node_id)
    return list(dict.fromkeys([agent, *graph.owners(reached)]))


def goal_text(assigned: str, objective: str) -> str:
    """A goal correction restates the assignment; it costs no model call."""
    return f"Your goal has drifted. Your assignment is: {assigned}. It serves the objective: {objective}"


def plan_text(assigned: str, missing: Sequence[str], off_plan: str = "") -> str:
    """A plan correction restates the assigned step and the prerequisites that are not verified."""
    text = f"'{off_plan}' is not part of your plan. " if off_plan else "Your plan differs from the shared one. "
    text += f"Go on with: {assigned}."
    return text + (f" Not verified yet: {'; '.join(missing)}." if missing else "")


def state_text(key: Key, value: str | None, needs: str) -> str:
    """A state correction gives the resolved value, or asks for the observation that would resolve the key."""
    name = f"{key[0]}.{key[1]}"
    return f"Reports about {name} differ; it is {value}." if value is not None else f"Reports about {name} differ: get {needs}."
