"""From the manager's answer to a task graph: reading, checking, one repair, and the fallbacks (METHODS.md 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

from harness.contracts import Call, Member, Models
from harness.errors import AgentError
from methods.sepm.conditions import bind, parse_conditions
from methods.sepm.graph import MAX_NODES, Edge, GraphError, PlanNode, StepSource, TaskGraph, check
from methods.sepm.jsontext import Malformed, parse_object, word_list, words
from methods.sepm.procedure import Procedure
from methods.sepm.prompts import Messages, repair_messages

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """A checked plan. `used` are the procedures that it says it follows."""

    nodes: tuple[PlanNode, ...]
    edges: tuple[Edge, ...]
    used: tuple[str, ...] = ()

    def graph(self) -> TaskGraph:
        return TaskGraph(self.nodes, self.edges)


@dataclass
class Counters:
    """What was counted during one task, by name ("sepm.plan.malformed"); shown by `memarena memory`."""

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, times: int = 1) -> None:
        if times:
            self.values[name] = self.values.get(name, 0) + times


def ask_twice(models: Models, call: Call, read: Callable[[str], T], counters: Counters) -> T | None:
    """Ask, read, and on a malformed answer ask once more with what was wrong; None where that fails too.

    A refusal or an overflow of the context counts as an empty answer: the caller has a fallback for it. Limits are not caught.
    """
    messages = call.messages
    for attempt in (1, 2):
        text = say(models, _with_messages(call, messages))
        try:
            return read(text)
        except (Malformed, GraphError) as error:
            counters.add(f"{call.role}.malformed")
            if attempt == 1:
                messages = repair_messages(call.messages, text, str(error))
    counters.add(f"{call.role}.fallback")
    return None


def say(models: Models, call: Call) -> str:
    """The text of an answer; empty where the model refused or the prompt did not fit."""
    try:
        return models.complete(call).text
    except AgentError:
        return ""


def _with_messages(call: Call, messages: Messages) -> Call:
    return Call(call.role, messages, key=call.key, phase=call.phase, agent=call.agent, temperature=call.temperature)


def read_plan(
    text: str,
    team: Sequence[Member],
    references: Mapping[str, tuple[int, Procedure]],
    names: Mapping[str, str],
    *,
    default_agent: str | None = None,
) -> Plan:
    """Raises Malformed or GraphError with a message for the model.

    `references` are the procedures that the plan may follow, by id, and `names` binds their abstract names to the things of the
    task: a subtask that cites a step takes over its preconditions, and the prerequisites between cited steps. `default_agent`
    owns a subtask without an agent.
    """
    given = parse_object(text)
    subtasks = given.get("subtasks")
    if not isinstance(subtasks, list) or not subtasks:
        raise Malformed("there is no list of subtasks")
    if len(subtasks) > MAX_NODES:
        raise Malformed(f"{len(subtasks)} subtasks are too many")
    roster = {member.name for member in team if member.acts}
    nodes: list[PlanNode] = []
    edges: list[Edge] = []
    for item in subtasks:
        node, after = _read_subtask(item, roster, references, default_agent)
        nodes.append(_with_conditions(node, references, names))
        edges += [(u, node.id) for u in after]
    check([node.id for node in nodes], edges)
    edges += _inherited(nodes, edges, references)
    named = [sop for sop in word_list(given.get("used")) if sop in references]
    named += [node.source.sop_id for node in nodes if node.source]
    return Plan(tuple(nodes), tuple(edges), tuple(dict.fromkeys(named)))


def _read_subtask(
    item: Any, roster: set[str], references: Mapping[str, tuple[int, Procedure]], default_agent: str | None
) -> tuple[PlanNode, tuple[str, ...]]:
    if not isinstance(item, dict):
        raise Malformed("a subtask is no JSON object")
    node_id, action = words(item.get("id"), 40), words(item.get("action"), 200)
    if not node_id or not action:
        raise Malformed("a subtask has no id or no action")
    agent = words(item.get("agent"), 80) or (default_agent or "")
    if agent not in roster:
        raise Malformed(f"subtask {node_id} is given to {agent or 'nobody'}; the team is {', '.join(sorted(roster))}")
    source = None
    sop, _, step = words(item.get("from"), 120).partition("#")
    if sop in references and step in {s.id for s in references[sop][1].steps}:
        source = StepSource(sop, references[sop][0], step)
    return PlanNode(node_id, action, agent, parse_conditions(item.get("post")), (), source), word_list(item.get("after"))


def _with_conditions(node: PlanNode, references: Mapping[str, tuple[int, Procedure]], names: Mapping[str, str]) -> PlanNode:
    """A subtask made from a procedure's step begins when that step may begin."""
    if node.source is None:
        return node
    step = next(s for s in references[node.source.sop_id][1].steps if s.id == node.source.step_id)
    return replace(node, pre=tuple(c.bound(names) for c in step.pre))


def _inherited(nodes: Sequence[PlanNode], edges: Sequence[Edge], references: Mapping[str, tuple[int, Procedure]]) -> list[Edge]:
    """The prerequisites between the steps that the plan cites once each, as far as they do not contradict its own order."""
    citing: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        if node.source is not None:
            citing.setdefault((node.source.sop_id, node.source.step_id), []).append(node.id)
    ids, found = [node.id for node in nodes], list(edges)
    for sop in dict.fromkeys(sop for sop, _ in citing):
        for u, w in references[sop][1].edges:
            before, after = citing.get((sop, u), []), citing.get((sop, w), [])
            if len(before) != 1 or len(after) != 1 or (before[0], after[0]) in found:
                continue
            try:
                check(ids, [*found, (before[0], after[0])])
            except GraphError:
                continue
            found.append((before[0], after[0]))
    return found[len(edges) :]


def fallback_plan(
    objective: str, team: Sequence[Member], best: tuple[str, int, Procedure] | None, names: Mapping[str, str]
) -> Plan:
    """Without a usable answer: the steps of the best procedure one after another, else the task itself as a single step.

    `names` binds the procedure's abstract names to the things of the task.
    """
    agent = next((member.name for member in team if member.acts), team[0].name if team else "agent")
    if best is None or not best[2].steps:
        return Plan((PlanNode("n1", objective, agent),), ())
    sop_id, version, procedure = best
    nodes = tuple(
        PlanNode(
            f"n{number}",
            bind(step.instruction, names),
            agent,
            tuple(c.bound(names) for c in step.post),
            tuple(c.bound(names) for c in step.pre),
            StepSource(sop_id, version, step.id),
        )
        for number, step in enumerate(procedure.steps, 1)
    )
    edges = tuple((a.id, b.id) for a, b in pairwise(nodes))
    return Plan(nodes, edges, (sop_id,))


def describe(graph: TaskGraph, *, with_status: bool = True) -> str:
    """The graph as the agents and the manager read it: a line a step, prerequisites by id."""
    lines = []
    for i in graph.order:
        node = graph.nodes[i]
        after = f", after {', '.join(graph.predecessors(i))}" if graph.predecessors(i) else ""
        status = f" [{graph.status[i]}]" if with_status else ""
        lines.append(f"{i} ({node.agent}{after}): {node.action}{status}")
    return "\n".join(lines)
