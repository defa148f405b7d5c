"""The gateway over a back-end that does as told: ledger rows, retries, refusals, learned parameters, many calls at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from models_doubles import backend_of, call, gateway, info, model_set, playing, raising, scripted, told

from harness.contracts import TaskInfo, Usage
from harness.errors import (
    ConfigError,
    ContentRefused,
    ContextOverflow,
    LimitExceeded,
    ModelSetupError,
    ProviderError,
    ProviderTimeout,
    RateLimited,
)
from harness.limits import Limits, LimitSpec
from harness.models.backends.base import Answer, Request, UnsupportedParameter
from harness.models.config import EndpointConfig, ModelsConfig
from harness.models.prices import Price, PriceBook


class TestLedger:
    def test_a_row_says_where_by_whom_for_what_and_how_much(self) -> None:
        book = PriceBook("p", "d", {"m": Price(2.0, 10.0, 0.5, "test")})
        gate = gateway(told(lambda r, n: "go"), prices=book)
        with playing(gate, step=lambda: 4) as (models, sink):
            reply = models.complete(call(role="host.autogen.solver", agent="solver"))
        (row,) = sink.rows
        assert (row.position, row.task_index, row.task_id, row.step) == (0, 7, "task-7", 4)
        assert (row.role, row.agent, row.phase, row.key, row.endpoint) == (
            "host.autogen.solver",
            "solver",
            "act",
            "actor",
            "main",
        )
        assert (row.input_tokens, row.cached_input_tokens, row.output_tokens, row.reasoning_tokens) == (100, 40, 10, 5)
        assert row.cost_usd == pytest.approx((60 * 2.0 + 40 * 0.5 + 10 * 10.0) / 1e6)
        assert (row.ok, row.attempt, row.usage_source, row.model, row.replayed) == (True, 1, "provider", "told-1", False)
        assert row.latency_s is not None and row.latency_s >= 0
        assert (reply.text, reply.model, reply.usage) == ("go", "told-1", Usage(100, 10, 40, 5))

    def test_an_unknown_price_is_null_and_never_zero(self) -> None:
        with playing(gateway(told(lambda r, n: "go"))) as (models, sink):
            models.complete(call())
        assert sink.rows[0].cost_usd is None

    def test_empty_text_is_a_successful_counted_call_and_is_not_repeated(self) -> None:
        gate = gateway(told(lambda r, n: ""))
        with playing(gate) as (models, sink):
            assert models.complete(call()).text == ""
        assert [(r.ok, r.output_tokens) for r in sink.rows] == [(True, 10)]

    def test_counters_equal_the_ledger_over_failures_and_refusals(self) -> None:
        def handle(request: Request, n: int) -> Answer | str:
            if n == 0:
                raise ProviderError("boom", status=500)
            if n == 2:
                return Answer("", Usage(50, 7), "told-1", "content_filter", {"input": 50, "output": 7}, refused=True)
            return "fine"

        gate = gateway(told(handle))
        with playing(gate) as (models, sink):
            models.complete(call())
            with pytest.raises(ContentRefused):
                models.complete(call("again"))
        totals = gate.counters.totals()["main"]
        assert [(r.ok, r.usage_source) for r in sink.rows] == [(False, None), (True, "provider"), (False, "provider")]
        assert (totals.attempts, totals.calls) == (3, 1)
        assert totals.input == totals.reported_input == sum(r.input_tokens for r in sink.rows) == 150
        assert totals.output == totals.reported_output == sum(r.output_tokens for r in sink.rows) == 17

    def test_the_transcript_has_messages_parameters_and_the_raw_text(self) -> None:
        with playing(gateway(told(lambda r, n: "\n\ngo\nmore"))) as (models, sink):
            reply = models.complete(call(stop=("\n",)))
        assert reply.text == "go"
        transcript = sink.transcripts[0]
        assert transcript["text"] == "\n\ngo\nmore"
        assert transcript["messages"][0]["content"] == "What next?"
        assert transcript["parameters"]["max_tokens"] == 4096


class TestRetries:
    def test_a_storm_of_429_ends_as_rate_limited_with_every_attempt_in_the_ledger(self) -> None:
        pauses: list[float] = []
        storm = raising(*[RateLimited("slow down", retry_after=7.0)] * 9)
        gate = gateway(told(storm, max_retries=3), sleep=pauses.append)
        with playing(gate) as (models, sink), pytest.raises(RateLimited, match="failed 4 times") as caught:
            models.complete(call())
        assert caught.value.retry_after == 7.0
        assert [r.attempt for r in sink.rows] == [1, 2, 3, 4]
        assert not any(r.ok for r in sink.rows)
        assert len(pauses) == 3 and all(7.0 <= p <= 8.0 for p in pauses)

    def test_waiting_grows_exponentially_with_jitter_that_the_seed_repeats(self) -> None:
        def waits() -> list[float]:
            pauses: list[float] = []
            gate = gateway(told(raising(*[ProviderError("x", status=503)] * 9), max_retries=4), sleep=pauses.append)
            with playing(gate) as (models, _), pytest.raises(ProviderError):
                models.complete(call())
            return pauses

        first = waits()
        assert first == waits()
        assert all(2.0**n * 0.5 <= pause <= 2.0**n for n, pause in enumerate(first))

    def test_waiting_is_bounded_in_all(self) -> None:
        pauses: list[float] = []
        gate = gateway(told(raising(RateLimited("x", retry_after=3600.0))), sleep=pauses.append)
        with playing(gate) as (models, _), pytest.raises(RateLimited, match="3600"):
            models.complete(call())
        assert pauses == []

    def test_it_does_not_wait_beyond_the_tasks_time_and_blames_the_provider(self) -> None:
        limits = Limits()
        gate = gateway(told(raising(RateLimited("x", retry_after=30.0))), limits=limits)
        with limits.scope("task", LimitSpec(seconds=10.0)), playing(gate) as (models, _), pytest.raises(RateLimited):
            models.complete(call())

    @pytest.mark.parametrize("error", [ModelSetupError("no key"), ContextOverflow("m", 9, 8), ProviderError("bad", status=400)])
    def test_what_cannot_heal_is_not_repeated(self, error: Exception) -> None:
        with playing(gateway(told(raising(error)))) as (models, sink), pytest.raises(type(error)):
            models.complete(call())
        assert len(sink.rows) == 1

    @pytest.mark.parametrize(
        "error", [ProviderError("reset", status=None), ProviderTimeout("slow"), ProviderError("down", status=502)]
    )
    def test_what_may_heal_is_repeated(self, error: Exception) -> None:
        with playing(gateway(told(raising(error, error)))) as (models, sink):
            assert models.complete(call()).text == "ok"
        assert [(r.attempt, r.ok) for r in sink.rows] == [(1, False), (2, False), (3, True)]


class TestParameters:
    def test_configured_names_and_unsupported_parameters_are_respected(self) -> None:
        config = told(lambda r, n: "x", unsupported=["temperature", "stop"], token_parameter="max_completion_tokens", top_p=0.9)
        gate = gateway(config)
        with playing(gate) as (models, _):
            models.complete(call(max_tokens=50, stop=("\n",)))
        sent = backend_of(gate).requests[0].parameters
        assert sent["max_completion_tokens"] == 50 and sent["top_p"] == 0.9
        assert not {"temperature", "stop", "max_tokens"} & set(sent)

    def test_a_rejected_parameter_is_dropped_remembered_and_recorded(self) -> None:
        def handle(request: Request, n: int) -> str:
            for name in ("temperature", "max_tokens"):
                if name in request.parameters:
                    raise UnsupportedParameter(name, "max_completion_tokens" if name == "max_tokens" else None)
            return "fine"

        gate = gateway(told(handle))
        with playing(gate) as (models, sink):
            assert models.complete(call()).text == "fine"
            assert models.complete(call("again")).text == "fine"
        assert [r.ok for r in sink.rows] == [False, False, True, True]
        described = gate.describe()["endpoints"]["main"]
        assert described["learned"] == {"max_tokens": "max_completion_tokens", "temperature": ""}
        assert backend_of(gate).requests[-1].parameters["max_completion_tokens"] == 4096

    def test_an_endpoint_that_rejects_everything_ends_in_an_error_not_in_a_loop(self) -> None:
        def handle(request: Request, n: int) -> str:
            raise UnsupportedParameter(next(iter(request.parameters), "nothing"), "max_completion_tokens")

        with playing(gateway(told(handle))) as (models, sink), pytest.raises(ProviderError):
            models.complete(call())
        assert len(sink.rows) < 10

    def test_a_learned_parameter_does_not_change_the_request_digest(self) -> None:
        def handle(request: Request, n: int) -> str:
            if "temperature" in request.parameters:
                raise UnsupportedParameter("temperature")
            return "fine"

        with playing(gateway(told(handle))) as (models, sink):
            models.complete(call())
            models.complete(call())
        assert len({r.digest for r in sink.rows}) == 1
        assert [r.occurrence for r in sink.rows] == [0, 0, 1]

    @pytest.mark.parametrize(
        "other",
        [
            {"messages": ({"role": "system", "content": "What next?"},)},
            {"messages": ({"role": "user", "content": "What next"}, {"role": "user", "content": "?"})},
            {"max_tokens": 5},
            {"temperature": 0.5},
            {"stop": ("x",)},
            {"schema": {"type": "object"}},
        ],
    )
    def test_whatever_may_change_the_answer_changes_the_digest(self, other: dict[str, Any]) -> None:
        with playing(gateway(told(lambda r, n: "x"))) as (models, sink):
            models.complete(call())
            models.complete(call(**other))
        assert sink.rows[0].digest != sink.rows[1].digest

    def test_role_agent_and_unconstrained_choices_do_not_change_the_digest(self) -> None:
        with playing(gateway(told(lambda r, n: "x"))) as (models, sink):
            models.complete(call())
            models.complete(call(role="host.b", agent="b", choices=("a", "b")))
        assert sink.rows[0].digest == sink.rows[1].digest

    def test_a_repeated_request_gets_another_seed_and_the_same_one_in_another_run(self) -> None:
        def seeds() -> list[int]:
            gate = gateway(told(lambda r, n: "x"))
            with playing(gate) as (models, _):
                models.complete(call())
                models.complete(call())
            return [r.parameters["seed"] for r in backend_of(gate).requests]

        first = seeds()
        assert first == seeds() and first[0] != first[1]


class TestLimits:
    def test_a_call_over_the_limit_is_refused_before_it_is_made(self) -> None:
        limits = Limits()
        gate = gateway(told(lambda r, n: "x"), limits=limits)
        with limits.scope("task", LimitSpec(calls=1)), playing(gate) as (models, _):
            models.complete(call())
            with pytest.raises(LimitExceeded) as caught:
                models.complete(call())
        assert (caught.value.scope, caught.value.kind, len(backend_of(gate).requests)) == ("task", "calls", 1)

    def test_a_calls_time_out_is_never_longer_than_the_rest_of_the_task(self) -> None:
        limits = Limits()
        gate = gateway(told(lambda r, n: "x", timeout_s=120.0), limits=limits)
        with limits.scope("task", LimitSpec(seconds=5.0)), playing(gate) as (models, _):
            models.complete(call())
        assert 0 < backend_of(gate).requests[0].timeout_s <= 5.0

    def test_a_time_out_that_was_the_tasks_end_says_so(self) -> None:
        clock = [0.0]

        def handle(request: Request, n: int) -> str:
            clock[0] += request.timeout_s
            raise ProviderTimeout("late")

        limits = Limits(clock=lambda: clock[0])
        gate = gateway(told(handle), limits=limits)
        with limits.scope("task", LimitSpec(seconds=5.0)), playing(gate) as (models, _), pytest.raises(LimitExceeded) as caught:
            models.complete(call())
        assert (caught.value.scope, caught.value.kind) == ("task", "seconds")

    def test_a_dollar_limit_with_an_unpriced_model_is_refused_before_anything_is_spent(self) -> None:
        limits = Limits()
        gate = gateway(told(lambda r, n: "x"), limits=limits)
        with limits.scope("stream", LimitSpec(usd=1.0)), playing(gate) as (models, _), pytest.raises(ConfigError, match="price"):
            models.complete(call())
        assert backend_of(gate).requests == []


class TestTheWhole:
    def test_keys_lead_to_their_endpoints_and_a_missing_one_is_named(self) -> None:
        endpoints = {
            "a": EndpointConfig("scripted", "scripted/noop", options={"policy": "noop", "noop": "from a"}),
            "b": EndpointConfig("scripted", "scripted/noop", options={"policy": "noop", "noop": "from b"}),
        }
        gate = gateway(ModelsConfig("s", "S", endpoints, {"actor": "a", "planner": "b"}))
        with playing(gate) as (models, _):
            assert models.complete(call(key="actor")).text == "from a"
            assert models.complete(call(key="planner")).text == "from b"
            with pytest.raises(ConfigError, match="judge"):
                models.complete(call(key="judge"))

    def test_one_task_at_a_time(self) -> None:
        gate = gateway(scripted("noop"))
        with playing(gate), pytest.raises(RuntimeError, match="task-7"), playing(gate):
            pass
        with playing(gate):  # and the next one may begin
            pass

    def test_the_description_is_json_says_scripted_and_holds_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SOME_KEY", "sk-very-secret")
        endpoints = {
            "main": EndpointConfig("scripted", "scripted/noop", options={"policy": "noop"}),
            "big": EndpointConfig("litellm", "openai/x", api_key_env="SOME_KEY", api_base="http://host/v1"),
        }
        gate = gateway(ModelsConfig("s", "S", endpoints, {"actor": "main", "default": "big"}), constrain_actions=True)
        text = json.dumps(gate.describe())
        assert "sk-very-secret" not in text and "SOME_KEY" in text
        described = gate.describe()
        assert described["scripted"] is True and described["endpoints"]["big"]["scripted"] is False
        assert described["constrain_actions"] is False  # no endpoint here can hold answers to choices

    def test_check_reports_a_missing_key_and_a_missing_model_before_anything_is_imported(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("NO_SUCH_KEY", raising=False)
        gate = gateway(model_set("litellm", "openai/", api_key_env="NO_SUCH_KEY"))
        problems = gate.check()
        assert any("NO_SUCH_KEY" in p.fix for p in problems) and any("MEMARENA_MODEL" in p.fix for p in problems)

    @pytest.mark.parametrize("version", ["1.82.7", "1.107.0", "1.106.1"])
    def test_check_warns_of_a_compromised_litellm(self, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.metadata.version", lambda name: version)
        problems = gateway(model_set("litellm", "openai/x")).check()
        assert any(version in p.what and "pip install litellm==" in p.fix for p in problems)

    def test_neither_gateway_nor_check_imports_a_model_library(self) -> None:
        code = (
            "import sys, harness.models.gateway as g\n"
            "from harness.models.config import EndpointConfig as E, ModelsConfig as M\n"
            "heavy = lambda: sorted({n.split('.')[0] for n in sys.modules} & {'litellm', 'xllamacpp', 'numpy', 'openai', 'tiktoken'})\n"
            "assert not heavy(), heavy()\n"
            "for e in (E('litellm', 'openai/x'), E('embedded', 'smollm2-135m-instruct')):\n"
            "    gate = g.Gateway(M('s', 'S', {'main': e}), seed=0)\n"
            "    gate.check(), gate.describe(), gate.close()\n"
            "assert not heavy(), heavy()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def test_the_oracle_path_is_cheap(self) -> None:
        gate = gateway(scripted("oracle"))
        calls = [call("y" * 12_000 + str(n), stop=("\n",)) for n in range(300)]
        task: TaskInfo = info(oracle=["go"] * 30)
        with playing(gate, task) as (models, _):
            models.complete(calls[0])
            began = time.process_time()
            for one in calls:
                models.complete(one)
            per_call = (time.process_time() - began) / len(calls)
        assert per_call < 0.001  # about 0.06 ms where this was written
