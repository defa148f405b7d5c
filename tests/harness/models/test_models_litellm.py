"""The litellm back-end against a real OpenAI-compatible server on this machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from models_doubles import call, gateway, model_set, playing
from openai_server import Json, OpenAIServer, Response, answer, error

from harness.errors import (
    ContentRefused,
    ContextOverflow,
    LimitExceeded,
    ModelSetupError,
    ProviderError,
    ProviderTimeout,
    RateLimited,
)
from harness.limits import Limits, LimitSpec
from harness.models.backends.litellm import LiteLLMBackend
from harness.models.backends.litellm_errors import retry_after
from harness.models.gateway import Gateway


@pytest.fixture(scope="module")
def shared() -> Iterator[OpenAIServer]:
    server = OpenAIServer()
    yield server
    server.close()


@pytest.fixture
def server(shared: OpenAIServer) -> OpenAIServer:
    shared.reset()
    return shared


def gate_to(
    server: OpenAIServer, model: str = "openai/my-model", gate_options: dict[str, Any] | None = None, **kw: Any
) -> Gateway:
    config = model_set("litellm", model, api_base=server.base, **{"timeout_s": 10.0, **kw})
    return gateway(config, **{"sleep": time.sleep, **(gate_options or {})})


def ask(server: OpenAIServer, text: str = "hi", call_options: dict[str, Any] | None = None, **kw: Any) -> Any:
    with gate_to(server, **kw) as gate, playing(gate) as (models, sink):
        reply = models.complete(call(text, **(call_options or {})))
    return reply, sink, gate


def fails(server: OpenAIServer, response: Response, kind: type[Exception], **kw: Any) -> Any:
    server.handle = lambda body, n: response
    with gate_to(server, **kw) as gate, playing(gate) as (models, sink), pytest.raises(kind) as caught:
        models.complete(call())
    return caught.value, sink


class TestUsage:
    def test_ledger_counters_and_what_the_server_reported_are_equal(self, server: OpenAIServer) -> None:
        def handle(body: Json, n: int) -> Response:
            if n % 4 == 3:
                return error(500, "hiccup")
            return answer(f"a{n}", prompt=10 + n, completion=5 + n, cached=n, reasoning=2)

        server.handle = handle
        with gate_to(server, max_concurrency=3, gate_options={"sleep": lambda s: None}) as gate, playing(gate) as (models, sink):
            models.complete(call("first"))
            models.complete_many([call(f"{n}") for n in range(9)])
        totals, rows = gate.counters.totals()["main"], sink.rows
        sums = (sum(r.input_tokens for r in rows), sum(r.output_tokens for r in rows))
        assert sums == (totals.input, totals.output) == (totals.reported_input, totals.reported_output)
        assert sums == (server.reported["prompt"], server.reported["completion"])
        assert sum(r.cached_input_tokens for r in rows) == totals.cached_input == server.reported["cached"] > 0
        assert sum(r.reasoning_tokens for r in rows) == totals.reasoning == server.reported["reasoning"] == 20
        assert len(rows) == totals.attempts == len(server.requests) > 10
        assert gate.describe()["usage_estimated"] is False

    def test_missing_usage_is_estimated_and_the_manifest_says_so(self, server: OpenAIServer) -> None:
        server.handle = lambda body, n: answer("twelve chars", usage=False)
        _, sink, gate = ask(server, "x" * 40)
        row = sink.rows[0]
        assert (row.input_tokens, row.output_tokens, row.usage_source, row.ok) == (10, 3, "estimate", True)
        assert gate.describe()["usage_estimated"] is True and gate.counters.totals()["main"].unreported == 1

    def test_missing_usage_of_an_openai_model_is_counted_by_its_tokenizer(self, server: OpenAIServer) -> None:
        server.handle = lambda body, n: answer("hello world", usage=False)
        _, sink, _ = ask(server, "hi there", model="openai/gpt-4o")
        assert (sink.rows[0].input_tokens, sink.rows[0].output_tokens, sink.rows[0].usage_source) == (9, 2, "tokenizer")

    def test_empty_text_for_ever_ends_and_every_time_is_billed(self, server: OpenAIServer) -> None:
        server.handle = lambda body, n: answer(None, completion=512, reasoning=512, finish="length")
        reply, sink, _ = ask(server)
        assert (reply.text, reply.finish_reason, len(server.requests)) == ("", "length", 1)
        assert (sink.rows[0].ok, sink.rows[0].reasoning_tokens) == (True, 512)


class TestRequest:
    def test_plain_messages_and_parameters_arrive(self, server: OpenAIServer) -> None:
        options = {"stop": ("\n",), "temperature": 0.7, "max_tokens": 99}
        reply, sink, _ = ask(server, "What?", options, extra_body={"top_k": 3})
        body = server.requests[0]
        assert body["messages"] == [{"role": "user", "content": "What?"}] and body["model"] == "my-model"
        assert (body["temperature"], body["max_tokens"], body["stop"], body["top_k"]) == (0.7, 99, ["\n"], 3)
        assert isinstance(body["seed"], int) and not body.get("stream")
        assert reply.model == sink.rows[0].model == "served-model-2026"

    def test_the_key_comes_from_its_variable_and_reaches_the_server_only(
        self, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_KEY", "sk-very-secret")
        _, sink, gate = ask(server, api_key_env="MY_KEY")
        assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
        assert "sk-very-secret" not in repr((sink.rows, sink.transcripts, gate.describe()))

    def test_a_server_that_repeats_the_key_does_not_bring_it_into_the_ledger(
        self, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_KEY", "sk-very-secret")
        response = error(401, "Incorrect API key provided: sk-very-secret.", code="invalid_api_key")
        caught, sink = fails(server, response, ModelSetupError, api_key_env="MY_KEY")
        assert "sk-very-secret" not in str(caught) + repr(sink.rows) and "***" in str(caught)

    def test_a_schema_goes_out_as_a_response_format(self, server: OpenAIServer) -> None:
        ask(server, call_options={"schema": {"type": "object"}})
        assert server.requests[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}

    def test_a_gpt_5_mini_endpoint_gets_only_what_it_takes(self, server: OpenAIServer) -> None:
        unsupported = ["temperature", "top_p", "stop"]
        options = {"stop": ("\n",)}
        server.handle = lambda body, n: answer("\n\ngo to desk 1\nand more")
        reply, _, _ = ask(
            server, "x", options, model="gpt-5-mini", unsupported=unsupported, token_parameter="max_completion_tokens"
        )
        body = server.requests[0]
        assert body["max_completion_tokens"] == 4096 and not {"temperature", "top_p", "stop", "max_tokens"} & set(body)
        assert reply.text == "go to desk 1"


class TestLearning:
    def test_an_unsupported_temperature_is_dropped_once_and_for_all(self, server: OpenAIServer) -> None:
        def handle(body: Json, n: int) -> Response:
            if "temperature" in body:
                message = "Unsupported value: 'temperature' does not support 0.0 with this model."
                return error(400, message, code="unsupported_value", param="temperature")
            return answer("fine")

        server.handle = handle
        with gate_to(server) as gate, playing(gate) as (models, sink):
            assert [models.complete(call(t)).text for t in "ab"] == ["fine", "fine"]
        assert [r.ok for r in sink.rows] == [False, True, True]
        assert gate.describe()["endpoints"]["main"]["learned"] == {"temperature": ""}

    def test_max_tokens_is_renamed_where_the_server_says_so(self, server: OpenAIServer) -> None:
        def handle(body: Json, n: int) -> Response:
            if "max_tokens" in body:
                message = (
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
                )
                return error(400, message, code="unsupported_parameter", param="max_tokens")
            return answer(str(body["max_completion_tokens"]))

        server.handle = handle
        assert ask(server, call_options={"max_tokens": 77})[0].text == "77"

    def test_a_parameter_that_litellm_itself_refuses_is_learned_too(self, server: OpenAIServer) -> None:
        reply, _, gate = ask(server, model="gpt-5-mini", token_parameter="max_completion_tokens")
        assert reply.text == "ok" and len(server.requests) == 1
        assert gate.describe()["endpoints"]["main"]["learned"] == {"temperature": ""}

    def test_an_ordinary_400_is_not_taken_for_one(self, server: OpenAIServer) -> None:
        caught, sink = fails(server, error(400, "messages must not be empty"), ProviderError)
        assert caught.status == 400 and len(sink.rows) == 1


class TestFailures:
    def test_a_storm_of_429_honours_retry_after_and_ends_in_one_message(self, server: OpenAIServer) -> None:
        began = time.monotonic()
        caught, sink = fails(server, error(429, "slow down", retry_after_ms="120"), RateLimited, max_retries=3)
        assert time.monotonic() - began >= 3 * 0.12
        assert caught.retry_after == pytest.approx(0.12) and "4 times" in str(caught) and "slow down" in str(caught)
        assert [r.attempt for r in sink.rows] == [1, 2, 3, 4] and len(server.requests) == 4

    def test_it_recovers_after_retry_after_in_seconds(self, server: OpenAIServer) -> None:
        server.handle = lambda body, n: error(429, "wait", retry_after="1") if n == 0 else answer("there")
        began = time.monotonic()
        assert ask(server)[0].text == "there"
        assert 1.0 <= time.monotonic() - began < 5.0

    def test_concurrency_falls_on_429(self, server: OpenAIServer) -> None:
        def handle(body: Json, n: int) -> Response:
            slow_down = replace(error(429, "slow down", retry_after_ms="60"), delay=0.1)
            return slow_down if n < 8 else answer("ok", delay=0.03)

        with gate_to(server, max_concurrency=8) as gate, playing(gate) as (models, _):
            models.complete(call("import"))  # so that all eight start together
            server.reset()
            server.handle = handle
            models.complete_many([call(str(n)) for n in range(8)])
            assert server.most_running == 8
            allowed = gate.endpoints["main"].limiter.allowed
            assert allowed < 8
            server.most_running = 0
            models.complete_many([call(f"later {n}") for n in range(8)])
            assert server.most_running <= allowed + 2  # it grows slowly

    @pytest.mark.parametrize(
        ("status", "code"), [(401, "invalid_api_key"), (403, None), (404, "model_not_found"), (429, "insufficient_quota")]
    )
    def test_what_no_retry_can_mend_stops_at_once(self, server: OpenAIServer, status: int, code: str | None) -> None:
        caught, sink = fails(server, error(status, "no way", code=code), ModelSetupError)
        assert "no way" in str(caught) and caught.hint and len(server.requests) == 1
        assert (sink.rows[0].ok, sink.rows[0].usage_source) == (False, None)

    def test_an_unknown_provider_stops_before_any_request(self, server: OpenAIServer) -> None:
        caught, _ = fails(server, answer(), ModelSetupError, model="nonsense/model")
        assert "nonsense/model" in str(caught) and server.requests == []

    def test_context_overflow_has_its_numbers(self, server: OpenAIServer) -> None:
        message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
        response = error(400, message, code="context_length_exceeded", param="messages")
        caught, _ = fails(server, response, ContextOverflow, context_window=8192)
        assert caught.limit == 8192 and caught.used is not None

    def test_context_overflow_of_a_llama_server_has_the_servers_numbers(self, server: OpenAIServer) -> None:
        body = {"code": 400, "message": "request exceeds the available context size", "type": "exceed_context_size_error"}
        response = Response(400, {"error": {**body, "n_prompt_tokens": 4031, "n_ctx": 2048}})
        caught, _ = fails(server, response, ContextOverflow)
        assert (caught.used, caught.limit) == (4031, 2048)

    def test_the_content_filter_refuses_prompt_and_answer(self, server: OpenAIServer) -> None:
        fails(server, error(400, "filtered", code="content_filter"), ContentRefused)
        _, sink = fails(server, answer("", prompt=20, completion=4, finish="content_filter"), ContentRefused)
        assert (sink.rows[0].ok, sink.rows[0].input_tokens, sink.rows[0].output_tokens) == (False, 20, 4)

    @pytest.mark.parametrize("status", [500, 502, 503])
    def test_a_server_error_is_retried_and_then_an_infrastructure_failure(self, server: OpenAIServer, status: int) -> None:
        caught, sink = fails(server, error(status, "boom"), ProviderError, max_retries=1, gate_options={"sleep": lambda s: None})
        assert caught.status == status and len(sink.rows) == 2

    def test_no_server_is_an_infrastructure_failure(self, server: OpenAIServer) -> None:
        config = model_set("litellm", "openai/x", api_base="http://127.0.0.1:9/v1", max_retries=0)
        with gateway(config) as gate, playing(gate) as (models, _), pytest.raises(ProviderError):
            models.complete(call())


class TestTimeouts:
    @pytest.mark.parametrize("slow", [answer(delay=3.0), answer(dribble=0.05)], ids=["hung", "dribbling"])
    def test_the_whole_attempt_is_bounded_and_the_connection_closed(self, server: OpenAIServer, slow: Response) -> None:
        server.handle = lambda body, n: slow
        with gate_to(server, timeout_s=0.5, max_retries=0) as gate, playing(gate) as (models, sink):
            server.handle = lambda body, n: answer()
            models.complete(call("import"))
            server.handle = lambda body, n: slow
            began = time.monotonic()
            with pytest.raises(ProviderTimeout):
                models.complete(call())
            assert time.monotonic() - began < 1.5
        assert sink.rows[-1].error is not None and "ProviderTimeout" in sink.rows[-1].error
        if slow.dribble:  # the server notices that nobody reads any more
            deadline = time.monotonic() + 5
            while not server.broken and time.monotonic() < deadline:
                time.sleep(0.05)
            assert server.broken == 1

    def test_the_tasks_rest_cuts_the_call_short(self, server: OpenAIServer) -> None:
        limits = Limits()
        with gate_to(server, timeout_s=60.0, gate_options={"limits": limits}) as gate, playing(gate) as (models, _):
            models.complete(call("import"))
            server.handle = lambda body, n: answer(delay=3.0)
            began = time.monotonic()
            with limits.scope("task", LimitSpec(seconds=0.5)), pytest.raises(LimitExceeded) as caught:
                models.complete(call())
            assert (caught.value.scope, caught.value.kind) == ("task", "seconds") and time.monotonic() - began < 2


def test_closing_abandons_calls_in_flight_and_those_that_wait_for_a_retry(server: OpenAIServer) -> None:
    server.handle = lambda body, n: error(429, "wait", retry_after="60") if n % 2 else answer(delay=30.0)
    gate = gateway(model_set("litellm", "openai/x", api_base=server.base), sleep=None)
    with playing(gate) as (models, _):
        ended: list[BaseException] = []

        def work() -> None:
            try:
                models.complete_many([call("a"), call("b")])
            except BaseException as failure:
                ended.append(failure)

        thread = threading.Thread(target=work)
        thread.start()
        while len(server.requests) < 2:
            time.sleep(0.01)
        time.sleep(0.1)
        began = time.monotonic()
        gate.close()
        thread.join(timeout=10)
    assert time.monotonic() - began < 5 and isinstance(ended[0], ModelSetupError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_litellm_is_quiet_and_offline() -> None:
    import litellm

    assert litellm.telemetry is False and litellm.cache is None and litellm.callbacks == []
    assert litellm.success_callback == [] and litellm.failure_callback == [] and litellm.drop_params is False


def test_closing_is_bounded_even_if_a_request_ignores_that_it_is_cancelled(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stubborn(self: Any, litellm: Any, request: Any) -> None:
        started.set()
        while not release.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    started, release = threading.Event(), threading.Event()
    monkeypatch.setattr(LiteLLMBackend, "_ask", stubborn)
    gate = gate_to(server, timeout_s=60.0)
    ended: list[BaseException] = []
    with playing(gate) as (models, _):

        def work() -> None:
            try:
                models.complete(call())
            except BaseException as failure:
                ended.append(failure)

        thread = threading.Thread(target=work)
        thread.start()
        assert started.wait(20)
        began = time.monotonic()
        gate.close()
        thread.join(timeout=2)
    release.set()
    assert time.monotonic() - began < 5 and isinstance(ended[0], ModelSetupError)


def test_the_library_leaves_nothing_to_do_at_exit() -> None:
    script = (
        "import atexit\nfound, real = [], atexit.register\n"
        "def record(f, *a, **k):\n    found.append(str(getattr(f, '__module__', '')))\n    return real(f, *a, **k)\n"
        "atexit.register = record\nfrom harness.models.backends.litellm import _import_litellm\n_import_litellm()\n"
        "print([name for name in found if name.startswith('litellm')], atexit.register is record)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("[] True", "")
