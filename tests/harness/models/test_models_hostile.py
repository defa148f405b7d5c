"""A server that answers with nonsense: no paid call is lost, no nonsense reaches a file, and every error is one line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from models_doubles import call, gateway, model_set, playing, told
from openai_server import OpenAIServer, Response, answer

from harness.contracts import Usage
from harness.errors import ProviderError
from harness.models.backends.base import Answer
from harness.models.intake import believable, clean, one_line
from harness.models.replay import Recorder


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    made = OpenAIServer()
    yield made
    made.close()


def ask(server: OpenAIServer, recorder: Recorder | None = None, model: str = "openai/m", **body: Any) -> Any:
    """What came of one call that the server answers with `body` in the place of its own, and the sink."""
    server.handle = lambda request, n: Response(200, {**answer("go to shelf 1").body, **body})
    config = model_set("litellm", model, api_base=server.base, max_retries=0, timeout_s=10.0)
    with gateway(config, replay=recorder) as gate, playing(gate) as (models, sink):
        try:
            return models.complete(call("x" * 40)), sink
        except ProviderError as error:
            return error, sink


def usage(prompt: Any = 11, completion: Any = 3, **kw: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 14, **kw}


@pytest.mark.parametrize("reported", [usage(-5), usage(11, -3), usage(10**30), usage(11, 10**12), usage(0, 0)])
def test_counts_that_cannot_be_are_not_believed(server: OpenAIServer, reported: dict[str, Any]) -> None:
    reply, sink = ask(server, usage=reported)
    row = sink.rows[0]
    assert (row.ok, row.input_tokens, row.output_tokens, row.usage_source) == (True, 10, 4, "estimate")
    assert reply.text == "go to shelf 1" and json.dumps(sink.transcripts)
    assert ("not believed" in sink.transcripts[0].get("usage_note", "")) is (reported["prompt_tokens"] != 0)


def test_counts_that_cannot_be_are_counted_by_the_models_tokenizer_where_there_is_one(server: OpenAIServer) -> None:
    _, sink = ask(server, model="openai/gpt-4o", usage=usage(-5))
    assert sink.rows[0].usage_source == "tokenizer" and sink.rows[0].input_tokens > 0


def test_a_part_that_is_larger_than_the_whole_is_taken_for_not_stated(server: OpenAIServer) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 50}, "completion_tokens_details": {"reasoning_tokens": 2}}
    _, sink = ask(server, usage=usage(**details))
    row = sink.rows[0]
    assert (row.input_tokens, row.cached_input_tokens, row.reasoning_tokens, row.usage_source) == (11, 0, 2, "provider")
    assert "cached_input=50" in sink.transcripts[0]["usage_note"]


def test_any_back_ends_counts_are_looked_at() -> None:
    bad = Answer("four", Usage(-7, 2**70), "m", "stop", {"input": -7, "output": 2**70})
    with gateway(told(lambda request, n: bad)) as gate, playing(gate) as (models, sink):
        models.complete(call("x" * 8))
    assert (sink.rows[0].input_tokens, sink.rows[0].output_tokens, sink.rows[0].usage_source) == (2, 1, "estimate")
    assert gate.counters.totals()["main"].unreported == 1


def test_an_answer_without_choices_is_a_failed_attempt_that_was_billed(server: OpenAIServer) -> None:
    error, sink = ask(server, choices=[])
    assert isinstance(error, ProviderError) and "no choices" in str(error)
    assert [(r.ok, r.input_tokens, r.output_tokens, r.usage_source) for r in sink.rows] == [(False, 11, 3, "provider")]


@pytest.mark.parametrize("text", ["a\ud800b", "a\udfffb", "a\x00b"])
def test_what_cannot_be_stored_is_replaced_before_anyone_sees_it(server: OpenAIServer, tmp_path: Path, text: str) -> None:
    recorder = Recorder("record", tmp_path / "r.sqlite")
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    reply, sink = ask(server, recorder, choices=choices, model="openai/m")
    assert reply.text == "a\ufffdb" == sink.transcripts[0]["text"] and sink.rows[0].ok
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as db:
        assert db.execute("SELECT text FROM recording").fetchall() == [("a\ufffdb",)]


def test_a_prompt_with_lone_surrogates_reaches_the_server(server: OpenAIServer) -> None:
    server.reset()
    config = model_set("litellm", "openai/m", api_base=server.base, max_retries=0)
    with gateway(config) as gate, playing(gate) as (models, _):
        assert models.complete(call("see \udc80")).text == "ok"
    assert server.requests[0]["messages"][0]["content"] == "see \ufffd"


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"index": 0, "finish_reason": "stop", "message": None}]},
        {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": [{"type": "text"}]}}]},
        {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": 5}}]},
        {"choices": None},
        {"usage": []},
        {"usage": 1.5},
        {"usage": "abc"},
    ],
    ids=["message null", "content list", "content number", "choices null", "usage list", "usage float", "usage text"],
)
@pytest.mark.filterwarnings("error")
def test_an_answer_that_litellm_cannot_read_is_one_line(server: OpenAIServer, body: dict[str, Any]) -> None:
    error, sink = ask(server, **body)
    assert isinstance(error, ProviderError)
    for text in (str(error), sink.rows[0].error):
        assert "\n" not in text and "Traceback" not in text and len(text) < 500


@pytest.mark.parametrize("data", [[], [{"index": 0}], [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": []}]])
def test_vectors_that_are_none_are_a_failed_attempt_that_was_billed(server: OpenAIServer, data: list[Any]) -> None:
    reported = {"prompt_tokens": 9, "total_tokens": 9}
    server.handle = lambda request, n: Response(200, {"object": "list", "model": "e", "data": data, "usage": reported})
    config = model_set("litellm", "openai/e", api_base=server.base, max_retries=0)
    config.keys["embed"] = "main"
    with gateway(config) as gate, playing(gate) as (models, sink), pytest.raises(ProviderError) as caught:
        models.embed("memory.x", ["a", "b"], phase="retrieve")
    assert "\n" not in str(caught.value) and not sink.rows[0].ok


def test_one_line_is_the_first_that_says_something_and_short() -> None:
    assert one_line("\n  boom: \nTraceback (most recent call last):\n x") == "boom:"
    assert one_line("Invalid object. Traceback (most recent call last):\n  File") == "Invalid object."
    assert len(one_line("x" * 1000)) == 300 and one_line("a\ud800") == "a\ufffd" == clean("a\ud800")


def test_what_is_believable() -> None:
    assert believable(Usage(5, 3, 2, 1)) == (Usage(5, 3, 2, 1), "")
    assert believable(Usage(5, 3, 6, 1))[0] == Usage(5, 3, 0, 1)
    assert believable(Usage(True, 3))[0] is None and believable(Usage(5, -1))[0] is None
