from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import pytest

from envs.alfworld import prompts
from envs.alfworld.adapter import AlfWorld, AlfWorldConfig
from envs.alfworld.data import FAMILIES, Game, Grammar
from envs.alfworld.observation import read_evidence
from harness.contracts import Session
from harness.errors import EnvironmentCrashed


def _in_old_grammar(game: Game, folder: Path) -> None:
    """The same game as data from before 0.4.0 says it."""
    content = json.loads(game.path.read_text())
    content["grammar"] = content["grammar"].replace("move {o} to {r}", "put {o} in/on {r}")
    content["grammar"] = content["grammar"].replace(
        "You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."
    )
    content["walkthrough"] = [
        f"put {step[5:].replace(' to ', ' in/on ')}" if step.startswith("move ") else step for step in content["walkthrough"]
    ]
    target = folder / "json_2.1.1" / "valid_unseen" / game.name / "game.tw-pddl"
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps(content))


@pytest.fixture
def old_alfworld(games: list[Game], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AlfWorld:
    chosen = next(game for game in games if game.family == "pick_and_place_simple")
    _in_old_grammar(chosen, tmp_path / "old")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "old"))
    monkeypatch.setattr("envs.alfworld.data.OFFICIAL_COUNTS", {"valid_unseen": 1})
    return AlfWorld(AlfWorldConfig(source="official"))


def _first(alfworld: AlfWorld, family: str = "pick_and_place_simple"):  # type: ignore[no-untyped-def]
    return next(task for task in alfworld.tasks() if task.family == family)


def test_the_oracle_wins_every_game_within_the_limit(alfworld: AlfWorld) -> None:
    for task in alfworld.tasks():
        solution = alfworld.oracle(task)
        assert solution is not None and len(solution) <= alfworld.max_steps
        with alfworld.open(task, task.index) as session:
            results = [session.step(session.normalise(action)) for action in solution]
            assert [result.reward for result in results] == [0.0] * (len(results) - 1) + [1.0]
            assert [result.done for result in results] == [False] * (len(results) - 1) + [True]
            assert session.outcome().success and session.outcome().score == 1.0
            assert session.outcome().status == "completed"


def test_doing_nothing_wins_nothing(alfworld: AlfWorld) -> None:
    for task in alfworld.tasks():
        with alfworld.open(task, 0) as session:
            results = [session.step(session.noop_action) for _ in range(alfworld.max_steps)]
            assert all(result.reward == 0.0 and not result.done and result.error is None for result in results)
            outcome = session.outcome()
            assert (outcome.score, outcome.success, outcome.status) == (0.0, False, "failed")


def test_long_episodes_end_neither_won_nor_done(alfworld: AlfWorld) -> None:
    with alfworld.open(alfworld.tasks()[0], 0) as session:
        assert not any(session.step("inventory").done for _ in range(110))
        assert session.outcome().score == 0.0


def test_a_session_is_what_the_contract_says(alfworld: AlfWorld) -> None:
    task = _first(alfworld)
    with alfworld.open(task, 0) as session:
        assert isinstance(session, Session)
        assert session.observation.startswith("You are in the middle of a room.")
        assert session.observation.endswith(f"Your task is to: {task.goal}")
        assert f"family={task.family}" in session.facts and any(fact.startswith("room=") for fact in session.facts)
        assert session.observe([("agent", "location")]) is None
        assert session.noop_action in (session.choices or ())


def test_choices_are_sorted_the_same_each_time_and_follow_the_world(alfworld: AlfWorld) -> None:
    task = _first(alfworld)
    solution = alfworld.oracle(task) or ()
    seen = []
    for _ in range(2):
        with alfworld.open(task, 0) as session:
            seen.append([session.choices, *[(session.step(action), session.choices)[1] for action in solution]])
    assert seen[0] == seen[1]
    assert all(choices and list(choices) == sorted(set(choices)) for choices in seen[0])
    assert len(set(seen[0])) > 2


def test_thinking_costs_a_step_and_changes_nothing(alfworld: AlfWorld) -> None:
    with alfworld.open(_first(alfworld), 0) as session:
        before = session.choices
        result = session.step(session.normalise("> think: the mug may be on the desk.\n> go"))
        assert (result.observation, result.reward, result.done, result.error) == ("OK.", -1.0, False, None)
        assert session.choices == before
        assert session.outcome().metrics["think"] == session.outcome().metrics["steps"] == 1


def test_impossible_commands_are_told_so_and_counted(alfworld: AlfWorld) -> None:
    with alfworld.open(_first(alfworld), 0) as session:
        for action in ("juggle", "go to moon 1", "Look"):
            result = session.step(action)
            assert result.observation == "Nothing happens." and result.reward == -1.0 and result.error and not result.evidence
        session.step("look")
        outcome = session.outcome()
        assert outcome.metrics["nothing_happens"] == 3 and outcome.metrics["steps"] == 4
        assert "3 of them were impossible" in outcome.feedback


def test_new_data_accept_the_old_spelling(alfworld: AlfWorld) -> None:
    task = _first(alfworld)
    *before, last = alfworld.oracle(task) or ()
    thing, place = last.removeprefix("move ").split(" to ")
    for spelling in (f"put {thing} in/on {place}", f"put {thing} in {place}", f"put {thing} on {place}", last):
        with alfworld.open(task, 0) as session:
            for action in before:
                session.step(action)
            result = session.step(spelling)
            assert result.done and result.observation == f"You move the {thing} to the {place}."
            assert session.outcome().metrics["grammar_translated"] == int(spelling != last)
    assert alfworld.provenance["grammar"] == "move"


def test_old_data_accept_the_new_spelling_and_get_old_examples(old_alfworld: AlfWorld) -> None:
    (task,) = old_alfworld.tasks()
    assert old_alfworld.provenance["grammar"] == "put"
    *before, last = old_alfworld.oracle(task) or ()
    assert last.startswith("put ")
    with old_alfworld.open(task, 0) as session:
        assert "put <object> in/on <receptacle>" in session.instructions and "move <object>" not in session.instructions
        assert "> put fork 1 in/on countertop 1" in session.few_shots[0] and "> move" not in session.few_shots[0]
        for action in before:
            session.step(action)
        thing, place = last.removeprefix("put ").split(" in/on ")
        result = session.step(f"move {thing} to {place}")
        assert result.done and (thing, "location") in {item.key for item in result.evidence}


def test_evidence_tells_where_things_went(alfworld: AlfWorld) -> None:
    task = _first(alfworld, "pick_heat_then_place_in_recep")
    world: dict[tuple[str, str], object] = {}
    solution = alfworld.oracle(task) or ()
    with alfworld.open(task, 0) as session:
        for step, action in enumerate(solution, start=1):
            result = session.step(action)
            assert result.evidence and all(item.observed_at[0] == step for item in result.evidence)
            world.update({item.key: item.value for item in result.evidence})
    thing, place = solution[-1].removeprefix("move ").split(" to ")
    assert world[(thing, "location")] == place and world[(thing, "temperature")] == "hot"
    assert world[("task", "completed")] is True and world[("agent", "holding")] == "nothing"


def test_after_the_end_only_the_outcome_answers(alfworld: AlfWorld) -> None:
    task = _first(alfworld)
    with alfworld.open(task, 0) as session:
        for action in alfworld.oracle(task) or ():
            session.step(action)
        with pytest.raises(RuntimeError, match="over"):
            session.step("look")
    with alfworld.open(task, 0) as left:
        pass
    with pytest.raises(RuntimeError, match="over"):
        left.step("look")
    assert session.outcome().score == 1.0 and left.outcome().score == 0.0


def test_every_attempt_has_a_fresh_world_even_side_by_side(alfworld: AlfWorld) -> None:
    task = _first(alfworld)
    first, *rest = alfworld.oracle(task) or ()
    with alfworld.open(task, 0) as one, alfworld.open(task, 0) as two:
        one.step(first)
        assert one.choices != two.choices
        for action in (first, *rest):
            two.step(action)
        assert two.outcome().success and not one.outcome().success
        for action in rest:
            one.step(action)
        assert one.outcome().success


def test_a_game_that_vanished_is_an_infrastructure_failure(alfworld: AlfWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    task = alfworld.tasks()[0]
    game = alfworld._by_id[task.task_id]
    monkeypatch.setitem(alfworld._by_id, task.task_id, Game(Path("/gone"), game.name, game.family, game.goal, "move", ""))
    with pytest.raises(EnvironmentCrashed, match="/gone cannot be read"), alfworld.open(task, 0):
        pass
    with pytest.raises(EnvironmentCrashed, match="/gone cannot be read"):
        alfworld.oracle(task)


def test_a_game_that_changed_during_the_run_is_not_played(alfworld: AlfWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    task = alfworld.tasks()[0]
    game = alfworld._by_id[task.task_id]
    monkeypatch.setitem(alfworld._by_id, task.task_id, dataclasses.replace(game, sha256="0" * 64))
    with pytest.raises(EnvironmentCrashed, match="has changed"), alfworld.open(task, 0):
        pass


def test_many_attempts_leave_no_files_open_and_map_the_planner_once(alfworld: AlfWorld) -> None:
    def resources() -> tuple[int, int]:
        maps = Path("/proc/self/maps")
        return len(list(Path("/proc/self/fd").iterdir())), sum("libdownward" in line for line in maps.read_text().splitlines())

    task = _first(alfworld, "look_at_obj_in_light")
    with alfworld.open(task, 0):
        pass
    before = resources()
    for seed in range(20):
        with alfworld.open(task, seed) as session:
            session.step("look")
    assert resources() == before


@pytest.mark.parametrize("grammar", ["move", "put"])
@pytest.mark.parametrize("family", FAMILIES)
def test_examples_are_short_and_speak_as_the_engine_does(family: str, grammar: Grammar) -> None:
    (example,) = prompts.few_shots(family, grammar, 1)
    prompt = prompts.instructions(grammar, 30) + example
    assert len(prompt) < 2400  # about 600 tokens, so that an episode fits beside it into 2,000
    lines = example.splitlines()
    feedback = [answer for line, answer in pairwise(lines) if line.startswith("> ")]
    assert feedback and all(read_evidence(text, False, 1) for text in feedback)
    assert prompts.few_shots(family, grammar, 0) == ()
