"""Record and replay: nothing paid for is lost, nothing is asked twice, and a replayed ledger is the same every time."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from models_doubles import MemorySink, call, gateway, model_set, playing

from harness.contracts import Usage
from harness.errors import ConfigError, ContentRefused, ContextOverflow, ProviderError, ReplayMiss, SetupError, StorageError
from harness.models.backends.base import Answer, Request
from harness.models.config import ModelsConfig
from harness.models.ledger import LedgerRow
from harness.models.prices import Price, PriceBook
from harness.models.replay import Mode, Recorder

PRICES = PriceBook("p", "d", {"m": Price(1.0, 2.0, 0.5, "test")})


class Counted:
    """A told back-end's handler that counts how often the model was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.asked, self.answer = 0, answer

    def __call__(self, request: Request, n: int) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if self.answer is not None else f"answer {self.asked}"

    @property
    def config(self) -> ModelsConfig:
        return model_set("told", options={"handle": self}, max_retries=2)


def play(
    model: Counted, mode: Mode, path: Path, texts: list[str], sink: MemorySink | None = None
) -> tuple[list[str], MemorySink]:
    with gateway(model.config, replay=Recorder(mode, path), prices=PRICES) as gate, playing(gate, sink=sink) as (models, sink):
        return [models.complete(call(text, stop=("\n",))).text for text in texts], sink


def test_a_recording_is_replayed_without_asking_the_model(tmp_path: Path) -> None:
    model = Counted("line one\nline two")
    first, recorded = play(model, "record", tmp_path / "r.sqlite", ["a", "b", "a"])
    second, replayed = play(model, "replay", tmp_path / "r.sqlite", ["a", "b", "a"])
    assert first == second == ["line one"] * 3 and model.asked == 3
    for row in replayed.rows:
        assert row.replayed and row.latency_s is None and row.attempt == 1
    same = [replace(r, latency_s=None, replayed=True) for r in recorded.rows]
    assert same == replayed.rows  # tokens, cost, model, digest and occurrence as they were


def test_repetitions_of_a_request_keep_their_own_answers(tmp_path: Path) -> None:
    model = Counted()
    play(model, "record", tmp_path / "r.sqlite", ["a", "a", "b"])
    assert play(model, "replay", tmp_path / "r.sqlite", ["a", "a", "b"])[0] == ["answer 1", "answer 2", "answer 3"]


def test_a_replayed_ledger_is_the_same_whether_or_not_it_was_interrupted(tmp_path: Path) -> None:
    model, path = Counted(), tmp_path / "r.sqlite"
    play(model, "record", path, ["a", "b", "a", "c"])
    _, whole = play(model, "replay", path, ["a", "b", "a", "c"])
    _, part = play(model, "replay", path, ["a", "b"])
    _, resumed = play(model, "replay", path, ["a", "c"], sink=part)  # another process, the same ledger
    assert resumed.rows == whole.rows


def test_auto_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    model, path = Counted(), tmp_path / "r.sqlite"
    play(model, "auto", path, ["a", "b"])
    texts, sink = play(model, "auto", path, ["a", "b", "c"])
    assert texts == ["answer 1", "answer 2", "answer 3"] and model.asked == 3
    assert [r.replayed for r in sink.rows] == [True, True, False]


def test_record_asks_again_and_replaces(tmp_path: Path) -> None:
    model, path = Counted(), tmp_path / "r.sqlite"
    play(model, "record", path, ["a"])
    play(model, "record", path, ["a"])
    assert model.asked == 2
    assert play(model, "replay", path, ["a"])[0] == ["answer 2"]


def test_off_leaves_no_file(tmp_path: Path) -> None:
    play(Counted(), "off", tmp_path / "r.sqlite", ["a"])
    assert list(tmp_path.iterdir()) == []


def test_a_miss_names_role_task_and_request(tmp_path: Path) -> None:
    model, path = Counted(), tmp_path / "r.sqlite"
    play(model, "record", path, ["a"])
    with pytest.raises(ReplayMiss) as caught:
        play(model, "replay", path, ["changed prompt"])
    assert "host.single.agent" in str(caught.value) and "task-7" in str(caught.value)
    assert model.asked == 1


def test_replay_without_recordings_is_one_clear_error_before_anything_is_played(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    problems = gateway(model_set("litellm", "gpt-5-mini"), replay=Recorder("replay", path)).check()
    assert [str(path) in p.what and "missing" in p.what for p in problems] == [True]
    with pytest.raises(SetupError, match="missing"):
        play(Counted(), "replay", path, ["a"])


def damaged(path: Path, how: str) -> None:
    """A file that is no recording, in the way that `how` says."""
    if how == "zero bytes":
        path.touch()
    elif how == "garbage":
        path.write_bytes(b"\x00garbage\xff" * 2000)
    elif how == "torn":
        play(Counted(), "record", path, [str(n) for n in range(50)])
        content = path.read_bytes()
        path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE other (a)" if how == "foreign" else "CREATE TABLE recording (digest TEXT, text TEXT)")
            db.commit()


@pytest.mark.parametrize("mode", ["record", "replay", "auto"])
@pytest.mark.parametrize("how", ["zero bytes", "garbage", "torn", "foreign", "other columns"])
def test_a_file_that_holds_no_recordings_is_one_error_naming_it(tmp_path: Path, how: str, mode: Mode) -> None:
    path, model = tmp_path / "r.sqlite", Counted()
    damaged(path, how)
    before = path.read_bytes()
    if how == "zero bytes" and mode != "replay":
        play(model, mode, path, ["a"])  # what a process killed at its very start leaves behind
        assert model.asked == 1
        return
    problems = gateway(model_set("scripted", "s", options={"policy": "noop"}), replay=Recorder(mode, path)).check()
    assert len(problems) == 1 and str(path) in problems[0].what and "run.replay.path" in problems[0].fix
    with pytest.raises(SetupError, match=re.escape(str(path))):
        play(model, mode, path, ["a"])
    assert path.read_bytes() == before


@pytest.mark.parametrize("column", ["usage", "raw_usage", "error"])
@pytest.mark.parametrize("content", ["{", "[1]", "5", '{"input": -4}', '{"type": "x"}'])
def test_a_damaged_recording_is_one_error_naming_file_and_request(tmp_path: Path, column: str, content: str) -> None:
    path = tmp_path / "r.sqlite"
    play(Counted(), "record", path, ["a"])
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE recording SET {column} = ?", (content,))
        db.commit()
    with pytest.raises(SetupError, match=re.escape(str(path))):
        play(Counted(), "replay", path, ["a"])


def test_an_answer_that_cannot_be_recorded_is_in_the_ledger_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(Recorder, "save", full)
    sink = MemorySink()
    gate = gateway(model_set("told", "m", options={"handle": Counted()}), replay=Recorder("record", tmp_path / "r"))
    with gate, playing(gate, sink=sink) as (models, _), pytest.raises(StorageError):
        models.complete(call())
    assert [(row.ok, row.input_tokens) for row in sink.rows] == [(True, 100)]


def test_a_replaying_gateway_needs_no_key_and_no_package(tmp_path: Path) -> None:
    config = model_set("litellm", "gpt-5-mini", api_key_env="NO_SUCH_KEY_HERE")
    play(Counted(), "record", tmp_path / "r", ["a"])
    assert gateway(config).check() and gateway(config, replay=Recorder("replay", tmp_path / "r")).check() == []


@pytest.mark.parametrize("error", [ContextOverflow("m", 9000, 8192), ContentRefused("The filter said no.")])
def test_the_models_own_refusal_replays_because_it_made_the_score(error: Exception, tmp_path: Path) -> None:
    model, path = Counted(error), tmp_path / "r.sqlite"
    for mode in ("record", "replay"):
        with pytest.raises(type(error)) as caught:
            play(model, mode, path, ["a"])  # type: ignore[arg-type]
        assert str(caught.value) == str(error)
    assert model.asked == 1


def test_a_billed_refusal_replays_with_its_usage(tmp_path: Path) -> None:
    answer = Answer("", Usage(60, 8), "m-1", "content_filter", {"input": 60, "output": 8}, refused=True)
    model, path = Counted(answer), tmp_path / "r.sqlite"
    rows: list[LedgerRow] = []
    for mode in ("record", "replay"):
        sink = MemorySink()
        with pytest.raises(ContentRefused):
            play(model, mode, path, ["a"], sink=sink)  # type: ignore[arg-type]
        rows += sink.rows
    assert [(r.ok, r.input_tokens, r.output_tokens) for r in rows] == [(False, 60, 8)] * 2 and model.asked == 1


def test_failed_attempts_are_not_replayed(tmp_path: Path) -> None:
    class Shaky(Counted):
        def __call__(self, request: Request, n: int) -> Any:
            self.asked += 1
            if self.asked == 1:
                raise ProviderError("down", status=503)
            return "ok"

    model, path = Shaky(), tmp_path / "r.sqlite"
    _, recorded = play(model, "record", path, ["a"])
    _, replayed = play(model, "replay", path, ["a"])
    assert [r.ok for r in recorded.rows] == [False, True] and [r.ok for r in replayed.rows] == [True]


def test_counters_equal_the_ledger_in_a_replay_too(tmp_path: Path) -> None:
    model, path = Counted(), tmp_path / "r.sqlite"
    play(model, "record", path, ["a", "b"])
    with gateway(model.config, replay=Recorder("replay", path)) as gate, playing(gate) as (models, sink):
        models.complete_many([call("a", stop=("\n",)), call("b", stop=("\n",))])
    totals = gate.counters.totals()["main"]
    assert totals.input == totals.reported_input == sum(r.input_tokens for r in sink.rows) == 200
    assert totals.replayed == totals.calls == 2


def test_prompts_and_keys_are_not_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-very-secret")
    path = tmp_path / "r.sqlite"
    model = Counted("the answer")
    config = model_set("told", options={"handle": model}, api_key_env="SOME_KEY")
    with gateway(config, replay=Recorder("record", path)) as gate, playing(gate) as (models, _):
        models.complete(call("a very private prompt"))
        gate.replay.close()
    content = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert b"the answer" in content
    assert b"sk-very-secret" not in content and b"private prompt" not in content and b"SOME_KEY" not in content


def test_a_closed_recording_is_one_plain_file(tmp_path: Path) -> None:
    play(Counted(), "record", tmp_path / "r.sqlite", ["a"])
    assert [p.name for p in tmp_path.iterdir()] == ["r.sqlite"]
    assert (tmp_path / "r.sqlite").read_bytes()[18:20] == b"\x01\x01"  # no write-ahead log: readable from a read-only place


def test_a_file_that_cannot_be_written_stops_with_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    recorder = Recorder("record", path)
    with gateway(Counted().config, replay=recorder) as gate, playing(gate) as (models, _):
        models.complete(call())
        assert recorder._db is not None
        recorder._db.execute("PRAGMA query_only=ON")
        with pytest.raises(StorageError):
            models.complete(call())


@pytest.mark.parametrize("arguments", [("sometimes", Path("x")), ("record", None)])
def test_a_wrong_mode_and_a_missing_path_are_config_errors(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(ConfigError):
        Recorder(*arguments)


RECORDING_PROCESS = """
import sys
from pathlib import Path
from harness.contracts import Usage
from harness.models.backends.base import Answer
from harness.models.replay import Recorder, Recording
recorder = Recorder("record", Path(sys.argv[1]))
n = 0
while True:
    recorder.save(f"digest-{n}", 0, Recording(Answer(f"text {n}" * 50, Usage(n, 1), "m", "stop", {"input": n, "output": 1})))
    n += 1
    print(n, flush=True)
"""


def test_kill_9_of_a_recording_process_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    process = subprocess.Popen([sys.executable, "-c", RECORDING_PROCESS, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while int(process.stdout.readline()) < 200:
        pass
    time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    saved = int(process.stdout.read().split()[-1])
    process.wait()
    recorder = Recorder("replay", path)
    for n in range(saved):
        found = recorder.find(f"digest-{n}", 0, role="r", task_id="t")
        assert found is not None and found.answer.text == f"text {n}" * 50 and found.answer.usage.input == n
    Recorder("auto", path).save("one-more", 0, Recorder("replay", path).find("digest-0", 0, role="r", task_id="t"))  # type: ignore[arg-type]
