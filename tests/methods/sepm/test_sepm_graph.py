"""The task graph: acyclic whatever is done to it, persistent identifiers, exact invalidation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.sepm.conditions import Condition
from methods.sepm.divergence import PlanView, plan_divergence
from methods.sepm.graph import GraphError, PlanNode, TaskGraph, topological

IDS = [f"n{i}" for i in range(6)]
edges_of = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=14)


def nodes(*ids: str) -> list[PlanNode]:
    return [PlanNode(i, f"do {i}", "A") for i in ids]


def chain() -> TaskGraph:
    """a → b → d, c → d; e alone."""
    return TaskGraph(nodes("a", "b", "c", "d", "e"), [("a", "b"), ("b", "d"), ("c", "d")])


def always(_: Condition) -> bool:
    return True


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "a")], "its own prerequisite"),
        ([("a", "b"), ("a", "b")], "occurs twice"),
        ([("a", "b"), ("b", "a")], "cycle"),
        ([("a", "x")], "unknown step"),
    ],
)
def test_no_loops_duplicates_cycles_or_unknown_ends_r3(edges: list[tuple[str, str]], message: str) -> None:
    """SEPM-R3, at construction and at every revision."""
    with pytest.raises(GraphError, match=message):
        TaskGraph(nodes("a", "b"), edges)
    graph = TaskGraph(nodes("a", "b"), [("a", "b")])
    with pytest.raises(GraphError, match=message):
        graph.revise(nodes("a", "b"), edges)
    assert graph.edges == (("a", "b"),) and graph.version == 1


def test_duplicate_steps_and_too_many_are_refused_r3() -> None:
    """SEPM-R3."""
    with pytest.raises(GraphError, match="step a occurs twice"):
        TaskGraph(nodes("a", "a"), [])
    with pytest.raises(GraphError, match="at most 500"):
        TaskGraph(nodes(*(f"n{i}" for i in range(501))), [])


@given(edges_of, st.lists(edges_of, max_size=4))
def test_random_edits_leave_a_dag_or_change_nothing_r3(first: list[tuple[str, str]], edits: list[list[tuple[str, str]]]) -> None:
    """SEPM-R3: after any series of revisions there is a topological order, whichever of them were refused."""
    try:
        graph = TaskGraph(nodes(*IDS), first)
    except GraphError:
        graph = TaskGraph(nodes(*IDS), [])
    for edges in edits:
        before = graph.edges
        try:
            graph.revise(nodes(*IDS), edges)
        except GraphError:
            assert graph.edges == before
        place = {node: i for i, node in enumerate(topological(list(graph.nodes), graph.edges))}
        assert all(place[u] < place[w] for u, w in graph.edges)
        assert len(set(graph.edges)) == len(graph.edges)


def test_ready_is_all_prerequisites_verified_r6() -> None:
    """SEPM-R6."""
    graph = chain()
    assert graph.ready(always) == ["a", "c", "e"]
    graph.status.update(a="verified", c="verified")
    assert graph.ready(always) == ["b", "e"]
    assert graph.missing("d") == ["b"]
    graph.status["b"] = "done_unverified"
    assert "d" not in graph.ready(always)


def test_a_precondition_on_the_state_counts_too_r6() -> None:
    """SEPM-R6: ready in the current state."""
    graph = TaskGraph([PlanNode("a", "x", "A", pre=(Condition("door", "state", "open"),))], [])
    assert graph.ready(always) == ["a"]
    assert graph.ready(lambda condition: False) == []


def test_a_failed_step_invalidates_exactly_its_descendants_r5() -> None:
    """SEPM-R5."""
    graph = chain()
    graph.status.update(dict.fromkeys(graph.nodes, "verified"))
    assert graph.invalidate("b") == ["b", "d"]
    assert graph.status == {"a": "verified", "b": "failed", "c": "verified", "d": "pending", "e": "verified"}


def test_unchanged_steps_keep_their_ids_and_new_ones_get_unused_ids_r4() -> None:
    """SEPM-R4: ids persist, even where the manager renamed a step; an id that was ever used is not used again."""
    graph = chain()
    graph.status.update(a="verified", b="verified")
    graph.revise([PlanNode("a", "do a", "A"), PlanNode("z", "do b", "A"), PlanNode("y", "new", "A")], [("a", "z"), ("z", "y")])
    assert list(graph.nodes) == ["a", "b", "y"] and graph.edges == (("a", "b"), ("b", "y"))
    assert graph.status == {"a": "verified", "b": "verified", "y": "pending"}
    graph.revise([PlanNode("a", "do a", "A"), PlanNode("c", "something else", "A")], [])
    assert set(graph.nodes) == {"a", graph.order[1]} and graph.order[1] not in {"a", "b", "c", "d", "e", "y", "z"}


def test_a_modified_step_and_its_descendants_are_verified_anew_r5() -> None:
    """SEPM-R5: an edit of b touches b and d; a and c keep their evidence."""
    graph = chain()
    graph.status.update(dict.fromkeys(graph.nodes, "verified"))
    changed = [*nodes("a"), PlanNode("b", "do it differently", "A"), *nodes("c", "d", "e")]
    assert graph.revise(changed, graph.edges) == ["b", "d"]
    assert [i for i in graph.order if graph.status[i] == "verified"] == ["a", "c", "e"]


@settings(max_examples=60)
@given(edges_of, st.sets(st.sampled_from(IDS)), st.sampled_from(IDS))
def test_replanning_invalidates_exactly_the_descendants_r5(
    edges: list[tuple[str, str]], verified: set[str], modified: str
) -> None:
    """SEPM-R5 on random graphs."""
    try:
        graph = TaskGraph(nodes(*IDS), edges)
    except GraphError:
        return
    graph.status.update(dict.fromkeys(verified, "verified"))
    lost = graph.revise([PlanNode(i, "new" if i == modified else f"do {i}", "A") for i in IDS], graph.edges)
    assert set(lost) == verified & ({modified} | graph.descendants(modified))
    assert {i for i in IDS if graph.status[i] == "verified"} == verified - set(lost)


plans = st.builds(
    lambda actions, edges: PlanView(actions, frozenset(edges)),
    st.dictionaries(st.sampled_from(IDS), st.sampled_from(["x", "y", "z"]), max_size=5),
    edges_of,
)


@given(plans, plans)
def test_plan_divergence_is_a_bounded_symmetric_discrepancy_r17(a: PlanView, b: PlanView) -> None:
    """SEPM-R17: symmetric, in [0, 1], 0 iff the plans are equal."""
    value = plan_divergence(a, b)
    assert value == plan_divergence(b, a)
    assert 0.0 <= value <= 1.0
    assert (value == 0.0) == (a == b)


def test_owner_and_status_are_metadata_r1() -> None:
    """SEPM-R1: equation 6 sees actions and edges alone."""
    a, b = TaskGraph([PlanNode("a", "x", "A")], []), TaskGraph([PlanNode("a", "x", "B")], [])
    b.status["a"] = "verified"

    def view(graph: TaskGraph) -> PlanView:
        return PlanView({i: node.action for i, node in graph.nodes.items()}, frozenset(graph.edges))

    assert plan_divergence(view(a), view(b)) == 0.0
