"""The prompt all hosts assemble (METHODS.md 1.4): order of sections, and that memories change only their own."""

from __future__ import annotations

from harness.contracts import Guidance, Member, TrajectoryCard
from methods.hosts.prompt import EXAMPLES, INSIGHTS, MARKER, SUCCESSES, TASK, assemble
from tests.support.fakes import FakeSession, session

AGENT = Member("solver", "solver")


def user(guidance: Guidance, note: str = "") -> str:
    return assemble("You are the solver.", AGENT, session(FakeSession()), guidance, note)[1]["content"]


def test_the_system_message_is_the_role_then_the_environment() -> None:
    system = assemble("You are the solver.", AGENT, session(FakeSession()), Guidance())[0]["content"]
    assert system == "You are the solver.\n\nAnswer with one action."


def test_sections_stand_in_the_order_of_the_specification_and_end_in_the_marker() -> None:
    text = user(Guidance(cards=(TrajectoryCard("old task", "> look"),), insights={"*": ("Be quick.",)}))
    places = [text.index(part) for part in (EXAMPLES, SUCCESSES, "old task", INSIGHTS, "1. Be quick.", TASK, "A panel.")]
    assert places == sorted(places)
    assert text.endswith(f"\n{MARKER}")


def test_empty_sections_are_present_so_that_conditions_differ_only_in_content() -> None:
    text = user(Guidance())
    assert [line for line in text.splitlines() if line.startswith("## ")] == [EXAMPLES, SUCCESSES, INSIGHTS, TASK]


def test_a_card_without_key_steps_has_no_such_line() -> None:
    without = user(Guidance(cards=(TrajectoryCard("old", "> look"),)))
    assert "Key steps" not in without and "None" not in without
    assert "Key steps: be good" in user(Guidance(cards=(TrajectoryCard("old", "> look", "be good"),)))


def test_insights_go_to_the_role_they_are_for() -> None:
    guidance = Guidance(insights={"*": ("For all.",), "solver": ("For the solver.",), "critic": ("For the critic.",)})
    text = user(guidance)
    assert "For all." in text and "For the solver." in text and "For the critic." not in text


def test_the_growing_part_stands_last() -> None:
    """A provider's prefix cache keeps everything before the current task."""
    running = session(FakeSession())
    before = assemble("I.", AGENT, running, Guidance(procedures=("P",), brief="B"))[1]["content"]
    running.act("solver", "look")
    after = assemble("I.", AGENT, running, Guidance(procedures=("P",), brief="B"))[1]["content"]
    assert after.startswith(before.removesuffix(MARKER))
    assert after.endswith("> look\nNothing happens.\n>")


def test_a_note_for_the_next_action_stands_before_the_marker() -> None:
    assert user(Guidance(), "wait for A").endswith("[Note: wait for A]\n>")
