"""`memarena export`: three tables with stable columns, and logs in Inspect's format."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harness.archive.export import export
from harness.archive.export.tables import CALLS, STEPS, TASKS
from harness.cli import main
from harness.errors import SetupError, UserError
from harness.run import play
from harness.store.view import RunView
from tests.support.build import played, prepared, scripted

COLUMNS = {
    "tasks": "run host method env models variant run_seed position task_index task_id family task_group task_seed kind score success"
    " status steps late error feedback metrics calls input_tokens cached_input_tokens output_tokens reasoning_tokens cost_usd seconds"
    " attempts",
    "steps": "run position task_id step agent action observation reward done error",
    "calls": "run position task_index task_id step role agent phase key kind endpoint model attempt ok input_tokens"
    " cached_input_tokens output_tokens reasoning_tokens usage_source cost_usd latency_s replayed constrained digest occurrence error",
}


@pytest.fixture
def holes(tmp_path: Path) -> RunView:
    """Six tasks, of which the third fails for reasons of infrastructure, twice."""
    ready = prepared(tmp_path / "runs", env={"crashes": {2: 9}}, run={"name": "holes"})
    assert play(ready) == 1
    return RunView(ready.directory)


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class TestTables:
    def test_the_columns_are_those_of_the_documentation(self) -> None:
        """Columns may be added at the end; a changed or a missing one breaks somebody's notebook."""
        for name, columns in (("tasks", TASKS), ("steps", STEPS), ("calls", CALLS)):
            assert list(columns)[: len(COLUMNS[name].split())] == COLUMNS[name].split(), name
        page = (Path(__file__).resolve().parents[3] / "docs/how-to/export.md").read_text()
        for names in COLUMNS.values():
            assert [name for name in names.split() if f"`{name}`" not in page] == []

    def test_they_hold_what_the_run_holds(self, recorded: Path, tmp_path: Path) -> None:
        view = RunView(recorded)
        found = export([view], "csv", tmp_path / "out")
        (used,) = view.usage(method_only=True)
        assert found["files"] == {"tasks.csv": 6, "steps.csv": 12, "calls.csv": view.usage()[0].calls}
        tasks, steps, calls = (table(tmp_path / "out", name) for name in ("tasks", "steps", "calls"))
        assert [task["task_id"] for task in tasks] == [f"toy-{i}" for i in range(6)]
        assert {(task["score"], task["success"], task["kind"], task["cost_usd"]) for task in tasks} == {
            ("1.0", "true", "scored", "0.0")
        }
        assert sum(int(task["input_tokens"]) + int(task["output_tokens"]) for task in tasks) == used.total_tokens
        assert steps[0] | {"observation": ""} == {
            "run": "r", "position": "0", "task_id": "toy-0", "step": "1", "agent": "agent", "action": "press red", "observation": "",
            "reward": "0.0", "done": "false", "error": "",
        }  # fmt: skip
        assert {call["role"] for call in calls} >= {"host.single.agent", "memory.generative.embed"}

    def test_an_infrastructure_failure_is_a_row_without_a_score(self, holes: RunView, tmp_path: Path) -> None:
        export([holes], "csv", tmp_path / "out")
        last = table(tmp_path / "out", "tasks")[-1]
        assert (last["position"], last["task_id"], last["kind"], last["attempts"]) == ("2", "toy-2", "infra_failure", "2")
        assert last["score"] == last["success"] == last["cost_usd"] == ""

    def test_steps_of_attempts_that_came_to_nothing_are_left_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from harness.errors import EnvironmentCrashed
        from tests.support.toy import ToySession

        original, left = ToySession.outcome, [1]

        def outcome(self: ToySession) -> Any:
            if left.pop() if left else 0:
                raise EnvironmentCrashed("the grader caught fire")
            return original(self)

        monkeypatch.setattr(ToySession, "outcome", outcome)
        view = RunView(played(tmp_path))
        assert [attempt["kind"] for attempt in view.attempts()][:2] == ["infra_failure", "committed"]
        assert export([view], "csv", tmp_path / "out")["files"]["steps.csv"] == 12

    def test_several_runs_stand_in_one_table(self, tmp_path: Path) -> None:
        runs = [RunView(played(tmp_path, run={"seed": seed, "name": f"s{seed}"})) for seed in (0, 1)]
        export(runs, "csv", tmp_path / "out")
        assert [row["run"] for row in table(tmp_path / "out", "tasks")] == ["s0"] * 6 + ["s1"] * 6
        with pytest.raises(UserError, match="A run is named twice"):
            export([runs[0], runs[0]], "csv", tmp_path / "other")

    def test_parquet_has_types_and_nulls(self, holes: RunView, tmp_path: Path) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        export([holes], "parquet", tmp_path / "out")
        read = parquet.read_table(tmp_path / "out" / "tasks.parquet")
        assert read.schema.names == COLUMNS["tasks"].split()
        kinds = {name: str(read.schema.field(name).type) for name in ("run", "position", "score", "success")}
        assert kinds == {"run": "string", "position": "int64", "score": "double", "success": "bool"}
        assert read.column("score").to_pylist() == [1.0] * 5 + [None]
        assert parquet.read_table(tmp_path / "out" / "calls.parquet").num_rows == holes.usage()[0].calls

    def test_without_the_library_parquet_says_what_to_do_and_leaves_nothing(
        self, holes: RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(SetupError, match=r"Parquet needs the package pyarrow\. pip install pyarrow, or use --format csv"):
            export([holes], "parquet", tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []

    def test_nothing_is_overwritten(self, holes: RunView, tmp_path: Path) -> None:
        export([holes], "csv", tmp_path / "out")
        before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
        with pytest.raises(UserError, match=r"tasks\.csv exists"):
            export([holes], "csv", tmp_path / "out")
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
        with pytest.raises(UserError, match="is no folder"):
            export([holes], "csv", tmp_path / "out" / "tasks.csv")

    def test_the_command(self, holes: RunView, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "out"
        assert main(["export", "holes", "--root", str(holes.directory.parent), "-o", str(out)]) == 0
        assert capsys.readouterr().out == f"{out}/tasks.csv: 6 rows\n{out}/steps.csv: 10 rows\n{out}/calls.csv: 10 rows\n"
        assert main(["export", "nowhere", "-o", str(out)]) == 2
        assert "is not a run" in capsys.readouterr().err


class TestInspect:
    def members(self, file: Path) -> dict[str, Any]:
        with zipfile.ZipFile(file) as archive:
            return {name: json.loads(archive.read(name)) for name in archive.namelist()}

    def test_a_log_has_the_members_that_inspect_looks_for(self, recorded: Path, tmp_path: Path) -> None:
        assert export([RunView(recorded)], "inspect", tmp_path)["files"] == {"r.eval": 6}
        found = self.members(tmp_path / "r.eval")
        samples = [f"samples/toy-{i}_epoch_1.json" for i in range(6)]
        assert sorted(found) == sorted(["_journal/start.json", "header.json", "summaries.json", *samples])
        header = found["header.json"]
        assert (header["version"], header["status"]) == (2, "success")
        assert header["results"]["scores"][0]["metrics"]["mean"]["value"] == 1.0
        assert header["eval"]["task"] == "memarena/toy" and header["eval"]["solver"] == "single with memory generative"
        assert header["eval"]["metadata"]["not_comparable_with_reported"][0] == "scripted answers, no model"

    def test_a_sample_tells_who_said_what(self, recorded: Path, tmp_path: Path) -> None:
        export([RunView(recorded)], "inspect", tmp_path)
        sample = self.members(tmp_path / "r.eval")["samples/toy-0_epoch_1.json"]
        assert [(message["role"], message["content"]) for message in sample["messages"]] == [
            ("user", "A panel with buttons. Press red then green."),
            ("assistant", "agent: press red"),
            ("tool", "You press the red button."),
            ("assistant", "agent: press green"),
            ("tool", "You press the green button."),
        ]
        assert sample["scores"]["memarena"]["value"] == 1.0 and sample["scores"]["memarena"]["explanation"] == "You won."
        kinds = [event["event"] for event in sample["events"]]
        assert (kinds[0], kinds[-1], kinds.count("model"), kinds.count("tool")) == ("sample_init", "score", 2, 2)
        times = [event["timestamp"] for event in sample["events"]]
        assert times == sorted(times)

    def test_cached_tokens_are_no_part_of_inspects_input(self, recorded: Path, tmp_path: Path) -> None:
        with sqlite3.connect(recorded / "stream.sqlite") as db:
            db.execute("UPDATE ledger SET cached_input_tokens = 5 WHERE kind = 'chat' AND position = 0")
        export([RunView(recorded)], "inspect", tmp_path)
        (usage,) = (
            used
            for model, used in self.members(tmp_path / "r.eval")["samples/toy-0_epoch_1.json"]["model_usage"].items()
            if model == "scripted/oracle"
        )
        (row,) = (row for row in RunView(recorded).usage("position", "kind") if row.group == (0, "chat"))
        assert usage["input_tokens_cache_read"] == 10 == row.cached_input_tokens
        assert usage["input_tokens"] == row.input_tokens - 10 and usage["total_tokens"] == row.total_tokens

    def test_a_task_without_a_result_is_a_sample_with_an_error_and_no_score(self, holes: RunView, tmp_path: Path) -> None:
        export([holes], "inspect", tmp_path)
        found = self.members(tmp_path / "holes.eval")
        assert found["header.json"]["status"] == "cancelled"
        assert found["header.json"]["results"]["scores"][0]["unscored_samples"] == 1
        sample = found["samples/toy-2_epoch_1.json"]
        assert "scores" not in sample and sample["error"]["message"] == "EnvironmentCrashed: the panel of toy-2 caught fire"
        assert len(sample["error_retries"]) == 1

    def test_the_same_run_makes_the_same_bytes(self, recorded: Path, tmp_path: Path) -> None:
        for name in ("a", "b"):
            export([RunView(recorded)], "inspect", tmp_path / name)
        assert (tmp_path / "a/r.eval").read_bytes() == (tmp_path / "b/r.eval").read_bytes()

    def test_runs_of_one_name_get_files_of_their_own(self, tmp_path: Path) -> None:
        runs = [RunView(played(tmp_path / name, run={"name": "x", "seed": seed})) for seed, name in enumerate("ab")]
        assert len(export(runs, "inspect", tmp_path / "out")["files"]) == 2

    def test_agent_failures_and_a_lost_log_are_no_obstacle(self, tmp_path: Path) -> None:
        limits = {"name": "lost", "limits": {"task": {"calls": 1}}}
        view = RunView(played(tmp_path, models=scripted("noop"), run=limits))
        (view.directory / "events.jsonl").unlink()
        export([view], "inspect", tmp_path / "out")
        sample = self.members(tmp_path / "out/lost.eval")["samples/toy-3_epoch_1.json"]
        assert sample["scores"]["memarena"]["metadata"]["kind"] == "agent_failure"
