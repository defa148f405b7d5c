"""From a finished task to a candidate procedure: what evidence supports, and nothing else (SEPM paper 4.3, equation 8)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from methods.sepm.blackboard import Record
from methods.sepm.conditions import Condition, bind, parse_conditions
from methods.sepm.coordination import GraphCoordination
from methods.sepm.graph import Edge, GraphError, TaskGraph, check, normal
from methods.sepm.jsontext import Malformed, parse_object, word_list, words
from methods.sepm.procedure import ConditionalWarning, Procedure, Step
from methods.sepm.workspace import Workspace
from methods.text.hash256 import tokens

MAX_STEPS = 50
_NUMBERS = re.compile(r"\s*\b\d+\b")


@dataclass(frozen=True)
class Support:
    """V⁺ and E⁺ of a task, and c_causal: the share of the executed graph that evidence supports, 0 without success (AMB-2)."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]
    causal: float


@dataclass(frozen=True)
class Failure:
    """A recurring failure, or one that a later step explains: `text` is the lesson, `seqs` the records that show it."""

    text: str
    trigger: str
    seqs: tuple[int, ...]
    signature: str


@dataclass(frozen=True)
class Extracted:
    """What is left of the extractor's answer after everything unsupported was taken out."""

    procedure: Procedure
    target: str | None
    from_nodes: Mapping[str, str]  # step id → node id (textual control: record numbers)


# --- support ----------------------------------------------------------------------------------------------------------
def support(ws: Workspace, coordination: GraphCoordination, success: bool) -> Support:
    """Equation 8 (SEPM-R25)."""
    graph = coordination.graph
    first = {i: seq for i in graph.order if (seq := _first_support(ws, graph, i, success)) is not None}
    edges = tuple((u, w) for u, w in graph.edges if u in first and w in first and _establishes(ws, graph, u, w, first[w]))
    size = len(graph.nodes) + len(graph.edges)
    share = (len(first) + len(edges)) / size if size else 0.0
    return Support(tuple(i for i in graph.order if i in first), edges, share if success else 0.0)


def _first_support(ws: Workspace, graph: TaskGraph, node_id: str, success: bool) -> int | None:
    """The number of the first record that verifies a step's action and outcome; None where there is none."""
    node = graph.nodes[node_id]
    for record in ws.blackboard.on(node_id):
        if not record.executed:
            continue
        if node.post:
            if any(ws.qualifies(e) and c.met_by(e.key, e.value) for e in record.evidence for c in node.post):
                return record.seq
        elif success:
            return record.seq
    return None


def _establishes(ws: Workspace, graph: TaskGraph, u: str, w: str, before: int) -> bool:
    """Whether an outcome of u is a prerequisite of w and was known before w first succeeded. Order alone proves nothing."""
    for condition in graph.nodes[u].post:
        if not _needed_by(condition, graph, w):
            continue
        known = (
            record.seq < before
            for record in ws.blackboard
            for e in record.evidence
            if ws.qualifies(e) and condition.met_by(e.key, e.value)
        )
        if any(known):
            return True
    return False


def _needed_by(condition: Condition, graph: TaskGraph, w: str) -> bool:
    """A post key of u equals a pre key of w, or its entity occurs in what w says."""
    node = graph.nodes[w]
    keys = [(c.entity.casefold(), c.attribute.casefold()) for c in node.pre]
    if (condition.entity.casefold(), condition.attribute.casefold()) in keys:
        return True
    said = " ".join([node.action, *(c.entity for c in node.pre)])
    wanted = tokens(condition.entity)
    return bool(wanted) and all(word in tokens(said) for word in wanted)


def state_verified(ws: Workspace, graph: TaskGraph, nodes: Iterable[str]) -> bool:
    """V⁺ is not empty, and none of the keys that established its steps is left unresolved."""
    kept = list(nodes)
    keys = {
        e.key
        for i in kept
        for record in ws.blackboard.on(i)
        for e in record.evidence
        if ws.qualifies(e) and any(c.met_by(e.key, e.value) for c in graph.nodes[i].post)
    }
    return bool(kept) and not keys & ws.state.unresolved.keys()


# --- failures ---------------------------------------------------------------------------------------------------------
def failures(records: Iterable[Record], action_of: Mapping[str, str], names: Mapping[str, str]) -> list[Failure]:
    """Recurring failures (the same action on the same step at least twice), and failures that a later success explains.

    `action_of` gives a step's description, `names` the abstract names of this task's things (value → kind).
    """
    held = list(records)
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in held:
        if record.error:
            grouped.setdefault((record.node_id or "none", _plain(record.action)), []).append(record)
    found: dict[str, Failure] = {}  # by lesson: the same one from two steps is one
    for (node_id, action), group in grouped.items():
        subject = bind(action, names)
        trigger = bind(_plain(action_of.get(node_id, "")), names)
        cure = _cure(held, group[-1], action)
        if cure is not None:
            text = f"'{subject}' works only after '{bind(_plain(cure.action), names)}'"
            seqs = (*(r.seq for r in group), cure.seq)
        elif len(group) >= 2:
            text = f"'{subject}' failed {len(group)} times: {bind(_plain(group[-1].result)[:80], names)}"
            seqs = tuple(r.seq for r in group)
        else:
            continue
        before = found.get(text)
        seqs = tuple(sorted({*seqs, *(before.seqs if before else ())}))
        found[text] = Failure(text, before.trigger if before else trigger, seqs, f"{node_id}|{action}")
    return list(found.values())


def _cure(records: Sequence[Record], failed: Record, action: str) -> Record | None:
    """The last step with evidence between a failure and the later success of the same action."""
    later = [r for r in records if r.seq > failed.seq]
    success = next((r for r in later if not r.error and _plain(r.action) == action), None)
    if success is None:
        return None
    between = [r for r in later if r.seq < success.seq and not r.error and r.evidence]
    return between[-1] if between else None


def _plain(text: str) -> str:
    return " ".join(_NUMBERS.sub("", text.lower()).split())


# --- the extractor's answer -------------------------------------------------------------------------------------------
def read_extracted(
    text: str,
    ws: Workspace,
    graph: TaskGraph | None,
    kept: Support,
    failed: Sequence[Failure],
    reference: tuple[str, Procedure] | None,
) -> Extracted | None:
    """The supported part of the answer; None where it proposes nothing. Raises Malformed.

    Without a graph (textual control) a step must cite records that carry qualified evidence instead of a supported node.
    """
    given = parse_object(text)
    if words(given.get("op")) == "none":
        return None
    steps, origin = (_steps if graph is not None else _prose_steps)(given.get("steps"), ws, graph, kept)
    if not steps:
        raise Malformed("none of the steps rests on a verified step")
    edges = _edges(given.get("edges"), origin, kept.edges) if graph is not None else ()
    target = reference[0] if reference else None
    held = {fact.casefold(): fact for fact in ws.facts}
    conditions = [held[c.casefold()] for c in word_list(given.get("context_conditions")) if c.casefold() in held]
    try:
        procedure = Procedure(
            title=words(given.get("title"), 160) or ws.objective,
            description=words(given.get("description"), 300),
            family=ws.task.family,
            applicability=word_list(given.get("applicability"), 6),
            tags=word_list(given.get("tags"), 8, 40),
            conditions=tuple(dict.fromkeys(conditions)),
            exclusions=tuple(e for e in word_list(given.get("exclusions"), 8) if e.casefold() not in held),
            steps=tuple(steps),
            edges=edges,
            warnings=tuple(_warnings(given.get("warnings"), ws.task_no, failed)),
            prose=graph is None,
        )
    except ValueError as error:
        raise Malformed(str(error)) from error
    return Extracted(procedure, target, origin)


def offered_steps(text: str) -> int:
    """How many steps an answer offers, supported or not. Raises Malformed."""
    return len(_items(parse_object(text).get("steps")))


def _items(given: Any) -> list[Mapping[str, Any]]:
    return [item for item in given[:MAX_STEPS] if isinstance(item, dict)] if isinstance(given, list) else []


def _steps(given: Any, ws: Workspace, graph: TaskGraph | None, kept: Support) -> tuple[list[Step], dict[str, str]]:
    """The steps whose node is supported. A step without conditions of its own takes those of its node, made abstract."""
    assert graph is not None
    abstract = {value: kind for kind, value in ws.names.items()}
    steps: list[Step] = []
    origin: dict[str, str] = {}
    for item in _items(given):
        step_id, node_id, instruction = (
            words(item.get("id"), 40),
            words(item.get("from_node"), 40),
            words(item.get("instruction"), 300),
        )
        if node_id not in kept.nodes or not step_id or not instruction or step_id in origin:
            continue
        node = graph.nodes[node_id]
        pre = parse_conditions(item.get("pre")) or tuple(c.bound(abstract) for c in node.pre)
        post = parse_conditions(item.get("post")) or tuple(c.bound(abstract) for c in node.post)
        steps.append(_step(item, step_id, instruction, pre, post))
        origin[step_id] = node_id
    return steps, origin


def _prose_steps(given: Any, ws: Workspace, graph: TaskGraph | None, kept: Support) -> tuple[list[Step], dict[str, str]]:
    """The steps of the textual control: each rests on an executed record with qualified evidence."""
    good = {str(r.seq) for r in qualified_records(ws)}
    steps: list[Step] = []
    origin: dict[str, str] = {}
    for item in _items(given):
        step_id, instruction = words(item.get("id"), 40), words(item.get("instruction"), 300)
        cited = [number for number in _cited(item) if number in good]
        if step_id and instruction and cited and step_id not in origin:
            steps.append(_step(item, step_id, instruction, (), ()))
            origin[step_id] = cited[0]
    return steps, origin


def _cited(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The record numbers that an item of the answer names."""
    return word_list(item.get("record_ids"))


def _step(
    item: Mapping[str, Any], step_id: str, instruction: str, pre: tuple[Condition, ...], post: tuple[Condition, ...]
) -> Step:
    return Step(step_id, instruction, pre, post, item.get("requires_confirmation") is True, item.get("safety_critical") is True)


def _edges(given: Any, origin: Mapping[str, str], supported: Collection[Edge]) -> tuple[Edge, ...]:
    """The answer's edges that are supported, and the supported ones that it left out between steps of its own."""
    found: dict[Edge, None] = {}
    for pair in given if isinstance(given, list) else []:
        if isinstance(pair, list) and len(pair) == 2:
            u, w = words(pair[0], 40), words(pair[1], 40)
            if u in origin and w in origin and (origin[u], origin[w]) in supported:
                found[u, w] = None
    single = {node: step for step, node in origin.items() if list(origin.values()).count(node) == 1}
    for u, w in supported:
        if u in single and w in single:
            found[single[u], single[w]] = None
    return tuple(found)


def _warnings(given: Any, task_no: int, failed: Sequence[Failure]) -> list[ConditionalWarning]:
    """The answer's warnings that cite records of real failures, then the failures that it did not mention."""
    found: list[ConditionalWarning] = []
    told: set[int] = set()
    for item in _items(given):
        cited = {int(number) for number in _cited(item) if number.isdigit()}
        shown = next((f for f in failed if cited and cited <= set(f.seqs)), None)
        text = words(item.get("text"), 240)
        if shown is not None and text:
            evidence = tuple(f"{task_no}:{seq}" for seq in sorted(cited))
            found.append(ConditionalWarning(text, words(item.get("trigger"), 120) or shown.trigger, evidence, shown.signature))
            told.add(id(shown))
    return found + [as_warning(f, task_no) for f in failed if id(f) not in told]


def as_warning(failure: Failure, task_no: int) -> ConditionalWarning:
    evidence = tuple(f"{task_no}:{seq}" for seq in failure.seqs)
    return ConditionalWarning(failure.text, failure.trigger, evidence, failure.signature)


# --- what became of a procedure ---------------------------------------------------------------------------------------
def unchanged(graph: TaskGraph, kept: Support, sop_id: str, procedure: Procedure) -> bool:
    """Whether the supported structure is that of the procedure that was followed: then there is nothing to extract."""
    made_from = {i: graph.nodes[i].source for i in kept.nodes}
    steps = [source.step_id for source in made_from.values() if source is not None and source.sop_id == sop_id]
    if len(steps) < len(kept.nodes) or sorted(steps) != sorted(s.id for s in procedure.steps):
        return False
    mapped = {(made_from[u].step_id, made_from[w].step_id) for u, w in kept.edges}  # type: ignore[union-attr]
    return mapped <= set(procedure.edges)


def with_kept_edges(candidate: Procedure, target: Procedure) -> Procedure:
    """An update keeps the prerequisites of its target between the steps that survive (by id and words, or by words)."""
    by_text = {normal(s.instruction): s.id for s in candidate.steps}
    renamed = {s.id: by_text[normal(s.instruction)] for s in target.steps if normal(s.instruction) in by_text}
    more = [(renamed[u], renamed[w]) for u, w in target.edges if u in renamed and w in renamed]
    edges = tuple(dict.fromkeys([*candidate.edges, *more]))
    try:
        check([s.id for s in candidate.steps], edges)
    except GraphError:
        return candidate
    return replace(candidate, edges=edges)


def matched_share(procedure: Procedure, sop_id: str, ws: Workspace, coordination: Any) -> float:
    """The share of a procedure's steps that were matched to verified steps of the task (a trial's causal support).

    Nothing where the plan does not follow the procedure: what succeeded without it is no support for it.
    """
    if not procedure.steps or sop_id not in ws.used:
        return 0.0
    if isinstance(coordination, GraphCoordination):
        graph = coordination.graph
        verified = [graph.nodes[i] for i in graph.order if graph.status[i] == "verified" and graph.nodes[i].post]
        hits = sum(any(_same(step, node, sop_id, ws.names) for node in verified) for step in procedure.steps)
    else:
        hits = _told(procedure, ws)
    return hits / len(procedure.steps)


def qualified_records(ws: Workspace) -> list[Record]:
    """What was executed and left evidence that can support a step."""
    return [r for r in ws.blackboard if r.executed and any(ws.qualifies(e) for e in r.evidence)]


def told_unchanged(sentences: Sequence[str], ws: Workspace, procedure: Procedure) -> bool:
    """`unchanged` for prose: the plan is the procedure's sentences, one for one, and each of them was carried out."""
    plan = [normal(sentence) for sentence in sentences]
    steps = [normal(bind(step.instruction, ws.names)) for step in procedure.steps]
    if len(plan) != len(steps) or any(step not in sentence for step, sentence in zip(steps, plan, strict=True)):
        return False
    return _told(procedure, ws) == len(steps)


def _told(procedure: Procedure, ws: Workspace) -> int:
    """How many of a procedure's steps were carried out, going by the words of the actions that left evidence."""
    done = [tokens(r.action) for r in qualified_records(ws)]
    return sum(_told_in(bind(step.instruction, ws.names), done) for step in procedure.steps)


def _same(step: Step, node: Any, sop_id: str, names: Mapping[str, str]) -> bool:
    if node.source is not None and (node.source.sop_id, node.source.step_id) == (sop_id, step.id):
        return True
    if normal(bind(step.instruction, names)) == normal(node.action):
        return True
    return bool(step.post) and {c.bound(names) for c in step.post} == set(node.post)


def _told_in(instruction: str, actions: Sequence[list[str]]) -> bool:
    """Whether some executed action shares at least half of its words with the instruction."""
    said = set(tokens(instruction))
    return any(len(said & set(action)) * 2 >= len(set(action)) for action in actions if action)
