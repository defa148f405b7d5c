"""Whole streams on generated ALFWorld games under AutoGen: the rows of the ablation, the pool's evolution, resuming."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import main
from harness.compose import compose_one, conf_dir
from harness.config import resolve
from harness.errors import ConfigError, LimitExceeded
from harness.report.inspection import inspect_run
from harness.run import play
from harness.store import canonical
from harness.store.view import RunView
from tests.harness.test_kill import REPEATS, killed_and_resumed_equals_uninterrupted
from tests.methods.sepm.sepm_support import Play, by_role, memory, task
from tests.support.build import played, prepared, scripted, values

GAMES = {"name": "alfworld", "source": "generated"}
COMMON = {"host.autogen.solver", "sepm.plan"}
MEMORY, ALIGNMENT = {"sepm.extract"}, {"sepm.judge_goal"}
TEXT = {"sepm.text.ready", "sepm.text.compare"}
ROWS = {
    "sepm_blackboard": COMMON,
    "sepm_blackboard_memory": COMMON | MEMORY,
    "sepm_blackboard_alignment": COMMON | ALIGNMENT,
    "sepm": COMMON | MEMORY | ALIGNMENT,
    "sepm_textual": COMMON | MEMORY | ALIGNMENT | TEXT,
}


def conf(group: str, name: str) -> dict[str, Any]:
    found = yaml.safe_load((conf_dir() / group / f"{name}.yaml").read_text())
    assert isinstance(found, dict)
    return found


def alfworld(root: Path, **groups: Any) -> Path:
    return played(root, **{"host": {"name": "autogen"}, "env": GAMES, "method": {"name": "sepm"}, **groups})


@pytest.mark.parametrize("row", ROWS)
def test_each_row_changes_exactly_the_intended_roles_r38(row: str, tmp_path: Path) -> None:
    """SEPM-R38: by configuration only, asserted on the ledger; every call has the model key that the paper fixes (SEPM-R16)."""
    directory = alfworld(tmp_path, method=conf("method", row), run={"tasks": 4})
    view = RunView(directory)
    assert {usage.group[0] for usage in view.usage("role")} == ROWS[row]
    assert all(result.success for result in view.tasks())
    keys = {usage.group for usage in view.usage("role", "key") if str(usage.group[0]).startswith("sepm.")}
    wanted = {"sepm.plan": "planner", "sepm.extract": "memory"}
    assert keys == {(role, wanted.get(role, "judge")) for role in ROWS[row] if role.startswith("sepm.")}


def test_the_rows_share_everything_but_their_switches_r38() -> None:
    """SEPM-R38: same retrieval, budgets and update mechanism; the label is the file's name."""
    base = resolve(*compose_one(["method=sepm", "models=scripted"]))[0]
    for row, changed in (
        ("sepm_blackboard", {"procedural": False, "alignment": False}),
        ("sepm_blackboard_memory", {"alignment": False}),
        ("sepm_blackboard_alignment", {"procedural": False}),
        ("sepm_textual", {"graph": "text"}),
    ):
        config = resolve(*compose_one([f"method={row}", "models=scripted"]))[0]
        assert {k: v for k, v in vars(config.method).items() if v != vars(base.method)[k]} == changed
        assert config.choices["method"] == row and config.variant == ""


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_each_row_passes_with_the_embedded_model(row: str, tmp_path: Path) -> None:
    """A model of 135M answers nonsense: named fallbacks, bounded calls, a result."""
    env = {**GAMES, "max_steps": 2, "few_shots": 0}
    models = conf("models", "embedded")
    directory = alfworld(tmp_path, method=conf("method", row), env=env, models=models, run={"tasks": 1})
    (result,) = RunView(directory).tasks()
    assert result.kind == "scored" and result.error is None
    counted = json.loads(sqlite3.connect(directory / "stream.sqlite").execute("SELECT counters FROM sepm_task").fetchone()[0])
    assert counted.get("sepm.plan.malformed", 0) <= 2
    assert sum(usage.calls for usage in RunView(directory).usage("role")) < 20


@pytest.mark.parametrize(("policy", "trials"), [("probation", 0), ("source", 1), ("replay", 1), ("none", 0)])
def test_each_trial_policy_records_its_trials_r34_r35(policy: str, trials: int, tmp_path: Path) -> None:
    """SEPM-R34, SEPM-R35, AMB-1: on one task; a rehearsal's calls are of phase `validate` and its steps are not the task's."""
    view = RunView(alfworld(tmp_path, method={"name": "sepm", "trial_policy": policy}, run={"tasks": 1}))
    (found,) = inspect_run(view)["candidates"]
    assert [t["policy"] for t in found["trials"]] == [policy] * trials
    assert (found["status"] == "promoted") is bool(trials)
    validating = [usage for usage in view.usage("phase") if usage.group == ("validate",)]
    assert len(validating) == (policy == "replay")
    (result,) = view.tasks()
    acting = sum(usage.calls for usage in view.usage("phase") if usage.group == ("act",))
    assert result.steps == acting
    if trials:  # a rehearsal is compared with the episode that it repeats; a first episode has nothing before it
        (trial,) = found["trials"]
        assert (trial["r_baseline"], trial["no_baseline"]) == ((result.score, False) if policy == "replay" else (0.0, True))
    if policy == "replay":
        assert validating[0].calls == result.steps and "rehearsal_step" in (view.directory / "events.jsonl").read_text()


@pytest.mark.parametrize("host", ["dylan", "dylan_original", "autogen_selector", "single"])
def test_it_runs_under_every_host(host: str, tmp_path: Path) -> None:
    view = RunView(alfworld(tmp_path, host={"name": host}, run={"tasks": 2}))
    assert all(result.success and result.error is None for result in view.tasks())


# --- evolution --------------------------------------------------------------------------------------------------------
EVOLVING: dict[str, Any] = {
    "env": {
        **GAMES,
        "families": ["pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep"],
        "games_per_family": 18,
        "max_steps": 22,
        "repeat": 3,
    },
    "models": {**scripted("reader", luck=0.6, hasty=1.0), "name": "scripted-reader"},
    "run": {"order": "shuffled:0"},
}


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One run that several tests look at."""
    yield alfworld(tmp_path_factory.mktemp("evolved"), **EVOLVING)


@pytest.mark.slow
def test_the_pool_evolves_r29_r31(evolved: Path) -> None:
    """Procedures are created, refined, one specialised, one retired, warnings attached; what was not promoted is not in the pool
    (SEPM-R29), and what was superseded is still readable (SEPM-R31)."""
    found = inspect_run(RunView(evolved))
    kinds = [version["kind"] for procedure in found["procedures"] for version in procedure["versions"]]
    assert {"create", "update", "specialize", "warning"} <= set(kinds)
    assert any(not procedure["active"] for procedure in found["procedures"])
    status = {c["id"]: c["status"] for c in found["candidates"]}
    versions = [v for p in found["procedures"] for v in p["versions"] if v["kind"] != "warning"]
    assert all(status[v["candidate"]] == "promoted" for v in versions)
    assert all(
        trial["u"] == pytest.approx(trial["r_candidate"] - trial["r_baseline"] - trial["cost"])
        for c in found["candidates"]
        for trial in c["trials"]
    )
    variant = next(v["content"] for p in found["procedures"] for v in p["versions"] if v["kind"] == "specialize")
    assert variant["variant_of"] and any(step["instruction"].startswith("open ") for step in variant["steps"])


@pytest.mark.slow
def test_it_helps_and_stays_inside_the_envelope(evolved: Path, tmp_path: Path) -> None:
    """METHODS.md 4.11: SEPM's own tokens a task, by role; and the second half of the stream goes better than without memory."""
    calls = {row["role"]: row for row in inspect_run(RunView(evolved))["calls"]}
    assert calls["sepm.plan"]["tokens_per_task"] < 2500 and calls["sepm.extract"]["tokens_per_task"] < 2000
    assert calls["sepm.judge_goal"]["tokens_per_call"] < 250 and calls["sepm.judge_goal"]["calls_per_task"] <= 6
    assert calls["(all)"]["tokens_per_task"] < 5970
    without = alfworld(tmp_path, **{**EVOLVING, "method": {"name": "none"}})
    assert sum(t.score for t in RunView(evolved).tasks()) > sum(t.score for t in RunView(without).tasks())


@pytest.mark.slow
def test_memarena_memory_shows_it(evolved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Versions, differences, warnings, verdicts, trials, costs; graphs in two languages."""
    assert main(["memory", str(evolved)]) == 0
    text = capsys.readouterr().out
    for part in (
        "(retired; ",
        "specialize after task",
        "    +Warning: ",
        "gates: safety=",
        "u=",
        "not qualified",
        "envelope",
        "sepm.extract",
    ):
        assert part in text, part
    assert main(["memory", str(evolved), "--json"]) == 0
    assert {"procedures", "candidates", "tasks", "calls"} <= json.loads(capsys.readouterr().out).keys()
    assert main(["memory", str(evolved), "--graph", "7"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR")
    assert main(["memory", str(evolved), "--graph", "7", "--format", "dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph plan {")
    assert main(["memory", str(evolved), "--graph", "nowhere"]) == 2
    assert "No task 'nowhere'" in capsys.readouterr().err


def test_a_plan_in_prose_and_a_run_without_results_are_no_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = played(tmp_path, method={"name": "sepm", "graph": "text"}, run={"tasks": 1})
    assert main(["memory", str(directory), "--graph", "1", "--format", "dot"]) == 0
    assert "// agent: Press red" in capsys.readouterr().out
    (directory / "stream.sqlite").unlink()
    assert main(["memory", str(directory)]) == 2
    assert "holds no results yet" in capsys.readouterr().err


def test_a_method_with_nothing_to_show_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = played(tmp_path, run={"tasks": 1})
    assert main(["memory", str(directory)]) == 2
    assert "The method none has nothing to show" in capsys.readouterr().err


# --- resuming ---------------------------------------------------------------------------------------------------------
def test_an_empty_pool_at_start_and_the_same_pool_after_resuming_r36(tmp_path: Path) -> None:
    """SEPM-R36: stopped by a limit in the middle of a task and continued, the record is the same to the byte."""
    groups: dict[str, Any] = {"method": {"name": "sepm"}, "env": {"n": 12}, "host": {"name": "autogen"}}
    whole = played(tmp_path, **groups, run={"name": "whole"})
    assert sqlite3.connect(whole / "stream.sqlite").execute("SELECT used FROM sepm_task WHERE task_no = 1").fetchone() == ("[]",)
    with pytest.raises(LimitExceeded):
        play(prepared(tmp_path, **groups, run={"name": "cut", "limits": {"stream": {"calls": 29}}}))
    assert 0 < len(RunView(tmp_path / "cut").tasks()) < 12
    assert play(prepared(tmp_path, **groups, run={"name": "cut"})) == 0
    assert list(canonical.lines(tmp_path / "cut")) == list(canonical.lines(whole))


@pytest.mark.slow
def test_kills_change_nothing_in_the_pool_r36(tmp_path: Path) -> None:
    """SEPM-R36 under `kill -9` at random moments."""
    content = values(tmp_path, env={"n": 40}, method={"name": "sepm"}, host={"name": "autogen"})
    assert killed_and_resumed_equals_uninterrupted(tmp_path, content, longest=0.6, seed=3) >= REPEATS // 4


@pytest.mark.slow
def test_a_resumed_evolution_ends_with_the_identical_pool_r36(evolved: Path, tmp_path: Path) -> None:
    """SEPM-R36 on the games of the evolution: cut twice, at places drawn from a seed."""
    draw = random.Random(4)
    groups = {"host": {"name": "autogen"}, "method": {"name": "sepm"}, **EVOLVING}
    calls = 0
    for _ in range(2):
        calls += draw.randint(60, 200)
        limited = {**EVOLVING["run"], "name": "cut", "limits": {"stream": {"calls": calls}}}
        with pytest.raises(LimitExceeded):
            play(prepared(tmp_path, **{**groups, "run": limited}))
    assert play(prepared(tmp_path, **{**groups, "run": {**EVOLVING["run"], "name": "cut"}})) == 0
    assert list(canonical.lines(tmp_path / "cut")) == list(canonical.lines(evolved))


def test_the_pool_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    digests = set()
    for seed in ("1", "2"):
        code = (
            "from pathlib import Path; from envs.catalogue import CATALOGUE; CATALOGUE['toy'] = 'tests.support.toy:Toy'\n"
            "from tests.support.build import played; from harness.store import canonical\n"
            f"print(canonical.digest(played(Path({str(tmp_path / seed)!r}), method={{'name': 'sepm'}})))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


# --- a pool in a file of its own --------------------------------------------------------------------------------------
def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [line for line in db.iterdump() if "sepm_link" not in line]


@pytest.mark.parametrize("variable", ["TEAM_MEMORY_DB", "SEPM_DB"])
def test_the_pool_s_path_can_be_overridden_r36(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEPM-R36: by TEAM_MEMORY_DB and its alias; the run's own file then holds no pool, and the next run continues this one."""
    monkeypatch.setenv(variable, str(tmp_path / "pool.sqlite"))
    first = played(tmp_path, method={"name": "sepm"}, run={"name": "first"})
    with sqlite3.connect(first / "stream.sqlite") as db:
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sepm_version'").fetchone()
    played(tmp_path, method={"name": "sepm"}, run={"name": "second"})
    with sqlite3.connect(tmp_path / "pool.sqlite") as db:
        assert db.execute("SELECT count(*) FROM sepm_task").fetchone() == (12,)
    monkeypatch.delenv(variable)
    assert inspect_run(RunView(first))["tasks"][-1]["task_no"] == 12


def test_two_streams_cannot_share_a_pool_at_the_same_time_r36(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEPM-R36: separate conditions use separate paths; one clear error otherwise."""
    monkeypatch.setenv("TEAM_MEMORY_DB", str(tmp_path / "pool.sqlite"))
    held = memory(db=sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None))
    with pytest.raises(ConfigError, match="is used by another stream"):
        memory(db=sqlite3.connect(tmp_path / "b.sqlite", isolation_level=None, timeout=0.1))
    held.services.db.close()
    memory(db=sqlite3.connect(tmp_path / "b.sqlite", isolation_level=None))


def test_a_pool_that_missed_the_last_commit_catches_up_and_another_one_is_refused_r36(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEPM-R36, exactly once: SQLite commits attached files one after another; the statements of the last task are replayed."""
    path = tmp_path / "pool.sqlite"
    monkeypatch.setenv("TEAM_MEMORY_DB", str(path))
    copies = []
    for number in range(3):
        db = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
        method = memory(by_role({}), db=db)
        db.execute("BEGIN IMMEDIATE")
        play_one(method, number)
        db.execute("COMMIT")
        db.close()
        copies.append(path.read_bytes())
        expected = dump(path)
    path.write_bytes(copies[1])
    db = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    memory(by_role({}), db=db)
    db.close()
    assert dump(path) == expected
    path.write_bytes(copies[0])
    with pytest.raises(ConfigError, match="holds 1 tasks of this stream, the stream has played 3"):
        memory(by_role({}), db=sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None))


def play_one(method: Any, number: int) -> None:
    play = Play(method, task(number), frozenset(), "A")
    play.do("A", "look")
    method.pool.commit_version(f"c{number}", None, procedure_of(number), "create", number + 1)
    play.end()


def procedure_of(number: int) -> Any:
    from tests.methods.sepm.sepm_support import procedure

    return procedure(f"procedure {number}")
