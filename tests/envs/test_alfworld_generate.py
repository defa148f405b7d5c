from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.alfworld import generate as generate_module
from envs.alfworld import generate_world
from envs.alfworld.data import FAMILIES, GAMES, MANIFEST, Game, read_games, walkthrough
from envs.alfworld.generate import Recipe, ensure, generate
from envs.alfworld.generate_world import TWO, Goal, World, build, goals_of
from harness.errors import ConfigError, EnvironmentCrashed, SetupError
from harness.seeds import rng
from tests.envs.conftest import PER_FAMILY, SEED

MAKE_ENSURED = (
    "import sys, pathlib\nfrom envs.alfworld.generate import Recipe, ensure\n"
    "print(ensure(pathlib.Path(sys.argv[1]), Recipe(seed=5, per_family=1, families=('look_at_obj_in_light',))))"
)


def _bytes(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


def _any_world(family: str, seed: int) -> World:
    goals = goals_of(family)
    return build(goals[seed % len(goals)], rng(seed, "room"), rng(seed, "trial"))


def test_the_same_seed_gives_the_same_bytes_in_another_process(games_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    command = [sys.executable, "-m", "envs.alfworld", "generate", "--out", str(out), "--seed", str(SEED)]
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    done = subprocess.run([*command, "--per-family", str(PER_FAMILY)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert _bytes(out) == _bytes(games_root)


def test_another_seed_gives_other_games(games: list[Game], tmp_path: Path) -> None:
    generate(tmp_path / "other", Recipe(seed=SEED + 1, per_family=1, families=("pick_two_obj_and_place",)))
    other = read_games(tmp_path / "other", "valid_unseen")
    assert not {game.sha256 for game in other} & {game.sha256 for game in games}


def test_games_of_all_families_are_there_in_their_numbers(games: list[Game]) -> None:
    assert sorted(game.family for game in games) == sorted([*FAMILIES] * PER_FAMILY)
    assert len({game.goal for game in games}) > len(FAMILIES)
    assert {game.grammar for game in games} == {"move"}


def test_stored_walkthroughs_are_short(games: list[Game]) -> None:
    assert all(4 <= len(walkthrough(game)) <= 12 for game in games)


@given(st.sampled_from(FAMILIES), st.integers(0, 10**6))
def test_no_goal_holds_at_the_start_and_every_solution_is_short(family: str, seed: int) -> None:
    world = _any_world(family, seed)
    target = world.goal.target
    for item in world.things:
        at = world.receptacles[item.place].kind
        assert item.kind == "DeskLamp" or at in generate_world.PLACES_OF[item.kind]
        assert not (item.kind == world.goal.thing and at == target)
    commands = generate_world.walkthrough(world)
    assert 4 <= len(commands) <= 12
    assert len({(item.kind, item.number) for item in world.things}) == len(world.things)
    assert [world.things[index].kind for index in world.wanted] == [world.goal.thing] * (2 if family == TWO else 1)


def test_repeated_trials_share_goal_room_and_places_but_not_the_rest(tmp_path: Path) -> None:
    goal = Goal("pick_cool_then_place_in_recep", "kitchen", "Apple", "CounterTop")
    one, two = (build(goal, rng(1, "room"), rng(1, "trial", number)) for number in range(2))
    assert one.receptacles == two.receptacles and (one.target, one.tool) == (two.target, two.tool)
    assert [one.things[index].place for index in one.wanted] == [two.things[index].place for index in two.wanted]
    assert one.things != two.things

    generate(tmp_path / "out", Recipe(seed=2, per_family=4, families=("look_at_obj_in_light",), repeat=2))
    names = sorted(game.name for game in read_games(tmp_path / "out", "valid_unseen"))
    assert len({name.split("/")[0] for name in names}) == 2 and len(names) == 4


def test_splits_and_families_do_not_share_rooms() -> None:
    worlds = [
        [str(world) for _, _, world, _ in generate_module._worlds(Recipe(1, 2, split=split))]
        for split in ("train", "valid_unseen")
    ]
    assert not set(worlds[0]) & set(worlds[1])


def test_alfworlds_own_loader_accepts_the_games(games_root: Path, games: list[Game]) -> None:
    from envs.alfworld.engine import Engine

    Engine()  # imports alfworld without its side effects
    from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv

    path = str(games_root / GAMES / "valid_unseen")
    config = {
        "dataset": {"eval_ood_data_path": path, "num_eval_games": -1},
        "env": {"task_types": [1, 2, 3, 4, 5, 6], "goal_desc_human_anns_prob": 0.0},
    }
    loaded = AlfredTWEnv(config, train_eval="eval_out_of_distribution")
    assert sorted(loaded.game_files) == sorted(str(game.path) for game in games)


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(SetupError, match="not empty"):
        generate(tmp_path, Recipe(per_family=1))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_set_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EnvironmentCrashed("the second game cannot be won")

    real = generate_module.verify
    calls: list[object] = []

    def second_fails(*arguments: object) -> None:
        calls.append(arguments)
        (real if len(calls) == 1 else fail)(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(generate_module, "verify", second_fails)
    with pytest.raises(EnvironmentCrashed):
        generate(tmp_path / "out", Recipe(per_family=2, families=("look_at_obj_in_light",)))
    assert list(tmp_path.iterdir()) == []


def test_a_game_that_cannot_be_won_is_found(games: list[Game]) -> None:
    from envs.alfworld.engine import Engine

    commands = walkthrough(games[0])
    for wrong in (commands[:-1], [*commands, "look"], ["fly to moon 1", *commands]):
        with pytest.raises(EnvironmentCrashed):
            generate_module.verify(games[0].path, wrong, Engine())


def test_two_processes_that_need_the_same_games_do_not_clash(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKE_ENSURED, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    paths = {out.strip() for out, _ in outputs}
    assert len(paths) == 1 and [path.name for path in tmp_path.iterdir()] == [Path(paths.pop()).name]


def test_the_loser_of_the_race_takes_the_winners_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(seed=5, per_family=1, families=("look_at_obj_in_light",))
    real = generate_module.generate

    def slower(out: Path, recipe: Recipe) -> None:
        real(out, recipe)  # another process finishes between our look and our rename
        real(out, recipe)

    monkeypatch.setattr(generate_module, "generate", slower)
    path = ensure(tmp_path, recipe)
    assert (path / MANIFEST).is_file() and list(tmp_path.iterdir()) == [path]


def test_the_cache_is_used_again_and_depends_on_the_recipe(
    games_root: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate_module, "generate", lambda *_: pytest.fail("made the games again"))
    assert ensure(cache_dir, Recipe(SEED, PER_FAMILY, repeat=1)) == games_root
    paths = {
        generate_module.cache_path(cache_dir, recipe)
        for recipe in (Recipe(), Recipe(seed=1), Recipe(repeat=3), Recipe(families=FAMILIES[:1]), Recipe(split="train"))
    }
    assert len(paths) == 5


def test_what_killed_processes_left_is_swept_away_but_not_work_under_way(tmp_path: Path) -> None:
    old, new = tmp_path / ".alfworld-games-x.building-old", tmp_path / ".alfworld-games-x.building-new"
    for path in (old, new):
        (path / "json_2.1.1").mkdir(parents=True)
    os.utime(old, (0, 0))
    generate_module._sweep(tmp_path)
    assert not old.exists() and new.exists()


def test_the_manifest_says_what_the_games_are_made_from(games_root: Path) -> None:
    manifest = json.loads((games_root / MANIFEST).read_text())
    assert manifest["seed"] == SEED and manifest["generator"] == "memarena-alfworld" and len(manifest["domain"]) == 64


@pytest.mark.parametrize("values", [{"per_family": 0}, {"repeat": 0}, {"families": ()}, {"families": ("cook",)}])
def test_recipes_that_make_no_sense_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Recipe(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["game deleted", "game cut short", "no list of files"])
def test_a_damaged_cache_is_made_again_byte_for_byte(tmp_path: Path, how: str) -> None:
    recipe = Recipe(seed=5, per_family=2, families=("look_at_obj_in_light",))
    root = ensure(tmp_path, recipe)
    before = _bytes(root)
    game = next((root / GAMES).rglob("game.tw-pddl"))
    if how == "game deleted":
        game.unlink()
    elif how == "game cut short":
        game.write_bytes(game.read_bytes()[:-100])
    else:
        manifest = json.loads((root / MANIFEST).read_text())
        del manifest["files"]
        (root / MANIFEST).write_text(json.dumps(manifest))
    assert ensure(tmp_path, recipe) == root
    assert _bytes(root) == before
    assert [path.name for path in tmp_path.iterdir()] == [root.name]


def test_a_whole_cache_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(seed=5, per_family=1, families=("look_at_obj_in_light",))
    root = ensure(tmp_path, recipe)
    monkeypatch.setattr(generate_module, "generate", None)
    assert ensure(tmp_path, recipe) == root
