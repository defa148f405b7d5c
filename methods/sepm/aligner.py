"""Detect, classify, verify, resolve, realign: after each step, for the agent that acted (SEPM paper 4.2; METHODS.md 4.6)."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contracts import TIER_INFERENCE, Call, Evidence, Models
from methods.sepm import prompts
from methods.sepm.alignment import Correction, goal_text, plan_text, state_text
from methods.sepm.conditions import Key, canonical, plain_text
from methods.sepm.coordination import GraphCoordination, PlanCheck
from methods.sepm.divergence import Divergence, classify, goal_divergence, state_conflicts
from methods.sepm.evidence import resolve
from methods.sepm.jsontext import Malformed, parse_object
from methods.sepm.plans import say
from methods.sepm.textual import TextCoordination
from methods.sepm.workspace import Workspace

MANAGER = "manager"


@dataclass
class Aligner:
    """Compares what an agent showed with what it was assigned, and queues corrections for whom it concerns."""

    ws: Workspace
    coordination: GraphCoordination | TextCoordination
    models: Models

    def after_step(self, agent: str, action: str) -> Divergence:
        """z of equation 7 for the agent that has just acted, and the realignment if it is 1."""
        check = self.coordination.check_plan(agent, action)
        found = classify(self._goal(agent), check.value, self._conflicts(agent), self.ws.config.tau_g, self.ws.config.tau_p)
        if check.off_plan:
            self.ws.counters.add("align.off_plan_action")
        for name in self.ws.peers(agent):
            self.ws.outbox.clear(name, {"goal", "plan", "state"} - set(found.reasons))
        for reason in found.reasons:
            self.ws.counters.add(f"align.{reason}")
        # state first: what the world is decides what a goal or a plan should be
        corrections = self._state(agent, found.conflicts) if found.conflicts else []
        if "goal" in found.reasons:
            text = goal_text(self.ws.seen(agent).assigned, self.ws.objective)
            node = self.ws.seen(agent).node or ""
            corrections += [Correction(name, ("goal",), text, node) for name in self.ws.peers(agent)]
        if "plan" in found.reasons:
            corrections += self._plan(agent, check)
        self.ws.outbox.post(corrections)
        if problem := self.coordination.failing():
            self._replan(problem)
        return found

    def _goal(self, agent: str) -> float | None:
        """D_g, where the agent has said a goal, has an assignment, and the judge has calls left for the two."""
        seen = self.ws.seen(agent)
        if seen.goal is None or not seen.assigned:
            return None
        consistency = self.ws.judge.consistency(seen.goal, seen.assigned, self.ws.objective)
        if consistency is None:
            return None
        return goal_divergence(seen.goal, seen.assigned, consistency, self.ws.config.beta)

    def _conflicts(self, agent: str) -> tuple[Key, ...]:
        relevant = self.coordination.relevant(agent)
        keys = [key for key in self.ws.state.items if any(c.about(key) for c in relevant)]
        return state_conflicts(self.ws.state.items, keys, self.ws.config.conf)

    # --- corrections --------------------------------------------------------------------------------------------------
    def _plan(self, agent: str, check: PlanCheck) -> list[Correction]:
        fault = check.faults[0] if check.faults else ""
        own, peers = plan_text(check.assigned, check.missing, check.off_plan), self.ws.peers(agent)
        found = [Correction(name, ("plan",), own, fault) for name in peers]
        for other in self.coordination.affected(agent, check):
            if other not in peers:
                text = f"{agent} departs from the plan at {fault or 'its part'}, on which yours depends: check before you go on."
                found.append(Correction(other, ("plan",), text, fault))
        return found

    def _state(self, agent: str, keys: tuple[Key, ...]) -> list[Correction]:
        """A conflict that evidence resolves is told to whoever said otherwise; another one is to be observed."""
        found: list[Correction] = []
        for key in keys:
            resolution = resolve(self.ws.state.items[key], self.ws.config.conf)
            value = plain_text(resolution.value) if resolution.resolved else None
            text = state_text(key, value, resolution.needs)
            concerned = {e.source for e in self.ws.state.items[key]} & {member.name for member in self.ws.team}
            peers = self.ws.peers(agent)
            for name in [*peers, *sorted(concerned.difference(peers))]:
                found.append(Correction(name, ("state",), text, value or "", (key,)))
            if not resolution.resolved:
                self._without_external_source(key)
        return found

    def _without_external_source(self, key: Key) -> None:
        """SEPM-R24, AMB-19: first an observation is asked for; if nothing outside the team speaks of the key, negotiate once."""
        asked = self.ws.asked_for[key] = self.ws.asked_for.get(key, 0) + 1
        items = self.ws.state.items[key]
        if asked <= self.ws.config.replan_after or key in self.ws.negotiated or any(e.tier > TIER_INFERENCE for e in items):
            return
        self.ws.negotiated.add(key)
        claims = [f"{e.source}: {canonical(e.value)} (confidence {e.confidence:g})" for e in items[-8:]]
        messages = prompts.negotiate_messages(".".join(key), claims)
        text = say(self.models, Call("sepm.negotiate", messages, key="planner", phase="align", agent=MANAGER))
        try:
            value = parse_object(text)["value"]
        except (Malformed, KeyError):
            self.ws.counters.add("sepm.negotiate.malformed")
            return
        now = max(e.observed_at for e in items)
        # inference: it may guide, it can never be verified
        self.ws.state.add([Evidence(key, value, TIER_INFERENCE, MANAGER, (now[0], now[1] + 1))])
        note = f"Nothing outside the team tells {'.'.join(key)}. Assume {plain_text(value)[:80]} until it is observed."
        self.ws.outbox.post(Correction(name, ("state",), note, "assumed", (key,)) for name in self.ws.everyone)

    def _replan(self, problem: str) -> None:
        if self.coordination.replan(problem):
            self.ws.counters.add("align.replanned")
            text = f"The plan has changed, because {problem}.\n{self.coordination.brief()}"
            self.ws.outbox.post(Correction(name, ("replan",), text, str(self.ws.replans)) for name in self.ws.everyone)
