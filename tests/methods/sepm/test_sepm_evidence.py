"""State resolution: the truth table over tiers × sources × times × confidence, against an independent formulation."""

from __future__ import annotations

import itertools

import pytest

from methods.sepm.conditions import Condition, binding, entity_matches
from methods.sepm.divergence import state_conflicts
from methods.sepm.evidence import VerifiedState, resolve
from tests.methods.sepm.sepm_support import fact


def expected(a: tuple[int, str, int, float, str], b: tuple[int, str, int, float, str]) -> str | None:
    """Two items (tier, source, time, confidence, value) by the words of SEPM-R21..R24; None is unresolved."""
    held = [item for item in (a, b) if item[3] >= 0.70]
    if not held or max(item[0] for item in held) == 1:
        return None
    best = [item for item in held if item[0] == max(i[0] for i in held)]
    if len({item[4] for item in best}) == 1:
        return best[0][4]
    (_, source, time, _, value), (_, source2, time2, _, value2) = best
    if source != source2 or time == time2:
        return None
    return value if time > time2 else value2


CASES = list(itertools.product((4, 3, 2, 1), (4, 3, 2, 1), ("s", "t"), (1, 2, 3), (0.69, 0.70), (0.69, 0.70), ("x", "y")))


def test_truth_table_r21_r22_r23_r24() -> None:
    """SEPM-R21 (0.70 qualifies), SEPM-R22 (tier first), SEPM-R23 (latest of a source), SEPM-R24 (inference verifies nothing)."""
    for tier, tier2, source2, time2, conf, conf2, value2 in CASES:
        a, b = (tier, "s", 2, conf, "x"), (tier2, source2, time2, conf2, value2)
        items = [fact("mug", "clean", v, t, tier=h, source=s, conf=c) for h, s, t, c, v in (a, b)]
        for order in (items, items[::-1]):
            found = resolve(order)
            assert (found.value if found.resolved else None) == expected(a, b), (a, b)


def test_sources_that_differ_wait_for_a_fresh_observation_r23() -> None:
    """SEPM-R23: of tier 4 or 3, and newer than the conflict."""
    conflict = [fact("mug", "at", "x", 1, tier=3, source="s"), fact("mug", "at", "y", 2, tier=3, source="t")]
    assert resolve(conflict).reason == "sources_conflict"
    again = resolve([*conflict, fact("mug", "at", "x", 3, tier=3, source="s")])
    assert (again.value, again.reason) == ("x", "fresh")
    assert resolve([*conflict, fact("mug", "at", "z", 3, tier=4)]).value == "z"
    artifacts = [fact("mug", "at", v, t, tier=2, source=s) for v, t, s in (("x", 1, "s"), ("y", 2, "t"), ("x", 3, "s"))]
    assert not resolve(artifacts).resolved


def test_lower_tiers_cannot_win_by_number_and_confidence_breaks_no_tie_r22_r24() -> None:
    """SEPM-R22, SEPM-R24."""
    many = [fact("mug", "clean", False, 9, tier=3, source=f"s{i}") for i in range(9)]
    assert resolve([fact("mug", "clean", True, 1, conf=0.7), *many]).value is True
    tie = [fact("mug", "clean", True, 1, conf=1.0), fact("mug", "clean", False, 1, conf=0.7)]
    assert resolve(tie).reason == "tie"


def test_nothing_eligible_asks_for_an_observation_r21() -> None:
    """SEPM-R21."""
    found = resolve([fact("mug", "clean", True, conf=0.69)])
    assert (found.resolved, found.needs) == (False, "an observation")


def test_a_report_against_the_stored_state_asks_for_a_look_and_changes_nothing_r24() -> None:
    """SEPM-R24; there is no time-to-live."""
    state = VerifiedState()
    state.add([fact("mug", "clean", True, 1)])
    state.add([fact("mug", "clean", False, 900, tier=1, source="B", conf=0.9)])
    assert state.resolved["mug", "clean"] is True and state.reobserve == {("mug", "clean")}
    state.add([fact("mug", "clean", False, 901)])
    assert state.resolved["mug", "clean"] is False and not state.reobserve


def test_conflicts_count_only_qualified_evidence_on_relevant_keys_r18() -> None:
    """SEPM-R18: c ≥ 0.70, task-relevant, and not merely a change of the world."""
    key, other = ("mug", "clean"), ("cup", "clean")
    said = [fact(*key, True, 1, tier=1, source="A", conf=0.7), fact(*key, False, 1, tier=1, source="B", conf=0.7)]
    assert state_conflicts({key: said}, [key]) == (key,)
    assert state_conflicts({key: said}, [other]) == ()
    weak = [said[0], fact(*key, False, 1, tier=1, source="B", conf=0.69)]
    assert state_conflicts({key: weak}, [key]) == ()
    assert state_conflicts({key: [fact(*key, True, 1), fact(*key, False, 2)]}, [key]) == ()


@pytest.mark.parametrize(
    ("pattern", "entity", "same"),
    [("mug", "mug 1", True), ("Mug", "mug", True), ("mug 2", "mug 1", False), ("mug", "mugs 1", False), ("cup", "mug 1", False)],
)
def test_a_kind_names_its_instances(pattern: str, entity: str, same: bool) -> None:
    assert entity_matches(pattern, entity) is same


def test_conditions_meet_what_models_write_for_a_value() -> None:
    key = ("mug 1", "clean")
    assert Condition("mug", "clean", "True").met_by(key, True)
    assert Condition("mug", "Clean").met_by(key, False)
    assert not Condition("mug", "clean", True).met_by(key, False)
    assert Condition("mug", "location", "cabinet").met_by(("mug 1", "location"), "cabinet 4")


def test_facts_bind_a_kind_only_to_a_single_value() -> None:
    assert binding({"object=mug", "room=cabinet", "room=fridge", "plain"}) == {"object": "mug"}
