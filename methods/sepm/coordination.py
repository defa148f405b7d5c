"""Coordination on the explicit task graph: planning, readiness, step status, plan comparison, propagation, replanning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Call, Evidence, Models
from methods.sepm import prompts
from methods.sepm.alignment import affected
from methods.sepm.conditions import Condition, Key, canonical
from methods.sepm.divergence import PlanView, plan_divergence
from methods.sepm.graph import TaskGraph, normal
from methods.sepm.plans import Plan, ask_twice, describe, fallback_plan, read_plan
from methods.sepm.workspace import Workspace
from methods.text.hash256 import slot

NO_NODE = ("none", "null", "")


@dataclass(frozen=True)
class Attribution:
    """Which step a record belongs to, which steps its evidence establishes, and whether the agent itself named the step."""

    node_id: str | None
    established: tuple[str, ...] = ()
    declared: bool = False


@dataclass(frozen=True)
class PlanCheck:
    """D_p for one agent (None: not observed), the steps at fault, the missing prerequisites, and an action outside the plan."""

    value: float | None = None
    faults: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    off_plan: str = ""
    assigned: str = ""


@dataclass
class GraphCoordination:
    """What the explicit representation answers; `methods.sepm.textual` answers the same questions from prose."""

    ws: Workspace
    models: Models
    graph: TaskGraph = field(init=False)
    bound: dict[str, dict[Key, Any]] = field(default_factory=dict)  # step → the facts that established it
    idle: int = 0  # steps in a row without a ready step

    reply_header = prompts.HEADER_RULES

    def __post_init__(self) -> None:
        self.graph = fallback_plan(self.ws.objective, self.ws.team, None, {}).graph()  # until there is a plan

    # --- planning -----------------------------------------------------------------------------------------------------
    def start(self, procedures: Sequence[str], vocabulary: Sequence[str]) -> None:
        """Ask the manager for a plan; the graph it gives, or the fallback (METHODS.md 4.2)."""
        ws = self.ws
        messages = prompts.plan_messages(ws.objective, ws.task.family, sorted(ws.facts), ws.roster, procedures, vocabulary)
        call = Call("sepm.plan", messages, key="planner", phase="plan", agent="manager")
        plan = ask_twice(self.models, call, lambda text: read_plan(text, ws.team, ws.references, ws.names), ws.counters)
        if plan is None:
            best = next(((sop, *found) for sop, found in ws.references.items()), None)
            plan = fallback_plan(ws.objective, ws.team, best, ws.names)
        self._adopt(plan)

    def _adopt(self, plan: Plan) -> None:
        self.graph = plan.graph()
        self.ws.used = {sop: self.ws.references[sop][0] for sop in plan.used}

    def replan(self, problem: str) -> bool:
        """Ask the manager for a revised plan; whether there is one. Unusable answers leave the plan as it is."""
        ws = self.ws
        if ws.replans >= ws.config.max_replans:
            return False
        ws.replans += 1
        messages = prompts.replan_messages(ws.objective, ws.roster, describe(self.graph), ws.last_lines(4), problem)
        call = Call("sepm.replan", messages, key="planner", phase="plan", agent="manager")
        owner = next((m.name for m in ws.team if m.acts), None)
        plan = ask_twice(
            self.models,
            call,
            lambda text: self._readable(read_plan(text, ws.team, ws.references, ws.names, default_agent=owner)),
            ws.counters,
        )
        self.graph.attempts = dict.fromkeys(self.graph.attempts, 0)
        if plan is None:
            return False
        for i in self.graph.revise(plan.nodes, plan.edges):
            self.bound.pop(i, None)
        ws.used |= {sop: ws.references[sop][0] for sop in plan.used}
        return True

    def _readable(self, plan: Plan) -> Plan:
        """Raises GraphError now rather than in `revise`, so that the manager is asked once more."""
        plan.graph()
        return plan

    # --- reading ------------------------------------------------------------------------------------------------------
    def brief(self) -> str:
        """The plan at task start."""
        return f"Shared plan (id, agent, what it needs, what to do):\n{describe(self.graph, with_status=False)}"

    def owned(self, agent: str) -> list[str]:
        """The steps that are assigned to the agent, itself or as one of its group."""
        return self.graph.owned(*self.ws.peers(agent))

    def current(self, agent: str) -> list[str]:
        """The agent's ready steps, else its open ones."""
        mine = self.owned(agent)
        ready = [i for i in self.graph.ready(self.ws.state.holds) if i in mine]
        return ready or [i for i in mine if not self.graph.settled(i)]

    def assignment(self, agent: str) -> str:
        """The text of the agent's current assigned steps; empty where it has none."""
        return "; ".join(self.graph.nodes[i].action for i in self.current(agent))

    def note(self, agent: str) -> list[str]:
        """Own steps and what they wait for, the facts that bear on them, the last records on them."""
        graph, ws = self.graph, self.ws
        ready = graph.ready(ws.state.holds)
        mine = [i for i in self.owned(agent) if not graph.settled(i)]
        lines = []
        now = [i for i in ready if i in mine]
        if now:
            lines.append("Your subtask now: " + "; ".join(f"{i}: {graph.nodes[i].action}" for i in now))
        elif ready:
            lines.append("Nothing of yours is ready. Ready: " + "; ".join(f"{i}: {graph.nodes[i].action}" for i in ready[:3]))
        for i in mine:
            if i not in now and graph.missing(i):
                waits = ", ".join(f"{u} by {graph.nodes[u].agent}" for u in graph.missing(i))
                lines.append(f"{i} ({graph.nodes[i].action}) waits for {waits}")
        lines += self._missing_keys(mine, now)
        relevant = [c for i in (now or ready) for c in (*graph.nodes[i].pre, *graph.nodes[i].post)]
        facts = ws.state.facts_about(relevant)[:6]
        if facts:
            lines.append("Verified: " + "; ".join(f"{key[0]}.{key[1]}={_short(value)}" for key, value in facts))
        near = [u for i in now for u in (*graph.predecessors(i), i)]
        recent = [r for r in ws.blackboard if any(r.on(i) for i in near) and r.agent != agent][-2:]
        lines += [f"{r.agent} did: {r.action} -> {(r.error or r.result)[:100]}" for r in recent]
        return lines

    def _missing_keys(self, mine: Sequence[str], now: Sequence[str]) -> list[str]:
        """With no ready step the missing keys are to be observed (SEPM-R6)."""
        if now:
            return []
        keys = [
            c.text() for i in mine if not self.graph.missing(i) for c in self.graph.nodes[i].pre if not self.ws.state.holds(c)
        ]
        return [f"To be observed first: {', '.join(dict.fromkeys(keys))}"] if keys else []

    def blocked(self, agent: str, action: str) -> str:
        """Why the step that the agent declared has to wait; empty where it need not (SEPM-R6)."""
        node_id = self.ws.seen(agent).node
        if node_id is None or node_id not in self.graph.nodes or self.graph.settled(node_id):
            return ""
        if self.graph.is_ready(node_id, self.ws.state.holds):
            return ""
        self.graph.attempts[node_id] += 1
        waits = [f"prerequisite {u} ({self.graph.nodes[u].action}) is not verified" for u in self.graph.missing(node_id)]
        waits += [f"{c.text()} is not verified" for c in self.graph.nodes[node_id].pre if not self.ws.state.holds(c)]
        return f"{node_id} cannot begin: {'; '.join(waits)}. Do something that is ready."

    def relevant(self, agent: str) -> list[Condition]:
        """The conditions of the agent's steps and of their prerequisites: what is task-relevant for it (equation 7)."""
        graph = self.graph
        mine = set(self.owned(agent))
        near = mine | {u for i in mine for u in graph.predecessors(i)}
        return [c for i in graph.order if i in near for c in (*graph.nodes[i].pre, *graph.nodes[i].post)]

    # --- what a step did ----------------------------------------------------------------------------------------------
    def attribute(self, agent: str, evidence: Sequence[Evidence], error: str | None) -> Attribution:
        """The step of a record: the declared one, else one that its evidence establishes, else the agent's first ready one."""
        declared = self.ws.seen(agent).node
        if declared is not None and (declared in self.graph.nodes or declared.lower() in NO_NODE):
            known = declared in self.graph.nodes
        else:
            known = False
        established = () if error else self._established(evidence)
        if known:
            return Attribution(declared, established, True)
        if self.ws.seen(agent).declared_now:
            return Attribution(established[0] if established else None, established)
        ready = [i for i in self.graph.ready(self.ws.state.holds) if i in self.owned(agent)]
        first = established[0] if established else (ready[0] if ready else None)
        return Attribution(first, established)

    def _established(self, evidence: Sequence[Evidence]) -> tuple[str, ...]:
        """The open steps that this evidence brings about, in topological order: those whose prerequisites are settled; if there
        is none, the first other one, for an outcome that was observed is verified even if the plan expected more before it."""
        found: list[str] = []
        early: list[str] = []
        usable = [e for e in evidence if self.ws.qualifies(e)]
        for i in self.graph.order:
            post = self.graph.nodes[i].post
            if (
                self.graph.settled(i)
                or not any(c.met_by(e.key, e.value) for c in post for e in usable)
                or self._contradicted(post)
            ):
                continue
            waiting = [u for u in self.graph.missing(i) if u not in found]
            (early if waiting else found).append(i)
        return tuple(found or early[:1])

    def _contradicted(self, post: Sequence[Condition]) -> bool:
        """Whether some condition is known and does not hold. What was never observed is no contradiction."""
        return any(self.ws.state.facts_about([c]) and not self.ws.state.holds(c) for c in post)

    def settle(self, found: Attribution, evidence: Sequence[Evidence], error: str | None) -> list[str]:
        """Update the status of steps after a record; the steps that lost their verification."""
        graph, node_id = self.graph, found.node_id
        for i in found.established:
            graph.status[i] = "verified"
            facts = {e.key: e.value for e in evidence if any(c.met_by(e.key, e.value) for c in graph.nodes[i].post)}
            self.bound[i] = facts
        if node_id is not None and node_id not in found.established and not graph.settled(node_id):
            if error:
                graph.attempts[node_id] += 1
                lost = graph.invalidate(node_id)
                return lost
            if graph.nodes[node_id].post:
                graph.status[node_id] = "running"
            elif found.declared and graph.is_ready(node_id, self.ws.state.holds):
                graph.status[node_id] = "verified"  # nothing observable was stated: that it was done is all there is
            else:
                graph.status[node_id] = "done_unverified"
        return self._undone(evidence)

    def _undone(self, evidence: Sequence[Evidence]) -> list[str]:
        """Verified steps whose outcome no longer holds and was not built upon: they fail, with their descendants (SEPM-R5)."""
        lost: list[str] = []
        touched = {e.key for e in evidence}
        for i, facts in list(self.bound.items()):
            after = self.graph.successors(i)
            if self.graph.status[i] != "verified" or not after or any(self.graph.settled(w) for w in after):
                continue
            now = {key: self.ws.state.resolved.get(key) for key in facts if key in touched}
            if any(canonical(now[key]) != canonical(facts[key]) for key in now) and not all(
                self.ws.state.holds(c) for c in self.graph.nodes[i].post
            ):
                lost += self.graph.invalidate(i)
                self.bound.pop(i, None)
        return lost

    def stuck(self) -> str:
        """What is wrong if there has been no ready step for a while; empty otherwise."""
        waiting = self.graph.open() and not self.graph.ready(self.ws.state.holds)
        self.idle = self.idle + 1 if waiting else 0
        if self.idle < self.ws.config.replan_after:
            return ""
        self.idle = 0
        return "no subtask is ready although some are open"

    def failing(self) -> str:
        """What is wrong if a step failed its check often enough for a new plan; empty otherwise."""
        for i in self.graph.open():
            if self.graph.attempts[i] >= self.ws.config.replan_after:
                return f"{i} ({self.graph.nodes[i].action}) failed its check {self.graph.attempts[i]} times"
        return ""

    # --- comparing ----------------------------------------------------------------------------------------------------
    def check_plan(self, agent: str, action: str) -> PlanCheck:
        """D_p of the agent's local plan against its assigned subgraph, after its action was taken in."""
        seen = self.ws.seen(agent)
        if seen.node is None and seen.plan is None:
            return PlanCheck()
        actions, edges = self._assigned(agent)
        reference = PlanView(dict(actions), frozenset(edges))
        local_actions, local_edges = dict(actions), set(edges)
        faults: list[str] = []
        missing: list[str] = []
        off_plan = ""
        if seen.plan is not None:
            local_actions, local_edges, faults = self._stated(agent, actions, edges)
        elif seen.node not in self.graph.nodes:
            local = f"local:{slot(normal(action))[0]}"
            local_actions[local] = action
            faults, off_plan = [local], action
        else:
            for u in self.graph.missing(seen.node):
                missing.append(f"{u} ({self.graph.nodes[u].action})")
                local_actions.pop(u, None)
                local_edges = {edge for edge in local_edges if u not in edge}
                faults = [seen.node]
        value = plan_divergence(PlanView(local_actions, frozenset(local_edges)), reference)
        return PlanCheck(value, tuple(faults), tuple(missing), off_plan, seen.assigned or self.assignment(agent))

    def _assigned(self, agent: str) -> tuple[dict[str, str], set[tuple[str, str]]]:
        """𝒢_{τ,a}: the agent's steps, their direct prerequisites, and the edges among them (AMB-9)."""
        mine = set(self.owned(agent))
        near = mine | {u for i in mine for u in self.graph.predecessors(i)}
        actions = {i: self.graph.nodes[i].action for i in self.graph.order if i in near}
        return actions, {(u, w) for u, w in self.graph.edges if u in near and w in near}

    def _stated(
        self, agent: str, actions: dict[str, str], edges: set[tuple[str, str]]
    ) -> tuple[dict[str, str], set[tuple[str, str]], list[str]]:
        """A plan that the agent wrote down. Steps that are settled need not be repeated in it."""
        stated = self.ws.seen(agent).plan
        assert stated is not None
        local, mine = dict(stated[0]), self.owned(agent)
        local_edges = set(stated[1])
        for i, text in actions.items():
            if i not in local and (self.graph.settled(i) or i not in mine):
                local[i] = text
        local_edges |= {(u, w) for u, w in edges if self.graph.settled(u) and u in local and w in local}
        different = [i for i in local.keys() | actions.keys() if normal(local.get(i, "")) != normal(actions.get(i, ""))]
        different += [w for _, w in local_edges ^ edges]
        return local, local_edges, sorted(set(different))

    def affected(self, agent: str, check: PlanCheck) -> list[str]:
        """The agents that a correction must reach: by the edges of the graph."""
        reached = affected(self.graph, check.faults, agent)
        return list(dict.fromkeys(name for one in reached for name in self.ws.peers(one)))

    def plain(self) -> dict[str, Any]:
        return self.graph.plain()


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical(value)
    return text[:60]
