from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from envs.alfworld import adapter, data
from envs.alfworld.adapter import AlfWorld, AlfWorldConfig
from envs.alfworld.data import FAMILIES, GAMES, Game
from harness.contracts import Task
from harness.errors import ConfigError, SetupError

ROOT = Path(__file__).parents[2]


def _copied(games_root: Path, to: Path, *, manifest: bool) -> Path:
    shutil.copytree(games_root, to)
    if not manifest:
        (to / data.MANIFEST).unlink()
    return to


def test_the_yaml_holds_the_values_of_the_dataclass() -> None:
    assert yaml.safe_load((ROOT / "conf/env/alfworld.yaml").read_text()) == dataclasses.asdict(AlfWorldConfig())


def test_making_the_environment_imports_no_engine_and_writes_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom envs.alfworld.adapter import AlfWorld\nworld = AlfWorld()\nassert world.max_steps == 30\nworld.check()\n"
        "print([name for name in ('alfworld', 'textworld', 'fast_downward', 'numpy', 'omegaconf') if name in sys.modules])"
    )
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], env=home, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "") and list(tmp_path.iterdir()) == []


def _restate(root: Path) -> None:
    """Let the manifest say that the games below `root` are as they shall be."""
    path = root / data.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "files": data.files_below(root)}))


def _game(**kw: object) -> bytes:
    return json.dumps({"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", **kw}).encode()


def test_tasks_are_numbered_in_order_and_keyed_for_memories(alfworld: AlfWorld) -> None:
    tasks = alfworld.tasks()
    assert [task.index for task in tasks] == list(range(12))
    assert sorted(task.family for task in tasks) == sorted([*FAMILIES] * 2)
    for task in tasks:
        assert task.key == f"{task.family}-{task.goal.rstrip('.')}" and task.goal.endswith(".")
        assert task.task_id.startswith(f"{task.family}-") and task.group == task.family
    assert list(alfworld.tasks()) == list(tasks)


def test_the_order_is_a_shuffle_that_does_not_depend_on_the_file_system() -> None:
    names = [f"pick_and_place_simple-A-None-B-{number}/trial" for number in range(10)]
    assert data.official_order(names) == data.official_order(names[::-1]) != sorted(names)


def test_digest_and_provenance_tell_generated_games_apart(
    alfworld: AlfWorld, config: AlfWorldConfig, games_root: Path, tmp_path: Path
) -> None:
    assert len(alfworld.data_digest) == 64 and AlfWorld(config).data_digest == alfworld.data_digest
    assert alfworld.provenance["source"] == "generated" and alfworld.provenance["games"] == 12
    assert alfworld.provenance["packages"]["textworld"].startswith("1.")
    copy = _copied(games_root, tmp_path / "copy", manifest=True)
    game = data.read_games(copy, "valid_unseen")[0].path
    game.write_bytes(game.read_bytes().replace(b"agent1", b"agent2", 1))
    _restate(copy)
    assert data.digest(data.read_games(copy, "valid_unseen")) != alfworld.data_digest


def test_auto_takes_official_data_where_there_are_some(
    config: AlfWorldConfig, games_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auto = dataclasses.replace(config, source="auto")
    assert AlfWorld(auto).provenance["source"] == "generated"
    _copied(games_root, tmp_path / "official", manifest=False)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "official"))
    monkeypatch.setattr(data, "OFFICIAL_COUNTS", {"valid_unseen": 12})
    world = AlfWorld(auto)
    assert world.provenance["source"] == "official" and world.check() == [] and len(world.tasks()) == 12


def test_harness_data_goes_before_alfworlds_own_variable() -> None:
    assert data.data_root({"HARNESS_DATA": "/a", "ALFWORLD_DATA": "/b"}) == Path("/a/alfworld")
    assert data.data_root({"HARNESS_DATA": "", "ALFWORLD_DATA": "/b"}) == Path("/b")
    assert data.data_root({}) == Path.home() / ".cache/alfworld"


def test_missing_official_data_is_one_problem_with_its_remedy() -> None:
    world = AlfWorld(AlfWorldConfig(source="official"))
    (problem,) = world.check()
    assert "no ALFWorld games" in problem.what and "make data-alfworld" in problem.fix
    with pytest.raises(SetupError, match="make data-alfworld"):
        world.tasks()


def test_an_incomplete_split_is_refused(games_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _copied(games_root, tmp_path / "part", manifest=False)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "part"))
    world = AlfWorld(AlfWorldConfig(source="auto"))
    assert "12 of the split's 134 games" in world.check()[0].what
    with pytest.raises(SetupError, match="12 of the split's 134"):
        world.tasks()


def test_generated_games_do_not_pass_for_official_ones(games_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(games_root))
    world = AlfWorld(AlfWorldConfig(source="official"))
    assert "generated" in world.check()[0].what
    with pytest.raises(SetupError):
        world.tasks()


def test_games_that_a_user_generated_are_played_from_the_data_root(games_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(games_root))
    world = AlfWorld(AlfWorldConfig(source="auto"))
    assert world.check() == [] and len(world.tasks()) == 12
    assert world.provenance["source"] == "generated" and world.provenance["generator"]["seed"] == 11


def test_missing_packages_are_named_with_the_command(alfworld: AlfWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    real = adapter.importlib.util.find_spec
    monkeypatch.setattr(adapter.importlib.util, "find_spec", lambda name: None if name == "textworld" else real(name))
    (problem,) = alfworld.check()
    assert "textworld" in problem.what and problem.fix == "pip install '.[alfworld]'"


def test_games_that_ask_for_other_kinds_of_task_are_left_out() -> None:
    assert data.family_of("pick_cool_then_place_in_recep-AppleSliced-None-Microwave-10/t") is None
    assert data.family_of("pick_and_place_with_movable_recep-Pen-Bowl-Desk-308/t") is None
    assert data.family_of("pick_heat_then_place_in_recep-Apple-None-Fridge-10/t") == "pick_heat_then_place_in_recep"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "not an ALFWorld game"),
        (b'{"pddl_domain": 1}', "not an ALFWorld game"),
        (b"[]", "not an ALFWorld game"),
        (_game(walkthrough=5), "walkthrough is no list"),
        (_game(walkthrough=[1]), "walkthrough"),
    ],
)
def test_a_damaged_file_is_named(content: bytes, complaint: str, games_root: Path, tmp_path: Path) -> None:
    copy = _copied(games_root, tmp_path / "copy", manifest=True)
    path = next((copy / GAMES).rglob("game.tw-pddl"))
    path.write_bytes(content)
    with pytest.raises(SetupError, match=complaint) as caught:
        data.read_games(copy, "valid_unseen")
    assert str(path) in str(caught.value)


def test_a_game_marked_unsolvable_is_not_played(games: list[Game], games_root: Path, tmp_path: Path) -> None:
    copy = _copied(games_root, tmp_path / "copy", manifest=True)
    path = copy / games[0].path.relative_to(games_root)
    path.write_text(path.read_text().replace('"solvable": true', '"solvable": false'))
    _restate(copy)
    assert len(data.read_games(copy, "valid_unseen")) == len(games) - 1


@pytest.mark.parametrize(
    "values",
    [{"split": "test"}, {"source": "web"}, {"max_steps": 0}, {"few_shots": 2}, {"families": ["cook"]}, {"games_per_family": 0}],
)
def test_values_that_make_no_sense_are_refused_before_anything_is_read(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        AlfWorld(AlfWorldConfig(**values))  # type: ignore[arg-type]


def test_a_task_of_another_split_is_refused(alfworld: AlfWorld) -> None:
    with pytest.raises(ConfigError, match="no task"), alfworld.open(Task("x", 0, "", "", ""), 0):
        pass


def test_a_problems_fix_is_a_plain_command(games_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = data.problems(games_root, "valid_unseen") + data.problems(tmp_path, "valid_unseen")
    _copied(games_root, tmp_path / "part", manifest=False)
    problems += data.problems(tmp_path / "part", "valid_unseen")
    assert len(problems) == 3
    assert all(problem.fix.startswith("make data-alfworld") and not problem.fix.endswith(".") for problem in problems)


@pytest.mark.parametrize("how", ["missing", "changed", "too many"])
def test_generated_games_that_are_not_as_they_were_made_are_refused(
    games_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    copy = _copied(games_root, tmp_path / "copy", manifest=True)
    path = sorted((copy / GAMES).rglob("game.tw-pddl"))[3]
    if how == "missing":
        path.unlink()
    elif how == "changed":
        path.write_bytes(path.read_bytes().replace(b"agent1", b"agent2", 1))
    else:
        shutil.copytree(path.parent, path.parent.with_name("trial_zzz"))
    monkeypatch.setenv("ALFWORLD_DATA", str(copy))
    with pytest.raises(SetupError, match=f"damaged: .* files {how}, first {GAMES}") as caught:
        AlfWorld(AlfWorldConfig(source="auto")).tasks()
    assert str(copy) in str(caught.value)


def test_the_provenance_does_not_list_the_files(alfworld: AlfWorld) -> None:
    assert "files" not in alfworld.provenance["generator"]
