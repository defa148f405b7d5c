"""host=autogen on the real library: METHODS.md 2.1, HOST-AG R1..R8."""

from __future__ import annotations

from itertools import chain, repeat

import pytest

from harness.contracts import Call, Guidance, Member, Review
from harness.errors import ContextOverflow, ProviderError
from methods.hosts.autogen import AutoGen
from tests.support.fakes import TASK, FakeModels, FakeSession, SpyMemory, session, team_memory


def host(**values: object) -> AutoGen:
    return AutoGen(AutoGen.Config(**values), seed=0)  # type: ignore[arg-type]


def test_the_team_has_exactly_two_acting_agents() -> None:
    """R1."""
    assert [(member.name, member.acts) for member in host().team(TASK)] == [("solver", True), ("grounding", True)]


def test_the_solver_acts_alone_while_it_makes_progress() -> None:
    answers = iter(["look", "press blue", "press red"])
    models, inner = FakeModels(lambda call: next(answers)), FakeSession()
    host().play(session(inner), team_memory(), models)
    assert inner.actions == ["look", "press blue", "press red"]
    assert models.roles() == ["host.autogen.solver"] * 3


def test_grounding_speaks_iff_the_action_equals_the_last_two_and_replaces_the_solvers() -> None:
    """R2, R3, R5: rescue on the third repeat; the solver's duplicate is not executed; the executed action enters the history."""

    def answer(call: Call) -> str:
        return "press blue" if call.role == "host.autogen.grounding" else "look"

    models, inner = FakeModels(answer), FakeSession()
    memory = SpyMemory()
    running = session(inner, memory, max_steps=6)
    host().play(running, team_memory(memory), models)
    # look, look, (rescue) blue, then the history holds blue: look, look, (rescue) blue
    assert inner.actions == ["look", "look", "press blue", "look", "look", "press blue"]
    assert models.roles().count("host.autogen.grounding") == 2
    assert len(models.calls) == 6 + 2
    rescued = running.trajectory().turns[2]
    assert (rescued.agent, rescued.upstream) == ("grounding", ("solver",))


def test_without_rescue_the_solver_repeats_itself() -> None:
    models, inner = FakeModels(lambda call: "look"), FakeSession()
    host(rescue=False).play(session(inner, max_steps=4), team_memory(), models)
    assert inner.actions == ["look"] * 4
    assert [member.name for member in host(rescue=False).team(TASK)] == ["solver"]


def test_empty_answers_are_bounded_and_end_in_the_noop() -> None:
    """R4: three attempts, then the no-op; an endless run of empty completions ends with the steps."""
    models, inner = FakeModels(lambda call: ""), FakeSession()
    host(rescue=False).play(session(inner, max_steps=2), team_memory(), models)
    assert inner.actions == ["look", "look"]
    assert len(models.calls) == 2 * 3


def test_an_answer_after_two_empty_ones_is_used() -> None:
    answers = chain(["", " \n"], repeat("press red"))
    models, inner = FakeModels(lambda call: next(answers)), FakeSession()
    host().play(session(inner), team_memory(), models)
    assert inner.actions == ["press red"]


def test_steps_are_bounded_and_hooks_run_once_a_step() -> None:
    """R6, R7."""
    memory = SpyMemory()
    models, inner = FakeModels(lambda call: f"say {len(inner.actions)}"), FakeSession()
    host().play(session(inner, memory, max_steps=5), team_memory(memory), models)
    assert len(inner.actions) == 5
    assert [turn.step for turn in memory.after] == [1, 2, 3, 4, 5]
    assert memory.before == [("solver", step) for step in range(5)]


@pytest.mark.parametrize("error", [ContextOverflow("m", 9, 8), ProviderError("down"), ZeroDivisionError("bug")])
def test_an_error_of_a_participant_keeps_its_type(error: Exception) -> None:
    """The library wraps exceptions in a RuntimeError of its own; the harness classifies by type."""

    def fail(call: Call) -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        host().play(session(FakeSession()), team_memory(), FakeModels(fail))
    assert caught.value is error


def test_no_state_of_the_library_survives_a_task() -> None:
    playing = host()
    lengths = []
    for _ in range(3):
        models = FakeModels(lambda call: "look")
        playing.play(session(FakeSession(), max_steps=2), team_memory(), models)
        lengths.append([len(call.messages[1]["content"]) for call in models.calls])
    assert lengths[0] == lengths[1] == lengths[2]


def test_admissible_actions_are_offered_with_every_call() -> None:
    models = FakeModels(lambda call: "press red")
    host().play(session(FakeSession()), team_memory(), models)
    assert models.calls[0].choices == FakeSession.choices
    assert models.calls[0].stop == ("\n",)


class HeaderMemory(SpyMemory):
    """Wants a header line, and blocks the first reply of every action."""

    def __init__(self) -> None:
        super().__init__()
        self.reviewed: list[str] = []

    def review(self, agent: Member, step: int, text: str) -> Review:
        self.reviewed.append(text)
        return Review(text.partition("\n")[2], blocked="prerequisite not verified")


def test_a_memory_reads_its_header_and_may_block_one_reply_an_action() -> None:
    memory = HeaderMemory()
    models, inner = FakeModels(lambda call: '{"node": "n1"}\npress red'), FakeSession()
    guidance = Guidance(reply_header="Write a JSON line first.")
    host().play(session(inner, memory), team_memory(memory, guidance), models)
    assert inner.actions == ["press red"]
    assert len(models.calls) == len(memory.reviewed) == 2
    assert models.calls[0].stop == ()
    assert "Write a JSON line first." in models.calls[0].messages[0]["content"]
    assert "[Note: prerequisite not verified]" not in models.calls[0].messages[1]["content"]
    assert "[Note: prerequisite not verified]" in models.calls[1].messages[1]["content"]
