"""The task graph: steps, the prerequisites between them, and what is known of each step (SEPM paper 3, B.4).

A directed acyclic graph; an edge (u, w) says that u is a prerequisite of w. Identifiers persist over revisions. Agent and
status are metadata: they take no part in comparing plans (SEPM-R1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from methods.sepm.conditions import Condition, conditions_of

Status = Literal["pending", "running", "done_unverified", "verified", "failed", "skipped"]
Edge = tuple[str, str]
Holds = Callable[[Condition], bool]

MAX_NODES, MAX_EDGES = 500, 2000
SETTLED: frozenset[Status] = frozenset({"verified", "skipped"})


class GraphError(ValueError):
    """A graph that is no task graph: the message names the node or edge at fault."""


@dataclass(frozen=True)
class StepSource:
    """The step of a procedure revision that a node was made from."""

    sop_id: str
    version: int
    step_id: str


@dataclass(frozen=True)
class PlanNode:
    """A step of the plan: `action` is its description, `agent` its owner; `pre` and `post` are conditions on the state."""

    id: str
    action: str
    agent: str
    post: tuple[Condition, ...] = ()
    pre: tuple[Condition, ...] = ()
    source: StepSource | None = None


def normal(action: str) -> str:
    """An action for comparison: lower case, single spaces (METHODS.md 4.5)."""
    return " ".join(action.lower().split())


def topological(ids: Sequence[str], edges: Iterable[Edge]) -> list[str]:
    """`ids` in an order in which prerequisites come first, else in the given order. Raises GraphError naming a cycle."""
    waiting: dict[str, int] = dict.fromkeys(ids, 0)
    after: dict[str, list[str]] = {node: [] for node in ids}
    for u, w in edges:
        waiting[w] += 1
        after[u].append(w)
    place = {node: number for number, node in enumerate(ids)}
    free = [node for node in ids if not waiting[node]]
    found: list[str] = []
    while free:
        node = free.pop(0)
        found.append(node)
        for w in after[node]:
            waiting[w] -= 1
            if not waiting[w]:
                free.append(w)
        free.sort(key=place.__getitem__)
    if len(found) < len(ids):
        raise GraphError(f"the prerequisites of {', '.join(sorted(set(ids) - set(found))[:5])} form a cycle")
    return found


def check(ids: Sequence[str], edges: Sequence[Edge]) -> None:
    """Raise GraphError unless these are the nodes and edges of a task graph (SEPM-R3)."""
    if len(ids) > MAX_NODES or len(edges) > MAX_EDGES:
        raise GraphError(f"{len(ids)} steps and {len(edges)} edges; at most {MAX_NODES} and {MAX_EDGES} are allowed")
    known = set(ids)
    if len(known) < len(ids):
        raise GraphError(f"step {next(i for i in ids if ids.count(i) > 1)} occurs twice")
    seen: set[Edge] = set()
    for u, w in edges:
        if u not in known or w not in known:
            raise GraphError(f"edge {u} -> {w} names an unknown step")
        if u == w:
            raise GraphError(f"step {u} is its own prerequisite")
        if (u, w) in seen:
            raise GraphError(f"edge {u} -> {w} occurs twice")
        seen.add((u, w))
    topological(ids, edges)


class TaskGraph:
    """The current plan of a task. `version` counts revisions; `status` and `attempts` are by node id."""

    def __init__(self, nodes: Sequence[PlanNode], edges: Iterable[Edge]) -> None:
        """Raises GraphError for anything that is no acyclic graph without loops and duplicates."""
        self.version = 1
        self.status: dict[str, Status] = {}
        self.attempts: dict[str, int] = {}
        self._used: set[str] = set()
        self._set(nodes, tuple(edges))

    def _set(self, nodes: Sequence[PlanNode], edges: tuple[Edge, ...]) -> None:
        check([node.id for node in nodes], edges)
        self.nodes = {node.id: node for node in nodes}
        self.edges = edges
        self._used |= set(self.nodes)
        self._before: dict[str, list[str]] = {i: [] for i in self.nodes}
        self._after: dict[str, list[str]] = {i: [] for i in self.nodes}
        for u, w in edges:
            self._before[w].append(u)
            self._after[u].append(w)
        self.order = topological(list(self.nodes), edges)
        self.status = {i: self.status.get(i, "pending") for i in self.nodes}
        self.attempts = {i: self.attempts.get(i, 0) for i in self.nodes}

    # --- reading ------------------------------------------------------------------------------------------------------
    def predecessors(self, node_id: str) -> list[str]:
        return self._before[node_id]

    def successors(self, node_id: str) -> list[str]:
        return self._after[node_id]

    def descendants(self, node_id: str) -> set[str]:
        """Every node that needs `node_id`, directly or not; without `node_id` itself."""
        found: set[str] = set()
        front = [node_id]
        while front:
            for w in self._after[front.pop()]:
                if w not in found:
                    found.add(w)
                    front.append(w)
        return found

    def settled(self, node_id: str) -> bool:
        return self.status[node_id] in SETTLED

    def missing(self, node_id: str) -> list[str]:
        """The direct prerequisites that are not verified."""
        return [u for u in self._before[node_id] if not self.settled(u)]

    def is_ready(self, node_id: str, holds: Holds) -> bool:
        """SEPM-R6: open, every prerequisite verified, and its own preconditions hold in the verified state."""
        return not self.settled(node_id) and not self.missing(node_id) and all(holds(pre) for pre in self.nodes[node_id].pre)

    def ready(self, holds: Holds) -> list[str]:
        """The ready steps in topological order."""
        return [i for i in self.order if self.is_ready(i, holds)]

    def open(self) -> list[str]:
        return [i for i in self.order if not self.settled(i)]

    def owned(self, *agents: str) -> list[str]:
        return [i for i in self.order if self.nodes[i].agent in agents]

    def owners(self, node_ids: Iterable[str]) -> list[str]:
        """The agents of these nodes, each once, in topological order of their first node."""
        wanted = set(node_ids)
        return list(dict.fromkeys(self.nodes[i].agent for i in self.order if i in wanted))

    # --- changing -----------------------------------------------------------------------------------------------------
    def invalidate(self, node_id: str, status: Status = "failed") -> list[str]:
        """A step failed or was modified: it and its descendants lose their verification, nothing else does (SEPM-R5).

        Returns the ids that were verified and no longer are, in topological order.
        """
        lost = {i for i in self.descendants(node_id) | {node_id} if self.status[i] == "verified"}
        for i in lost:
            self.status[i] = "pending"
        self.status[node_id] = status
        return [i for i in self.order if i in lost]

    def fresh_id(self) -> str:
        """An identifier that no step of this task ever had."""
        number = len(self._used) + 1
        while f"n{number}" in self._used:
            number += 1
        return f"n{number}"

    def revise(self, nodes: Sequence[PlanNode], edges: Sequence[Edge]) -> list[str]:
        """Replace the plan (SEPM-R4): unchanged steps keep identifier and status, new ones get identifiers never used before.

        A step that says the same as before keeps where it comes from, and its conditions where the new one leaves them out. One
        with another action or other conditions is modified: it and its descendants lose their verification, as does a verified
        step that gained an unverified prerequisite. Returns the ids that lost it. Raises GraphError.
        """
        check([node.id for node in nodes], list(edges))
        renamed = self._identify(nodes)
        before = {i: self.nodes[i] for i in self.nodes}
        had = set(self.edges)
        moved = [_continued(replace(node, id=renamed[node.id]), before.get(renamed[node.id])) for node in nodes]
        self._set(moved, tuple((renamed[u], renamed[w]) for u, w in edges))
        self.version += 1
        changed = [i for i in self.order if i in before and _content(before[i]) != _content(self.nodes[i])]
        gained = [w for u, w in self.edges if (u, w) not in had and self.status[w] == "verified" and not self.settled(u)]
        lost: set[str] = set()
        for i in [*changed, *gained]:
            lost |= set(self.invalidate(i, "pending"))
        return [i for i in self.order if i in lost]

    def _identify(self, nodes: Sequence[PlanNode]) -> dict[str, str]:
        """Given id → persistent id."""
        renamed = {node.id: node.id for node in nodes if node.id in self.nodes}
        taken = set(renamed.values())
        by_action = {normal(node.action): i for i, node in self.nodes.items() if i not in taken}
        for node in nodes:
            if node.id in renamed:
                continue
            same = by_action.pop(normal(node.action), None)
            if same is not None:
                renamed[node.id] = same
            elif node.id not in self._used:
                renamed[node.id] = node.id
            else:
                renamed[node.id] = self.fresh_id()
            self._used.add(renamed[node.id])
        return renamed

    # --- as data ------------------------------------------------------------------------------------------------------
    def plain(self) -> dict[str, Any]:
        """JSON-able: nodes in topological order with their metadata, edges, version."""
        return {
            "version": self.version,
            "nodes": [
                {
                    "id": i,
                    "action": self.nodes[i].action,
                    "agent": self.nodes[i].agent,
                    "status": self.status[i],
                    "attempts": self.attempts[i],
                    "pre": [condition.plain() for condition in self.nodes[i].pre],
                    "post": [condition.plain() for condition in self.nodes[i].post],
                }
                for i in self.order
            ],
            "edges": [list(edge) for edge in self.edges],
        }


def _continued(node: PlanNode, old: PlanNode | None) -> PlanNode:
    """A step of a revised plan; one that says what `old` said keeps its source, and the conditions that it leaves out."""
    if old is None or normal(old.action) != normal(node.action):
        return node
    return replace(node, post=node.post or old.post, pre=node.pre or old.pre, source=old.source or node.source)


def _content(node: PlanNode) -> tuple[Any, ...]:
    """What makes a step the step that it is: what is done, and the conditions before and after."""
    return normal(node.action), conditions_of(node.pre), conditions_of(node.post)
