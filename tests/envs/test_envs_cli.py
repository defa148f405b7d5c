from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from envs import cli
from envs.alfworld.adapter import AlfWorld, AlfWorldConfig
from tests.envs.conftest import PER_FAMILY, SEED


@pytest.fixture
def options(cache_dir: Path, games_root: Path) -> list[str]:
    values = {"source": "generated", "generated_seed": SEED, "games_per_family": PER_FAMILY, "repeat": 1, "cache_dir": cache_dir}
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


def _run(*arguments: str) -> int:
    return cli.main(AlfWorld, arguments)


def test_list_names_the_tasks_in_order(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("list", "--limit", "3", *options) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["0", "1", "2"]
    assert _run("list", "--json", *options) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["index"] for row in rows] == list(range(12)) and all(row["goal"] for row in rows)


def test_the_last_line_of_oracle_and_noop_is_their_score(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for command, solved in (("oracle", 3), ("noop", 0)):
        assert _run(command, "--limit", "3", "--json", *options) == 0
        out, err = capsys.readouterr()
        last = json.loads(out.splitlines()[-1])
        assert set(last) == {"n", "solved", "score", "seconds"}
        assert (last["n"], last["solved"], last["score"]) == (3, solved, solved / 3) and err == ""
    assert _run("oracle", "--limit", "1", *options) == 0
    assert "1 of 1 solved" in capsys.readouterr().out


def test_a_person_can_play_and_win(
    alfworld: AlfWorld, options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    solution = alfworld.oracle(alfworld.tasks()[3]) or ()
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(["?", "", "juggle", *solution, "never read"]) + "\n"))
    assert _run("play", "3", *options) == 0
    out = capsys.readouterr().out
    assert "Your task is to:" in out and "\ninventory\n" in out and "Nothing happens." in out
    assert out.endswith(f"The task is completed after {len(solution) + 1} steps. 1 of them were impossible commands. Score 1.\n")


@pytest.mark.parametrize(
    ("said", "score"), [("look\nq\nlook\n", "After 1 steps"), ("look\n", "After 1 steps"), ("", "After 0 steps")]
)
def test_quitting_and_the_end_of_a_pipe_end_the_game(
    said: str, score: str, options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    assert _run("play", "0", *options) == 0
    assert score in capsys.readouterr().out.splitlines()[-1]


def test_play_ends_with_the_last_step(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("look\n" * 9))
    assert _run("play", "0", "--set", "max_steps=4", *options) == 0
    assert "That was the last step.\nAfter 4 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["play", "99"], "There is no task 99"),
        (["play", "-1"], "There is no task -1"),
        (["oracle", "--limit", "0"], "--limit 0"),
        (["list", "--split", "test"], "env.split is 'test'"),
        (["list", "--set", "sauce=auto"], "no such key"),
        (["list", "--set", "max_steps"], "no such key"),
        (["list", "--set", "max_steps=many"], "--set: "),
        (["list", "--set", "families=[cook]"], "unknown family 'cook'"),
        (["list", "--set", "source=official"], "make data-alfworld"),
    ],
)
def test_bad_input_is_one_line_and_a_bad_exit(
    arguments: list[str], complaint: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(arguments[0], *options, *arguments[1:]) == 2
    out, err = capsys.readouterr()
    assert out == "" and complaint in err and err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["dance"], ["play", "one"], ["oracle", "--limit"]])
def test_misspelt_commands_are_one_line_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        _run(*arguments)
    out, err = capsys.readouterr()
    assert caught.value.code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1


def test_an_oracle_that_fails_shows_in_the_exit_code(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(AlfWorld, "oracle", lambda self, task: ["look"])
    assert _run("oracle", "--limit", "2", "--json", *options) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["solved"] == 0 and err.count("not solved: ") == 2
    monkeypatch.setattr(AlfWorld, "oracle", lambda self, task: None)
    assert _run("oracle", "--limit", "2", *options) == 2
    assert "no oracle for task 0" in capsys.readouterr().err


def test_generated_games_are_played_as_the_message_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from envs.alfworld.__main__ import GENERATE

    out = tmp_path / "mine"
    options = ["generate", "--out", str(out), "--per-family", "1", "--families", "look_at_obj_in_light", "--split", "train"]
    assert cli.main(AlfWorld, options, extra=(GENERATE,)) == 0
    said = capsys.readouterr().out.strip().rpartition("ALFWORLD_DATA=")[2].split()
    assert said[1:4] == ["python", "-m", "envs.alfworld"]
    monkeypatch.setenv("ALFWORLD_DATA", said[0])
    assert _run(*said[4:]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_generate_refuses_a_used_directory_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "envs.alfworld", "generate", "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stderr == f"error: {tmp_path} is not empty. Name a new directory.\n"


def test_a_reader_that_stops_early_is_no_error(options: list[str]) -> None:
    command = [sys.executable, "-m", "envs.alfworld", "list", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize("text", ["families=[a", "few_shots=${foo}", "families={", "few_shots=${oc.env:NO_SUCH_VARIABLE}"])
def test_a_value_that_cannot_be_read_is_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(AlfWorld, ["list", "--set", text]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: --set {text}: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_no_obstacle(closed: str, config: AlfWorldConfig) -> None:
    settings = f"--set source=generated --set cache_dir={config.cache_dir} --set generated_seed={config.generated_seed}"
    more = f"--set games_per_family={config.games_per_family} --set repeat=1 --limit 1"
    command = f"{sys.executable} -m envs.alfworld oracle {settings} {more} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
