"""Both hosts with the methods of Table 1 on a few official tasks of each sandboxed benchmark and of BBEH (scripted: no model)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envs.officebench.adapter import OfficeBench, OfficeBenchConfig
from tests.official.test_alfworld import DATA

SANDBOX = "env.sandbox=bubblewrap"
SWEEPS = {
    "officebench": ["experiment=table1_officebench", SANDBOX],
    "kramabench": ["-m", "env=kramabench", "env.domains=[legal]", SANDBOX],
    "bbeh": ["-m", "env=bbeh"],
}
BOTH = ["host=autogen,dylan", "method=none,generative,metagpt,gmemory,sepm", "models=scripted", "run.tasks=2", "-j", "2"]


def memarena(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "HARNESS_DATA": str(DATA), "COLUMNS": "400"}
    command = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SWEEPS))
def test_sepm_and_the_baselines_play_under_both_hosts(name: str, tmp_path: Path) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name} in {DATA}")
    if problems := OfficeBench(OfficeBenchConfig(data_dir=str(DATA / "officebench"), sandbox="bubblewrap")).check():
        pytest.skip(problems[0].what)
    memarena(tmp_path, "run", *SWEEPS[name], *BOTH, f"run.root={tmp_path}")
    runs = json.loads(memarena(tmp_path, "list", "--root", str(tmp_path), "--json"))
    assert len(runs) == 10 and all(run["scored"] == 2 and run["score"] == 1.0 for run in runs)
    if name == "officebench":
        table = memarena(tmp_path, "table", "table1", "--root", str(tmp_path), "--env", "officebench", "--models", "scripted")
        rows = [line for line in table.splitlines() if line.startswith(("| AutoGen", "| DyLAN"))]
        assert "OfficeBench reported" in table and len(rows) == 10
        assert all("n=2 scripted ≠" in row for row in rows)
