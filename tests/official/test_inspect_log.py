"""An exported log in the hands of Inspect's own reader. Needs an interpreter that has inspect-ai: INSPECT_PYTHON=…/bin/python."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.archive.export import export
from harness.run import play
from harness.store.view import RunView
from tests.support.build import played, prepared

PYTHON = os.environ.get("INSPECT_PYTHON")
READER = Path(__file__).with_name("read_inspect_log.py")
pytestmark = pytest.mark.skipif(not PYTHON, reason="INSPECT_PYTHON names no interpreter with inspect-ai")


def test_inspects_reader_opens_our_logs_and_finds_our_numbers(tmp_path: Path) -> None:
    whole = RunView(played(tmp_path, method={"name": "generative"}, run={"name": "whole"}))
    ready = prepared(tmp_path, env={"crashes": {2: 9}}, run={"name": "holes"})
    assert play(ready) == 1
    export([whole, RunView(ready.directory)], "inspect", tmp_path / "out")
    files = [str(tmp_path / "out" / f"{name}.eval") for name in ("whole", "holes")]
    done = subprocess.run([str(PYTHON), str(READER), *files], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert (first["status"], first["task"], first["mean"]) == ("success", "memarena/toy", 1.0)
    assert sum(first["usage"].values()) == whole.usage()[0].total_tokens
    assert sorted(first["summaries"]) == [sample["id"] for sample in first["samples"]] == [f"toy-{i}" for i in range(6)]
    assert all(sample["score"] == 1.0 and sample["roles"][0] == "user" for sample in first["samples"])
    assert all({"sample_init", "model", "tool", "score"} <= set(sample["events"]) for sample in first["samples"])
    broken = second["samples"][2]
    assert (second["status"], broken["score"], broken["retries"]) == ("cancelled", None, 1)
    assert broken["error"] == "EnvironmentCrashed: the panel of toy-2 caught fire"
