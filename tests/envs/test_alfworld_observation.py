from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envs.alfworld.data import FAMILIES
from envs.alfworld.generate_files import sentence
from envs.alfworld.generate_world import goals_of
from envs.alfworld.observation import context_facts, parse_goal, read_evidence
from harness.seeds import rng

START = "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 2, a desk 1, and a safe 1.\n\n"


def _facts(text: str, won: bool = False) -> dict[tuple[str, str], Any]:
    return {item.key: item.value for item in read_evidence(text, won, 1)}


def test_context_facts_are_family_goal_types_and_room() -> None:
    text = START + "Your task is to: put a hot mug in safe."
    assert context_facts("pick_heat_then_place_in_recep", "put a hot mug in safe.", text) == {
        "family=pick_heat_then_place_in_recep",
        "object=mug",
        "receptacle=safe",
        "room=bed",
        "room=desk",
        "room=safe",
    }


def test_every_goal_sentence_that_we_make_is_understood() -> None:
    for family in FAMILIES:
        for number, goal in enumerate(goals_of(family)):
            named = parse_goal(sentence(goal, rng(0, number)) + ".")
            assert set(named.values()) == {goal.thing.lower(), goal.target.lower()}, goal
            assert ("lamp" in named) == (family == "look_at_obj_in_light")


def test_a_goal_of_unknown_form_gives_no_goal_facts() -> None:
    assert parse_goal("juggle three apples") == {}
    assert context_facts("f", "juggle three apples", START) == {"family=f", "room=bed", "room=desk", "room=safe"}


def test_evidence_of_an_arrival_is_place_state_and_contents() -> None:
    assert _facts("You arrive at desk 1. On the desk 1, you see a mug 2, and a mug 1.") == {
        ("agent", "location"): "desk 1",
        ("desk 1", "contents"): ("mug 1", "mug 2"),
        ("mug 1", "location"): "desk 1",
        ("mug 2", "location"): "desk 1",
    }
    assert _facts("You arrive at safe 1. The safe 1 is closed.")[("safe 1", "state")] == "closed"
    opened = _facts("You open the safe 1. The safe 1 is open. In it, you see nothing.")
    assert opened == {("safe 1", "state"): "open", ("safe 1", "contents"): ()}


def test_evidence_of_every_kind_of_feedback() -> None:
    assert _facts("You close the safe 1.") == {("safe 1", "state"): "closed"}
    taken = {("mug 1", "location"): "agent", ("agent", "holding"): "mug 1"}
    assert _facts("You pick up the mug 1 from the desk 1.") == _facts("You are carrying: a mug 1.") == taken
    moved = {("mug 1", "location"): "safe 1", ("agent", "holding"): "nothing"}
    assert _facts("You move the mug 1 to the safe 1.") == _facts("You put the mug 1 in/on the safe 1.") == moved
    assert _facts("You clean the mug 1 using the sinkbasin 1.") == {("mug 1", "clean"): True}
    assert _facts("You heat the mug 1 using the microwave 1.") == {("mug 1", "temperature"): "hot"}
    assert _facts("You cool the mug 1 using the fridge 1.") == {("mug 1", "temperature"): "cool"}
    assert _facts("You turn on the desklamp 1.") == _facts("This desklamp 1 is on.") == {("desklamp 1", "on"): True}
    assert _facts("This is a hot and clean mug 1.") == {("mug 1", "clean"): True, ("mug 1", "temperature"): "hot"}
    assert _facts("You are not carrying anything.") == {("agent", "holding"): "nothing"}
    assert _facts("Nothing happens.") == {}
    assert _facts("", won=True) == {("task", "completed"): True}


def test_evidence_is_environment_tier_on_the_logical_clock() -> None:
    evidence = read_evidence("You arrive at desk 1. On the desk 1, you see a mug 1.", True, 7)
    assert [item.observed_at for item in evidence] == [(7, number) for number in range(len(evidence))]
    assert {(item.tier, item.confidence, item.source) for item in evidence} == {(4, 1.0, "alfworld")}


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    read_evidence(text, False, 1)
    context_facts("f", text, text)
