from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from envs.alfworld.data import Game, walkthrough
from envs.alfworld.engine import Engine, EnginePool, View
from harness.errors import EnvironmentCrashed


def _trace(engine: Engine, game: Game, seed: int = 0) -> list[View]:
    """The walkthrough with examinations, refused commands and a change of mind in between."""
    views = [engine.start(game.path, seed)]
    for command in walkthrough(game):
        looks = [item for item in views[-1].admissible if item.startswith("examine")][:2]
        views += [engine.step(item) for item in ("look", "inventory", "help", "juggle", *looks, command)]
    return views


def test_the_fast_path_changes_no_word(games: list[Game]) -> None:
    fast, slow = Engine(), Engine(fast=False)
    for game in games[:3]:
        assert _trace(fast, game) == _trace(slow, game)


def test_an_engine_that_was_used_before_plays_as_a_new_one(games: list[Game]) -> None:
    used = Engine()
    used.start(games[1].path, 1)
    used.step(walkthrough(games[1])[0])
    assert _trace(used, games[0]) == _trace(Engine(), games[0])
    assert _trace(used, games[0]) == _trace(used, games[0])


def test_text_does_not_depend_on_the_hash_seed_or_the_case_seed(games: list[Game]) -> None:
    code = (
        "import sys, hashlib, pathlib\nfrom envs.alfworld.engine import Engine\nfrom tests.envs.test_alfworld_engine import _trace\n"
        "from envs.alfworld.data import read_games\n"
        "root = pathlib.Path(sys.argv[1])\ngame = read_games(root, 'valid_unseen')[0]\n"
        "print(hashlib.sha256(repr(_trace(Engine(), game, int(sys.argv[2]))).encode()).hexdigest())"
    )
    root = str(games[0].path.parents[4])
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, root, seed],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_arguments_stdout_and_random_state_are_as_before(
    games: list[Game], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv, stdout = ["memarena", "run"], sys.stdout
    monkeypatch.setattr(sys, "argv", argv)
    random.seed(7)
    np.random.seed(7)
    expected = (random.random(), float(np.random.random()))
    random.seed(7)
    np.random.seed(7)
    engine = Engine()
    _trace(engine, games[0], seed=2**40)
    with pytest.raises(EnvironmentCrashed):
        engine.start(Path("/no/such/game.tw-pddl"), 0)
    assert sys.argv is argv == ["memarena", "run"] and sys.stdout is stdout
    assert (random.random(), float(np.random.random())) == expected
    assert capsys.readouterr() == ("", "")


def test_nothing_stays_patched(games: list[Game]) -> None:
    engine = Engine()
    import fast_downward
    import fast_downward.interface
    from textworld.envs.pddl import textgen

    watched = [
        (fast_downward, "pddl2sas"),
        (fast_downward.interface, "CapturingStdout"),
        (textgen, "_parse_and_convert"),
        (textgen, "Rule"),
        (textgen, "copy_context"),
    ]
    before = [getattr(module, name) for module, name in watched]
    _trace(engine, games[0])
    with pytest.raises(EnvironmentCrashed):
        engine.start(Path("/no/such/game.tw-pddl"), 0)
    assert [getattr(module, name) for module, name in watched] == before


def test_other_threads_keep_their_stdout(games: list[Game], capsys: pytest.CaptureFixture[str]) -> None:
    stop, lines = threading.Event(), 0
    engine = Engine()

    def chatter() -> None:
        nonlocal lines
        while not stop.wait(0.001):
            print("tick")
            lines += 1

    thread = threading.Thread(target=chatter)
    thread.start()
    engine.start(games[0].path, 0)
    stop.set()
    thread.join()
    assert capsys.readouterr().out.count("tick\n") == lines > 0


def test_two_threads_play_two_games_as_one_thread_would(games: list[Game]) -> None:
    alone = [_trace(Engine(), game) for game in games[:2]]
    pool, traces = EnginePool(), {}

    def play(number: int) -> None:
        with pool.borrow() as engine:
            traces[number] = _trace(engine, games[number])

    threads = [threading.Thread(target=play, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [traces[0], traces[1]] == alone


def test_engines_are_used_again_unless_they_failed() -> None:
    pool = EnginePool()
    with pool.borrow() as first, pool.borrow() as second:
        assert first is not second
    with pytest.raises(ZeroDivisionError), pool.borrow() as again:
        raise ZeroDivisionError  # the caller's own error says nothing against the engine
    with pytest.raises(EnvironmentCrashed), pool.borrow() as failed:
        assert failed is again
        failed.start(Path("/no/such/game.tw-pddl"), 0)
    with pool.borrow() as third, pool.borrow() as fourth:
        assert failed not in (third, fourth)


@pytest.mark.parametrize("content", ["", "{}", '{"pddl_domain": "", "grammar": "", "pddl_problem": ""}'])
def test_a_broken_game_is_a_crash_of_the_environment(content: str, tmp_path: Path) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text(content)
    with pytest.raises(EnvironmentCrashed, match="failed at loading"):
        Engine().start(path, 0)


def test_the_engine_has_no_step_limit_of_its_own(games: list[Game]) -> None:
    engine = Engine()
    engine.start(games[0].path, 0)
    assert not any(engine.step("look").won for _ in range(120))


def test_importing_alfworld_leaves_no_directory_and_no_variable(tmp_path: Path) -> None:
    code = (
        "import os\nfrom envs.alfworld.engine import Engine\nEngine()\n"
        "import alfworld\nprint(os.environ.get('ALFWORLD_DATA'), alfworld.ALFWORLD_DATA)"
    )
    bare = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    for given, wanted in (({}, tmp_path / ".cache/alfworld"), ({"ALFWORLD_DATA": str(tmp_path / "x")}, tmp_path / "x")):
        environment = {**bare, "HOME": str(tmp_path), **given}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(given.get("ALFWORLD_DATA")), str(wanted)]
        assert not wanted.exists()
