"""`complete_many`: order of rows and replies, concurrency, errors and limits among calls that run side by side."""

from __future__ import annotations

import threading
import time

import pytest
from models_doubles import call, gateway, playing, told

from harness.errors import LimitExceeded, ModelSetupError
from harness.limits import Limits, LimitSpec
from harness.models.backends.base import Request


class TestManyCalls:
    def test_rows_and_replies_stand_in_the_order_of_the_calls(self) -> None:
        def handle(request: Request, n: int) -> str:
            text = request.call.messages[0]["content"]
            time.sleep(0.03 if text == "0" else 0.0)
            return text

        gate = gateway(told(handle, max_concurrency=4))
        with gate, playing(gate) as (models, sink):
            replies = models.complete_many([call(str(n)) for n in range(6)])
        assert [r.text for r in replies] == [str(n) for n in range(6)]
        assert [t["text"] for t in sink.transcripts] == [str(n) for n in range(6)]

    def test_no_more_run_at_once_than_the_endpoint_allows(self) -> None:
        running, most, lock = [0], [0], threading.Lock()

        def handle(request: Request, n: int) -> str:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.01)
            with lock:
                running[0] -= 1
            return "x"

        gate = gateway(told(handle, max_concurrency=3))
        with gate, playing(gate) as (models, _):
            models.complete_many([call(str(n)) for n in range(12)])
        assert most[0] == 3

    def test_equal_requests_get_consecutive_occurrences(self) -> None:
        gate = gateway(told(lambda r, n: "x"))
        with gate, playing(gate) as (models, sink):
            models.complete_many([call("same")] * 3)
        assert [r.occurrence for r in sink.rows] == [0, 1, 2]

    def test_the_first_error_is_raised_and_what_was_billed_is_written(self) -> None:
        def handle(request: Request, n: int) -> str:
            if request.call.messages[0]["content"] == "1":
                raise ModelSetupError("no key")
            return "x"

        gate = gateway(told(handle, max_concurrency=4))
        with gate, playing(gate) as (models, sink), pytest.raises(ModelSetupError):
            models.complete_many([call(str(n)) for n in range(4)])
        totals = gate.counters.totals()["main"]
        assert totals.attempts == len(sink.rows) >= 2
        assert sink.rows[1].error is not None and "no key" in sink.rows[1].error

    def test_a_token_limit_is_overshot_by_one_completion_at_most_however_many_run(self) -> None:
        limits = Limits()
        gate = gateway(told(lambda r, n: "x", max_concurrency=8, max_tokens=20), limits=limits)
        task = limits.scope("task", LimitSpec(tokens=300))
        with gate, task, playing(gate) as (models, sink), pytest.raises(LimitExceeded):
            models.complete_many([call(str(n)) for n in range(8)])
        assert sum(r.input_tokens + r.output_tokens for r in sink.rows) <= 300 + 110
