"""The `memarena` command, as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.build import played

HEAVY = (
    "hydra",
    "omegaconf",
    "litellm",
    "pandas",
    "matplotlib",
    "alfworld",
    "textworld",
    "numpy",
    "scipy",
    "autogen_agentchat",
    "tqdm",
)


def memarena(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**{key: value for key, value in os.environ.items() if key != "HARNESS_DATA"}, **environment}
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("what", ["import harness", "import harness.contracts", "from harness.cli import main; main(['--help'])"])
def test_help_imports_nothing_heavy(what: str) -> None:
    code = (
        f"import sys\ntry:\n {what}\nexcept SystemExit: pass\nprint([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_every_subcommand_has_help(tmp_path: Path) -> None:
    for command in ("run", "show", "list", "table", "doctor"):
        done = memarena(command, "--help", cwd=tmp_path)
        assert done.returncode == 0 and "usage: memarena" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "method=metagtp", "models=scripted"), "Unknown method 'metagtp'. Did you mean metagpt or metagpt_pool?"),
        (("run", "run.sed=1", "models=scripted"), "Unknown key run.sed. Did you mean seed?"),
        (("run", "run.tasks=abc", "models=scripted"), "run.tasks: Value 'abc' of type 'str' could not be converted to Integer."),
        (("run", "env.source=official", "models=scripted"), "make data-alfworld"),
        (("run", "models=gpt-5-mini"), "OPENAI_API_KEY"),
        (("run", "-m", "method=none,nonne", "models=scripted"), "Unknown method 'nonne'. Did you mean none?"),
        (("run", "run.replay.mode=rplay", "models=scripted"), "Did you mean replay?"),
        (("run", "run.replay.mode=replay", "models=scripted", "run.tasks=1"), "recordings"),
        (("show", "nothing-here"), "is not a run"),
        (("table", "tabel1"), "Did you mean table1"),
    ],
)
def test_bad_input_is_one_clear_line_before_anything_is_spent(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = memarena(*arguments, cwd=tmp_path, OPENAI_API_KEY="", ALFWORLD_DATA=str(tmp_path / "none"))
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("memarena: ") and message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("**/stream.sqlite")) or "replay" in " ".join(arguments)


def test_show_and_list_and_table_read_a_run(tmp_path: Path) -> None:
    directory = played(tmp_path / "results" / "runs", method={"name": "generative"}, run={"name": "mine"})
    shown = memarena("show", "mine", cwd=tmp_path)
    assert shown.returncode == 0 and "scripted" in shown.stdout
    found = json.loads(memarena("show", str(directory), "--json", cwd=tmp_path).stdout)
    assert found["scripted"] is True
    assert "mine" in memarena("list", cwd=tmp_path).stdout
    table = memarena("table", "table1", "--env", "alfworld", cwd=tmp_path)
    assert "89.55" in table.stdout and "reported" in table.stdout
    assert memarena("table", "table1", "--format", "latex", cwd=tmp_path).stdout.count("tabular") == 2


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        f"{sys.executable} -m harness table table1 | head -1",
        shell=True,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err


def test_a_sweep_plays_each_stream_in_its_own_process_and_skips_what_is_finished(tmp_path: Path) -> None:
    arguments = ("run", "-m", "-j", "2", "method=none,metagpt", "models=scripted", "run.tasks=1", "env.source=generated")
    first = memarena(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    names = sorted(path.name for path in (tmp_path / "results" / "runs").iterdir())
    assert names == [f"alfworld-autogen-{method}-scripted-s0-env.source-generated" for method in ("metagpt", "none")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]
    assert memarena(*arguments, cwd=tmp_path).stdout.count("finished before") == 2


def test_a_point_of_a_sweep_that_is_wrong_stops_it_before_the_first_stream(tmp_path: Path) -> None:
    done = memarena("run", "-m", "env.max_steps=5,many", "models=scripted", cwd=tmp_path)
    assert done.returncode == 2 and "env.max_steps" in done.stderr
    assert not (tmp_path / "results").exists()


def test_the_composed_configuration_can_be_printed(tmp_path: Path) -> None:
    done = memarena("run", "--cfg", "models=scripted", "run.seed=7", cwd=tmp_path)
    assert done.returncode == 0 and "seed: 7" in done.stdout


def test_doctor_tells_what_is_there_and_what_mends_the_rest(tmp_path: Path) -> None:
    done = memarena("doctor", cwd=tmp_path, OPENAI_API_KEY="")
    assert done.returncode == 0, done.stderr
    assert "env alfworld" in done.stdout and "OPENAI_API_KEY" in done.stdout
    needed = memarena("doctor", "models=gpt-5-mini", "--json", cwd=tmp_path, OPENAI_API_KEY="")
    assert needed.returncode == 1
    assert any(finding["level"] == "missing" for finding in json.loads(needed.stdout))
    assert memarena("doctor", "models=scripted", "env.source=generated", cwd=tmp_path).returncode == 0
