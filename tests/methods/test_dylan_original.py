"""host=dylan_original: METHODS.md 2.4, its verified vectors and its call counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts import Call
from methods.hosts import dylan_importance as arithmetic
from methods.hosts import dylan_team
from methods.hosts.dylan_original import DylanOriginal
from tests.support.build import played
from tests.support.fakes import TASK, FakeModels, FakeSession, SpyMemory, session, team_memory


def host(**values: object) -> DylanOriginal:
    return DylanOriginal(DylanOriginal.Config(**values), seed=0)  # type: ignore[arg-type]


def play(answer: Callable[[Call], str], steps: int = 1, **config: object) -> tuple[FakeModels, FakeSession, SpyMemory]:
    models, inner, memory = FakeModels(answer), FakeSession(), SpyMemory()
    host(**config).play(session(inner, memory, max_steps=steps), team_memory(memory), models)
    return models, inner, memory


class TestImportance:
    WEIGHTS = (
        ((0.5, 0.2, 0.2), (0.3, 0.5, 0.3), (0.2, 0.3, 0.5)),
        ((0.6, 0.3, 0.0), (0.2, 0.4, 0.0), (0.2, 0.3, 0.0)),
    )

    def test_the_backward_pass_gives_the_verified_vectors(self) -> None:
        first, second, last = arithmetic.backward((0.5, 0.5, 0.0), self.WEIGHTS)
        assert second == pytest.approx((0.45, 0.30, 0.25))
        assert first == pytest.approx((0.335, 0.36, 0.305))
        assert arithmetic.totals((first, second, last)) == pytest.approx((1.285, 1.16, 0.555))

    def test_the_last_round_shares_one_among_those_with_the_result(self) -> None:
        assert arithmetic.last_layer_importance(["a", "b", "a", None], "a") == (0.5, 0.0, 0.5, 0.0)

    def test_nobody_with_the_result_is_no_division_by_zero(self) -> None:
        assert arithmetic.last_layer_importance(["a", "b", None], "c") == (0.5, 0.5, 0.0)
        assert arithmetic.last_layer_importance([None], "c") == (0.0,)

    @given(st.lists(st.lists(st.integers(-3, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    def test_importance_is_handed_back_whole(self, rounds: list[list[int]]) -> None:
        """Normalised edges: every round's importance sums to that of the last."""
        weights = [list(zip(*([arithmetic.edge_weights(r, 3)] * 3), strict=True)) for r in rounds]
        layers = arithmetic.backward((0.5, 0.5, 0.0), weights)
        assert all(sum(layer) == pytest.approx(1.0) for layer in layers)

    @pytest.mark.parametrize(
        ("ratings", "weights"),
        [
            ((5, 5), (0.5, 0.5)),
            ((3, 1), (0.75, 0.25)),
            ((9, 5), (0.5, 0.5)),
            ((5, -2), (1.0, 0.0)),
            ((0, 0), (0.5, 0.5)),
            ((1,), (0.5, 0.5)),
            (None, (0.5, 0.5)),
        ],
    )
    def test_edge_weights(self, ratings: tuple[int, ...] | None, weights: tuple[float, ...]) -> None:
        assert arithmetic.edge_weights(ratings, 2) == pytest.approx(weights)

    def test_the_best_team_is_the_most_important_on_average(self) -> None:
        assert arithmetic.best_team([(1.0, 0.2, 0.9), (0.0, 0.7, 0.3)], 2) == (0, 2)
        assert arithmetic.best_team([(0.5, 0.5, 0.5)], 2) == (0, 1)


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("look\n[[3, 4]]", (3, 4)),
            ("[[1,2]] then [[5,5]].", (5, 5)),
            ("x = [[1, 2]]\nprint(x)", None),
            ("[[3]]", None),
            ("none", None),
            ("[[]]", None),
        ],
    )
    def test_ratings(self, text: str, expected: tuple[int, ...] | None) -> None:
        assert arithmetic.parse_ratings(text, 2) == expected

    def test_the_action_is_what_is_left_without_them(self) -> None:
        assert arithmetic.without_ratings("press red\n[[3, 4]]") == "press red"
        assert arithmetic.without_ratings("press red [[1]]") == "press red"

    def test_brackets_of_code_stay(self) -> None:
        code = '```python\nx = df[["a", "b"]].values[[0, 1]]\nprint(x)\n```'
        assert arithmetic.without_ratings(f"{code}\n[[4, 2]]") == code and arithmetic.without_ratings(code) == code

    @pytest.mark.parametrize(
        ("text", "best"), [("[2, 4]", (1, 3)), ("best: [1,1] or [3, 1]", (2, 0)), ("[1, 5]", None), ("", None)]
    )
    def test_the_listwise_ranker(self, text: str, best: tuple[int, int] | None) -> None:
        assert arithmetic.parse_best_two(text, 4) == best


class TestForwardPass:
    def test_agreement_of_three_of_four_stops_the_first_round_early(self) -> None:
        models, inner, _ = play(lambda call: "look")
        assert models.roles() == ["host.dylan_original.agent"] * 3 and inner.actions == ["look"]

    def test_without_agreement_two_ranked_agents_answer_in_the_third_round(self) -> None:
        def answer(call: Call) -> str:
            return "[1, 2]" if call.role.endswith("ranker") else f"say {call.agent}"

        models, inner, memory = play(answer)
        assert (
            models.roles()
            == ["host.dylan_original.agent"] * 8 + ["host.dylan_original.ranker"] + ["host.dylan_original.agent"] * 2
        )
        # the replies that the ranker named are those of the agents that speak again: the public code picks places in a shuffled loop
        listing = models.calls[8].messages[1]["content"].splitlines()
        named = {line.partition("say ")[2] for line in listing if line.startswith(("1. ", "2. "))}
        assert {call.agent for call in models.calls[9:]} == named
        assert memory.after[0].agent in named and inner.actions[0].startswith("say solver_")

    def test_a_ranker_that_names_nobody_gives_two_random_agents(self) -> None:
        models, _, _ = play(lambda call: "?" if call.role.endswith("ranker") else f"say {call.agent}")
        assert len({call.agent for call in models.calls[9:]}) == 2

    def test_the_two_ranked_agents_agree_when_both_say_the_same(self) -> None:
        def answer(call: Call) -> str:
            if call.role.endswith("ranker"):
                return "[1, 2]"
            return "press blue" if len(models.calls) > 9 else f"say {call.agent}"

        models = FakeModels(answer)
        inner = FakeSession()
        host().play(session(inner, max_steps=1), team_memory(), models)
        assert inner.actions == ["press blue"]

    @pytest.mark.parametrize(("agents", "rounds", "calls"), [(1, 1, 1), (2, 1, 2), (3, 3, 9), (4, 1, 4), (4, 2, 8), (4, 4, 13)])
    def test_any_number_of_agents_and_rounds_will_do(self, agents: int, rounds: int, calls: int) -> None:
        models, _, _ = play(
            lambda call: "[1, 2]" if call.role.endswith("ranker") else f"say {call.agent}", agents=agents, rounds=rounds
        )
        assert len(models.calls) == calls

    def test_empty_completions_end(self) -> None:
        models, inner, _ = play(lambda call: "", steps=2)
        assert inner.actions == ["look"] * 2 and len(models.calls) == 2 * 3 * 3

    def test_the_order_of_speakers_depends_on_the_seed_alone(self) -> None:
        orders = [[call.agent for call in play(lambda call: f"say {call.agent}")[0].calls] for _ in range(2)]
        assert orders[0] == orders[1] and orders[0][:4] != orders[0][4:8]

    def test_temperature_and_cap_are_the_publications(self) -> None:
        models, _, _ = play(lambda call: "look")
        assert {(call.temperature, call.max_tokens, call.stop) for call in models.calls} == {(1.0, 2048, ())}

    def test_ratings_are_asked_for_and_never_executed(self) -> None:
        models, inner, _ = play(lambda call: f"say {call.agent}\n[[5, 1, 1, 1]]", rounds=2)
        assert "to be rated" in models.calls[4].messages[1]["content"]
        assert "[[" not in inner.actions[0]


class TestTeamOptimisation:
    def test_a_kept_team_is_the_named_agents(self) -> None:
        assert [member.name for member in host(team=[2, 0]).team(TASK)] == ["solver_1", "solver_3"]
        with pytest.raises(ValueError, match="team must list different places from 0 to 3"):
            host(team=[4])

    def test_importance_of_a_run_becomes_an_override(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        directory = played(tmp_path, host={"name": "dylan_original"})
        assert dylan_team.main([str(directory), "--keep", "2"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert len(out) == 5 and out[-1].startswith("host.team=[")

    def test_importance_of_abandoned_attempts_does_not_count(self) -> None:
        events = [
            {"event": "attempt_start", "task_id": "t"},
            {"event": "agent_importance", "task_id": "t", "step": 1, "importance": {"a_1": 1.0}},
            {"event": "attempt_start", "task_id": "t"},
            {"event": "agent_importance", "task_id": "t", "step": 1, "importance": {"a_1": 0.25}},
        ]
        assert dylan_team.importance_by_task(events) == {"t": {"a_1": 0.25}}

    def test_a_run_of_another_host_is_one_clear_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert dylan_team.main([str(played(tmp_path)), "--keep", "1"]) == 2
        assert "only host=dylan_original writes it" in capsys.readouterr().err

    def test_the_log_holds_one_line_of_importance_a_step(self, tmp_path: Path) -> None:
        directory = played(tmp_path, host={"name": "dylan_original"}, env={"n": 1})
        events = [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]
        found = [event for event in events if event["event"] == "agent_importance"]
        assert [event["step"] for event in found] == [1, 2]
        # one round was enough, and three of four agents agreed in it
        assert sorted(found[0]["importance"].values()) == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
