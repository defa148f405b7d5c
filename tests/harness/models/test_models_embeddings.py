"""Embedding calls through the gateway: ledger, limits, retries, replay (METHODS.md TOK-R6), and the litellm back-end's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models_doubles import MemorySink, ToldBackend, call, gateway, model_set, playing, scripted
from openai_server import Json, OpenAIServer, Response

from harness.contracts import Usage
from harness.errors import ConfigError, LimitExceeded, ModelSetupError, ProviderError, ReplayMiss
from harness.limits import Limits, LimitSpec
from harness.models.backends.base import Answer, Request
from harness.models.backends.scripted_vectors import hashed_vectors
from harness.models.config import EndpointConfig, ModelsConfig, validate
from harness.models.gateway import Gateway
from harness.models.prices import Price, PriceBook
from harness.models.replay import Recorder
from harness.models.vectors import TEXTS_PER_CALL, decode_vectors, encode_vectors

PRICES = PriceBook("p", "d", {"embedder": Price(0.1, 0.0, None, "test"), "m": Price(1.0, 2.0, None, "test")})


class EmbeddingBackend(ToldBackend):
    """`handle(request, n)` for embeddings too; it returns vectors."""

    def embed(self, request: Request) -> Answer:
        number = len(self.requests)
        self.requests.append(request)
        vectors: Any = self.handle(request, number)
        return Answer(encode_vectors(vectors), Usage(7), "embedder-1", "stop", {"input": 7, "output": 0})


@pytest.fixture(autouse=True)
def embedding_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.models.backends.catalogue import CATALOGUE

    monkeypatch.setitem(CATALOGUE, "embedding", "test_models_embeddings:EmbeddingBackend")


def vectors_of(request: Request, n: int) -> list[list[float]]:
    return [[float(len(message["content"])), 1.0] for message in request.call.messages]


def config(handle: Any = vectors_of, **kw: Any) -> ModelsConfig:
    return ModelsConfig(
        "set",
        "Set",
        {
            "main": EndpointConfig("told", "m", options={"handle": lambda request, n: "ok"}),
            "vectors": EndpointConfig("embedding", "embedder", options={"handle": handle}, **kw),
        },
        {"default": "main", "embed": "vectors"},
    )


def embed(gate: Gateway, *texts: str, sink: MemorySink | None = None) -> tuple[Any, MemorySink]:
    with playing(gate, sink=sink, step=lambda: 4) as (models, sink):
        return models.embed("memory.x.embed", texts, phase="retrieve", agent="memory"), sink


def test_the_endpoint_of_the_key_embed_answers_in_a_row_of_its_own() -> None:
    with gateway(config(), prices=PRICES) as gate:
        found, sink = embed(gate, "a", "bb")
        totals = gate.counters.totals()["vectors"]
    assert found.tolist() == [[1, 1], [2, 1]] and found.dtype == np.float64
    (row,) = sink.rows
    assert (row.kind, row.key, row.phase, row.role, row.agent) == ("embedding", "embed", "retrieve", "memory.x.embed", "memory")
    assert (row.endpoint, row.model, row.input_tokens, row.output_tokens, row.step) == ("vectors", "embedder-1", 7, 0, 4)
    assert row.cost_usd == pytest.approx(7e-7) and row.usage_source == "provider"
    assert sink.transcripts[0] == {"texts": ["a", "bb"]}
    assert (totals.attempts, totals.input, totals.reported_input, totals.unreported) == (1, 7, 7, 0)


def test_many_texts_are_several_calls() -> None:
    with gateway(config()) as gate:
        found, sink = embed(gate, *["x"] * (TEXTS_PER_CALL + 1))
        nothing, _ = embed(gate, sink=MemorySink())
    assert found.shape == (TEXTS_PER_CALL + 1, 2) and len(sink.rows) == 2 and nothing.shape == (0, 0)


def test_a_transient_failure_is_repeated_and_both_attempts_are_rows() -> None:
    def flaky(request: Request, n: int) -> Any:
        if n == 0:
            raise ProviderError("down", status=503)
        return vectors_of(request, n)

    with gateway(config(flaky)) as gate:
        _, sink = embed(gate, "a")
    assert [(row.ok, row.attempt, row.kind) for row in sink.rows] == [(False, 1, "embedding"), (True, 2, "embedding")]


def test_limits_hold_before_the_call() -> None:
    limits = Limits()
    with gateway(config(), limits=limits) as gate, limits.scope("task", LimitSpec(tokens=20)):
        embed(gate, "a" * 40)
        with pytest.raises(LimitExceeded, match="task limit reached"):
            embed(gate, "a" * 80)


def test_a_recording_is_replayed_without_asking_the_model(tmp_path: Path) -> None:
    asked: list[int] = []

    def counted(request: Request, n: int) -> Any:
        asked.append(n)
        return vectors_of(request, n)

    found = []
    for mode in ("record", "replay"):
        with gateway(config(counted), replay=Recorder(mode, tmp_path / "r.sqlite")) as gate:  # type: ignore[arg-type]
            vectors, sink = embed(gate, "a", "bb")
            found.append(vectors.tolist())
            assert sink.rows[0].replayed is (mode == "replay") and sink.rows[0].input_tokens == 7
    assert found[0] == found[1] and asked == [0]
    with gateway(config(counted), replay=Recorder("replay", tmp_path / "r.sqlite")) as gate, pytest.raises(ReplayMiss):
        embed(gate, "other")


def test_texts_and_chat_prompts_never_share_a_recording() -> None:
    with gateway(config()) as gate:
        endpoint = gate.endpoint("memory")
        one, two = call("a"), call("ab")
        assert (
            len({endpoint.prepare(one).digest, endpoint.prepare_embedding(one).digest, endpoint.prepare_embedding(two).digest})
            == 3
        )


def test_a_chat_model_is_no_substitute() -> None:
    with (
        gateway(model_set("told", options={"handle": lambda r, n: "ok"})) as gate,
        pytest.raises(ConfigError, match=r"models\.keys\.embed"),
    ):
        embed(gate, "a")


def test_the_embedded_model_says_what_to_use_instead() -> None:
    with (
        gateway(ModelsConfig("e", "E", {"main": EndpointConfig("embedded", "smollm2")}, {"embed": "main"})) as gate,
        pytest.raises(ModelSetupError, match="wordllama"),
    ):
        embed(gate, "a")


def test_a_misspelt_key_names_the_right_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown model key 'embde'. Did you mean embed"):
        validate(ModelsConfig("e", "E", {"main": EndpointConfig("told", "m")}, {"embde": "main"}))


def test_the_scripted_model_embeds_alike_texts_alike() -> None:
    with gateway(scripted("noop")) as gate:
        found, sink = embed(gate, "clean a mug", "clean the mug", "heat an egg", "")
    assert found[0] @ found[1] > found[0] @ found[2] and not found[3].any()
    assert sink.rows[0].usage_source == "estimate"
    assert np.allclose(found[:3], np.array(hashed_vectors(["clean a mug", "clean the mug", "heat an egg"])), atol=1e-7)


def test_vectors_survive_as_text() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5)).astype("f4")
    assert (decode_vectors(encode_vectors(values.tolist())) == values.astype(float)).all()


class Local:
    name = "local"

    def embed(self, texts: Any) -> Any:
        return np.ones((len(texts), 2))

    def count(self, texts: Any) -> int:
        return sum(len(text) for text in texts)


def test_a_local_embedder_costs_nothing_and_is_not_reconciled_or_limited() -> None:
    limits = Limits()
    with (
        gateway(config(), limits=limits) as gate,
        limits.scope("task", LimitSpec(calls=0, tokens=0)),
        playing(gate) as (models, sink),
    ):
        assert models.embed("memory.x.embed", ["abc", "d"], phase="write", local=Local()).shape == (2, 2)
        assert gate.counters.totals() == {}
    (row,) = sink.rows
    assert (row.endpoint, row.model, row.kind, row.key, row.phase) == ("in-process", "local", "embedding", "embed", "write")
    assert (row.input_tokens, row.usage_source, row.cost_usd, row.ok, row.replayed) == (4, "tokenizer", 0.0, True, False)


# --- a real server ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    running = OpenAIServer()
    yield running
    running.close()


def serve(server: OpenAIServer, **body: Any) -> Gateway:
    def handle(request: Json, n: int) -> Response:
        data = [
            {"object": "embedding", "index": i, "embedding": [float(len(text)), 0.5]} for i, text in enumerate(request["input"])
        ]
        return Response(200, {"object": "list", "model": "served-embedder", "data": data[::-1], **body})

    server.reset()
    server.handle = handle
    endpoint = EndpointConfig("litellm", "openai/my-embedder", api_base=server.base, timeout_s=10.0)
    return gateway(ModelsConfig("set", "Set", {"main": endpoint}, {"embed": "main"}))


def usage(prompt: int) -> Json:
    details = {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    return {"prompt_tokens": prompt, "completion_tokens": 0, "total_tokens": prompt, **details}


@pytest.mark.slow  # imports litellm
def test_litellm_asks_an_openai_compatible_server(server: OpenAIServer) -> None:
    with serve(server, usage=usage(9)) as gate:
        found, sink = embed(gate, "abc", "")
    # in the order of the texts whatever order they come back in; no provider takes an empty one
    assert found.tolist() == [[3, 0.5], [1, 0.5]] and server.requests[0]["input"] == ["abc", " "]
    assert (sink.rows[0].input_tokens, sink.rows[0].usage_source, sink.rows[0].model) == (9, "provider", "served-embedder")
    assert "temperature" not in server.requests[0] and "max_tokens" not in server.requests[0]


@pytest.mark.slow
def test_litellms_errors_are_mapped_as_for_chats(server: OpenAIServer) -> None:
    with serve(server) as gate, pytest.raises(ModelSetupError):
        server.handle = lambda body, n: Response(
            401, {"error": {"message": "no", "type": "x", "param": None, "code": "invalid_api_key"}}
        )
        embed(gate, "abc")
