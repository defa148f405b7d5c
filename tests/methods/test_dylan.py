"""host=dylan: METHODS.md 2.3, HOST-DY R1..R7."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from harness.contracts import Call, Guidance, Member, Review
from harness.store.view import RunView
from methods.hosts.dylan import Dylan
from methods.hosts.dylan_importance import layer_consensus, parse_order
from tests.support.build import played, scripted
from tests.support.fakes import TASK, FakeModels, FakeSession, SpyMemory, session, team_memory

WRONG = ("press blue", "press green", "press white", "look")


def host(**values: object) -> Dylan:
    return Dylan(Dylan.Config(**values), seed=0)  # type: ignore[arg-type]


def play(
    answer: Callable[[Call], str], steps: int = 1, memory: SpyMemory | None = None, **config: object
) -> tuple[FakeModels, FakeSession]:
    models, inner, memory = FakeModels(answer), FakeSession(), memory or SpyMemory()
    host(**config).play(session(inner, memory, max_steps=steps), team_memory(memory), models)
    return models, inner


def in_turn(*answers: str, decision: str = "look", ranker: str = "1 > 2 > 3") -> Callable[[Call], str]:
    nodes: Iterator[str] = cycle(answers)

    def answer(call: Call) -> str:
        purpose = call.role.rpartition(".")[2]
        return {"node": "", "decision": decision, "ranker": ranker}[purpose] if purpose != "node" else next(nodes)

    return answer


class TestCallsPerStep:
    """2 if the first layer agrees, 4 if the second does, 5 if none."""

    def test_agreement_in_the_first_layer_takes_two_calls(self) -> None:
        models, inner = play(in_turn("look", "look"))
        assert models.roles() == ["host.dylan.node"] * 2 and inner.actions == ["look"]

    def test_agreement_in_the_second_layer_takes_four(self) -> None:
        models, inner = play(in_turn("look", "press blue", "press blue", "press blue"))
        assert models.roles() == ["host.dylan.node"] * 4 and inner.actions == ["press blue"]

    def test_no_agreement_takes_five_and_the_decision_agent_acts(self) -> None:
        models, inner = play(in_turn("look", "press blue", decision="press white"))
        assert models.roles() == ["host.dylan.node"] * 4 + ["host.dylan.decision"]
        assert inner.actions == ["press white"]

    def test_three_by_three_takes_at_most_eleven(self) -> None:
        models, _ = play(in_turn(*WRONG[:3]), nodes=3, rounds=3)
        # the ranked-out node of layer 1 still answers in layer 2
        assert len(models.calls) == 9 + 1 + 1
        assert models.roles().index("host.dylan.ranker") == 6

    def test_any_two_equal_answers_end_a_step_of_height_three(self) -> None:
        models, _ = play(in_turn("look", "look"), nodes=3, rounds=3)
        assert len(models.calls) == 2

    def test_the_ranker_never_runs_at_height_two(self) -> None:
        models, _ = play(in_turn(*WRONG), steps=3, rounds=4)
        assert "host.dylan.ranker" not in models.roles()


class TestConsensus:
    def test_it_is_over_normalised_actions(self) -> None:
        """The public code compares raw texts; we do not."""
        models, inner = play(in_turn("  look ", "look"))
        assert len(models.calls) == 2 and inner.actions == ["look"]

    @pytest.mark.parametrize(
        ("answers", "height", "agreed"),
        [
            (["a"], 2, None), (["a", "a"], 2, "a"), (["a", "b"], 2, None), (["a", "b", "a"], 3, "a"), (["a", "b", "c"], 3, None),
            (["a", "a", "b"], 4, "a"), (["a", "b", "c"], 4, None), (["a", "b", "a", "b", "c", "d"], 6, None), ([], 3, None),
        ],
    )  # fmt: skip
    def test_thresholds(self, answers: list[str], height: int, agreed: str | None) -> None:
        assert layer_consensus(answers, height) == agreed


class TestRanker:
    def test_the_last_ranked_answer_is_not_shown_to_the_next_layer(self) -> None:
        models, _ = play(in_turn(*WRONG[:3], ranker="3 > 1 > 2"), nodes=3, rounds=2)
        second_layer = [call for call in models.calls if call.role == "host.dylan.node"][3]
        prompt = second_layer.messages[1]["content"]
        assert "press blue" in prompt and "press white" in prompt and "solver_2" not in prompt

    @pytest.mark.parametrize("text", ["nonsense", "1 > 2", "1 > 2 > 4", "2 > 2 > 1", ""])
    def test_a_ranking_that_cannot_be_read_removes_nobody(self, text: str) -> None:
        """R4."""
        models, _ = play(in_turn(*WRONG[:3], ranker=text), nodes=3, rounds=2)
        second_layer = [call for call in models.calls if call.role == "host.dylan.node"][3]
        assert all(f"solver_{node}" in second_layer.messages[1]["content"] for node in (1, 2, 3))

    def test_the_order_may_stand_in_a_sentence(self) -> None:
        assert parse_order("I rank them 2 > 1 > 3, since", 3) == (1, 0, 2)


class TestPrompts:
    def test_the_decision_agent_sees_the_proposals_alone_unless_told_otherwise(self) -> None:
        answer = in_turn("look", "press blue", decision="look")
        shown = [call.messages[1]["content"] for call in play(answer)[0].calls if call.role.endswith("decision")]
        assert "press blue" in shown[0] and TASK.goal not in shown[0]
        answer = in_turn("look", "press blue", decision="look")
        shown = [
            call.messages[1]["content"]
            for call in play(answer, decision_sees_task=True)[0].calls
            if call.role.endswith("decision")
        ]
        assert TASK.goal in shown[0] and "A panel." in shown[0]

    def test_importance_is_constant(self) -> None:
        """R6."""
        models, _ = play(in_turn("look", "press blue"), steps=2)
        shown = [call.messages[1]["content"] for call in models.calls if "Proposals" in call.messages[1]["content"]]
        assert shown and all(text.count("importance 0.50") == 2 for text in shown)

    def test_original_importance_favours_who_gave_the_executed_action(self) -> None:
        models, _ = play(in_turn("look", "press blue", decision="press blue"), steps=2, importance="original")
        last = [call.messages[1]["content"] for call in models.calls if call.role == "host.dylan.node"][-1]
        first, second = (float(line.partition("importance ")[2][:4]) for line in last.splitlines() if line.startswith("- solver"))
        assert second > first

    def test_roles_are_given_out_in_turn_and_an_unknown_one_is_an_error(self) -> None:
        names = [member.name for member in host(nodes=3, roles=["solver", "critic"]).team(TASK)]
        assert names == ["solver_1", "critic_2", "solver_3", "decision", "ranker"]
        with pytest.raises(ValueError, match="unknown role 'ground_truth'"):
            host(roles=["ground_truth"])

    def test_a_critics_suggestion_reaches_the_next_layer(self) -> None:
        def answer(call: Call) -> str:
            if call.role.endswith("critic"):
                return "Support" if "press blue" in call.messages[1]["content"] else "Press something."
            return "look" if call.agent == "solver_1" else "press blue"

        models, _ = play(answer, critic=True)
        assert models.roles().count("host.dylan.critic") == 4
        third = [call for call in models.calls if call.role == "host.dylan.node"][2].messages[1]["content"]
        assert "look (critic: Press something.)" in third and third.count("critic:") == 1


class TestTrust:
    def test_empty_completions_end(self) -> None:
        models, inner = play(lambda call: "", steps=3)
        # three attempts a node, then the no-op: the nodes agree on doing nothing
        assert inner.actions == ["look"] * 3 and len(models.calls) == 3 * 2 * 3

    def test_an_empty_decision_ends_in_the_noop(self) -> None:
        _, inner = play(in_turn("press blue", "press white", decision=""))
        assert inner.actions == ["look"]

    def test_hooks_run_once_an_environment_step_and_the_author_is_the_first_who_said_it(self) -> None:
        memory = SpyMemory()
        play(in_turn("look", "press blue", "press blue", "press blue"), memory=memory)
        (turn,) = memory.after
        assert (turn.agent, turn.action, turn.upstream) == ("solver_1", "press blue", ("solver_1", "solver_2"))
        assert [name for name, _ in memory.before] == ["solver_1", "solver_2"] * 2

    def test_the_decision_agents_reply_is_reviewed_too(self) -> None:
        class Header(SpyMemory):
            def review(self, agent: Member, step: int, text: str) -> Review:
                return Review(text.removeprefix("node: n1\n"))

        memory = Header()
        models, inner = (
            FakeModels(in_turn("node: n1\nlook", "node: n1\npress blue", decision="node: n1\npress red")),
            FakeSession(),
        )
        host().play(session(inner, memory), team_memory(memory, Guidance(reply_header="Name a node.")), models)
        assert inner.actions == ["press red"]
        assert all("Name a node." in call.messages[0]["content"] and call.stop == () for call in models.calls)

    def test_usage_is_reconciled_with_agents_that_disagree(self, tmp_path: Path) -> None:
        """The stream refuses to commit a task whose ledger does not equal the gateway's count (TOK-R7)."""
        directory = played(tmp_path, host={"name": "dylan"}, models=scripted("oracle", dissent=0.5))
        usage = {row.group[0]: row.calls for row in RunView(directory).usage("role")}
        assert set(usage) == {"host.dylan.node", "host.dylan.decision"}


def test_dissent_is_the_same_in_every_run(tmp_path: Path) -> None:
    from harness.store import canonical

    runs = [played(tmp_path / name, host={"name": "dylan"}, models=scripted("oracle", dissent=0.5)) for name in "ab"]
    assert canonical.digest(runs[0]) == canonical.digest(runs[1])
