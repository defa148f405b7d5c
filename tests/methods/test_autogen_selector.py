"""host=autogen_selector on the real library: METHODS.md 2.2."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.contracts import Call
from harness.errors import ContextOverflow, ProviderError
from harness.store.view import RunView
from methods.hosts.autogen_selector import AutoGenSelector
from tests.support.build import played
from tests.support.fakes import FakeModels, FakeSession, SpyMemory, session, team_memory


def host(**values: object) -> AutoGenSelector:
    return AutoGenSelector(AutoGenSelector.Config(**values), seed=0)  # type: ignore[arg-type]


def speakers(*names: str, action: str = "look") -> Callable[[Call], str]:
    """The selector names these, over and over; the solver always answers `action`."""
    turn = iter(names * 100)
    return lambda call: next(turn) if call.role.endswith("selector") else {"solver": action}.get(call.agent or "", "well")


def play(answer: Callable[[Call], str], steps: int = 2, **config: object) -> tuple[FakeModels, FakeSession, SpyMemory]:
    models, inner, memory = FakeModels(answer), FakeSession(), SpyMemory()
    host(**config).play(session(inner, memory, max_steps=steps), team_memory(memory), models)
    return models, inner, memory


def short(models: FakeModels) -> list[str]:
    return [role.rpartition(".")[2] for role in models.roles()]


def test_the_model_chooses_who_speaks() -> None:
    models, inner, memory = play(speakers("planner", "solver", "critic", "environment"), steps=1)
    assert short(models) == ["selector", "planner", "selector", "solver", "selector", "critic", "selector"]
    assert inner.actions == ["look"]
    assert (memory.after[0].agent, memory.after[0].upstream) == ("solver", ("planner", "critic"))


def test_plan_and_criticism_reach_the_solver() -> None:
    models, _, _ = play(speakers("planner", "solver", "critic", "solver", "environment"), steps=1)
    prompts = [call.messages[1]["content"] for call in models.calls if call.agent == "solver"]
    assert "The planner says: well" in prompts[0] and "The critic says of your proposal 'look': well" in prompts[1]


def test_the_selectors_prompt_is_a_user_message_with_the_names() -> None:
    """ModelInfo.family is unknown."""
    models, _, _ = play(speakers("solver", "environment"), steps=1)
    (message,) = models.calls[0].messages
    assert message["role"] == "user"
    assert all(name in message["content"] for name in ("planner:", "solver:", "critic:", "environment:", "Press red."))


def test_invalid_names_cost_three_calls_and_fall_back_to_the_previous_speaker() -> None:
    """Nobody spoke yet: the first participant."""
    models, inner, _ = play(speakers("nobody"), steps=1)
    assert short(models)[:4] == ["selector"] * 3 + ["planner"]
    assert short(models)[4:8] == ["selector"] * 3 + ["planner"]
    assert inner.actions == []


def test_empty_completions_end() -> None:
    models, inner, _ = play(lambda call: "", steps=2, turns_per_step=2)
    assert inner.actions == []
    assert len(models.calls) <= 2 * 2 * (3 + 3)


def test_a_team_that_never_acts_ends_after_its_turns() -> None:
    models, inner, _ = play(speakers("solver", "critic"), steps=3, turns_per_step=4)
    assert inner.actions == [] and len([role for role in short(models) if role != "selector"]) == 12


def test_an_environment_without_a_proposal_says_so_and_no_step_is_made() -> None:
    _, inner, memory = play(speakers("environment", "solver"), steps=1, turns_per_step=4)
    assert len(inner.actions) == len(memory.after) == 1


@pytest.mark.parametrize("role", ["selector", "planner", "solver", "critic"])
@pytest.mark.parametrize("error", [ContextOverflow("m", 9, 8), ProviderError("down"), ZeroDivisionError("bug")])
def test_an_error_of_anybody_keeps_its_type(role: str, error: Exception) -> None:
    answers = speakers("planner", "solver", "critic", "environment")

    def answer(call: Call) -> str:
        if call.role.endswith(role):
            raise error
        return answers(call)

    with pytest.raises(type(error)) as caught:
        play(answer)
    assert caught.value is error


def test_usage_is_reconciled_selector_calls_included(tmp_path: Path) -> None:
    """TOK-R10, autogen#4719: the library's message usage leaves them out; the ledger has them all (and the stream checks it)."""
    directory = played(tmp_path, host={"name": "autogen_selector"})
    view = RunView(directory)
    by_role = {row.group[0]: row for row in view.usage("role")}
    (total,) = view.usage()
    assert total.total_tokens == sum(row.total_tokens for row in by_role.values())
    assert by_role["host.autogen_selector.selector"].calls >= by_role["host.autogen_selector.solver"].calls
    assert view.status == "finished"


def test_the_client_sums_what_the_gateway_reported() -> None:
    import asyncio

    from autogen_core.models import AssistantMessage, SystemMessage, UserMessage

    from methods.hosts.actor import Table
    from methods.hosts.autogen_client import gateway_client, to_messages
    from methods.hosts.autogen_selector import Episode

    models = FakeModels(lambda call: "solver")
    episode = Episode(Table(session(FakeSession()), team_memory(), models, 1), 10)
    client = gateway_client(episode, models, "planner")
    messages = [SystemMessage(content="s"), UserMessage(content="u", source="user"), AssistantMessage(content="a", source="x")]
    for _ in range(3):
        result = asyncio.run(client.create(messages))
    assert result.content == "solver" and [m["role"] for m in to_messages(messages)] == ["system", "user", "assistant"]
    assert (client.actual_usage().prompt_tokens, client.total_usage().prompt_tokens) == (1, 3)
    assert client.model_info["family"] == "unknown" and client.capabilities == client.model_info
    assert client.count_tokens(messages) == 1 and client.remaining_tokens(messages) > 100_000

    async def stream() -> list[object]:
        return [part async for part in client.create_stream(messages)]

    parts = asyncio.run(stream())
    assert parts[0] == "solver" and client.total_usage().completion_tokens == 4
    asyncio.run(client.close())


def test_a_fallback_is_no_noise_on_the_screen(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL):
        play(speakers("nobody"), steps=1)
    assert capfd.readouterr().err == ""
