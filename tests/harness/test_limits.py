"""Limits: refused before the call that would pass them, overshot by one completion at most, nested, resumable, shared."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError, LimitExceeded, classify
from harness.limits import Estimate, Limits, LimitSpec, LocalMeter, Spent
from harness.models.ledger import LedgerRow

ROW = LedgerRow(
    position=0,
    task_index=0,
    task_id="t",
    step=0,
    role="r",
    agent=None,
    phase="act",
    key="actor",
    kind="chat",
    endpoint="e",
    model="m",
    attempt=1,
    ok=True,
    input_tokens=0,
    cached_input_tokens=0,
    output_tokens=0,
    reasoning_tokens=0,
    usage_source="provider",
    cost_usd=0.0,
    latency_s=0.0,
    replayed=False,
    constrained=False,
    digest="d",
    occurrence=0,
    error=None,
)


def row(tokens_in: int = 0, tokens_out: int = 0, **kw: Any) -> LedgerRow:
    return replace(ROW, input_tokens=tokens_in, output_tokens=tokens_out, **kw)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(
    limit=st.integers(0, 3000),
    calls=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400)), max_size=30),
)
def test_tokens_are_overshot_by_one_completion_at_most(limit: int, calls: list[tuple[int, int]]) -> None:
    limits, used = Limits(), 0
    with limits.scope("task", LimitSpec(tokens=limit)):
        for prompt, completion in calls:
            try:
                limits.check_before_call(prompt)
            except LimitExceeded as error:
                assert used + prompt > limit  # never refused without need
                assert (error.kind, error.used, error.limit) == ("tokens", used, limit)
                break
            assert used + prompt <= limit  # never admitted where it certainly passes
            limits.add(row(prompt, completion))
            used += prompt + completion
        assert used <= limit + max((c for _, c in calls), default=0)


@given(limit=st.integers(0, 20), attempts=st.lists(st.booleans(), max_size=40))
def test_calls_count_only_what_was_answered(limit: int, attempts: list[bool]) -> None:
    limits, answered = Limits(), 0
    with limits.scope("task", LimitSpec(calls=limit)):
        for succeeds in attempts:
            if answered == limit:
                with pytest.raises(LimitExceeded):
                    limits.check_before_call(1)
                return
            limits.check_before_call(1)
            limits.add(row() if succeeds else row(ok=False, usage_source=None))
            answered += succeeds
        assert limits.used("task").calls == answered


@given(inner=st.integers(0, 500), outer=st.integers(0, 500), prompt=st.integers(1, 500))
def test_a_scope_inside_another_is_held_to_both(inner: int, outer: int, prompt: int) -> None:
    limits = Limits()
    with limits.scope("stream", LimitSpec(tokens=outer)), limits.scope("task", LimitSpec(tokens=inner)):
        if prompt <= min(inner, outer):
            limits.check_before_call(prompt)
        else:
            with pytest.raises(LimitExceeded) as caught:
                limits.check_before_call(prompt)
            assert caught.value.scope == ("task" if prompt > inner else "stream")


def test_what_a_task_uses_stays_with_the_stream_after_it_is_closed() -> None:
    limits = Limits()
    with limits.scope("stream", LimitSpec(tokens=100)):
        for _ in range(2):
            with limits.scope("task", LimitSpec(tokens=60)):
                assert limits.used("task").tokens == 0
                limits.add(row(40, 9))
        assert limits.used("stream").tokens == 98
        with pytest.raises(LimitExceeded, match="stream"):
            limits.check_before_call(3)
    with pytest.raises(KeyError):
        limits.used("stream")


def test_a_resumed_stream_continues_from_what_was_used_before() -> None:
    limits = Limits()
    with limits.scope("stream", LimitSpec(calls=5), used=Spent(calls=5)), pytest.raises(LimitExceeded, match="5 of 5 calls"):
        limits.check_before_call(1)


def test_seconds_count_from_the_start_of_the_scope_and_bound_what_remains() -> None:
    clock = Clock()
    limits = Limits(clock=clock)
    assert limits.remaining_seconds() is None
    with limits.scope("stream", LimitSpec(seconds=100.0), used=Spent(seconds=60.0)):
        with limits.scope("task", LimitSpec(seconds=30.0)):
            assert limits.remaining_seconds() == 30.0
            clock.now += 25.0
            assert limits.remaining_seconds() == 5.0
            clock.now += 6.0
            assert limits.remaining_seconds() == 0.0
            with pytest.raises(LimitExceeded) as caught:
                limits.check_before_call(1)
            assert (caught.value.scope, caught.value.kind) == ("task", "seconds")
        assert limits.remaining_seconds() == 9.0


def test_a_single_call_is_bounded_by_the_call_scope() -> None:
    limits = Limits(call=LimitSpec(tokens=50, seconds=7.0))
    assert limits.remaining_seconds() == 7.0
    limits.check_before_call(50)
    with pytest.raises(LimitExceeded) as caught:
        limits.check_before_call(51)
    assert caught.value.scope == "call"


def test_steps_are_refused_before_the_step() -> None:
    limits = Limits()
    with limits.scope("task", LimitSpec(steps=2)):
        for _ in range(2):
            limits.check_before_step()
            limits.add_step()
        with pytest.raises(LimitExceeded, match="2 of 2 steps"):
            limits.check_before_step()
        limits.check_before_call(1)  # a memory may still write what it has learned


def test_dollars_are_refused_by_the_least_that_the_prompt_costs() -> None:
    limits = Limits()
    with limits.scope("stream", LimitSpec(usd=1.0)):
        limits.add(row(1, 1, cost_usd=0.9))
        limits.check_before_call(Estimate(10, 10, prompt_usd=0.1, most_usd=5.0))
        with pytest.raises(LimitExceeded, match="usd"):
            limits.check_before_call(Estimate(10, 10, prompt_usd=0.11, most_usd=5.0))


def test_a_free_model_is_admitted_under_a_limit_of_no_dollars() -> None:
    limits = Limits()
    with limits.scope("stream", LimitSpec(usd=0.0)):
        limits.check_before_call(Estimate(10, 10, prompt_usd=0.0, most_usd=0.0))


def test_a_dollar_limit_without_a_price_is_the_users_error_and_names_the_model() -> None:
    limits = Limits()
    with limits.scope("stream", LimitSpec(usd=1.0)), pytest.raises(ConfigError, match="big-model"):
        limits.check_before_call(Estimate(10, 10, None, None, "big-model"))


def test_calls_that_might_pass_a_limit_together_wait_for_each_other() -> None:
    limits, running, most, lock = Limits(), [0], [0], threading.Lock()
    refused: list[LimitExceeded] = []

    def work() -> None:
        try:
            with limits.reserve(Estimate(prompt_tokens=10, most_output=40)):
                with lock:
                    running[0] += 1
                    most[0] = max(most[0], running[0])
                time.sleep(0.01)
                limits.add(row(10, 40))
                with lock:
                    running[0] -= 1
        except LimitExceeded as error:
            refused.append(error)

    with limits.scope("task", LimitSpec(tokens=120)):
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
        assert limits.used("task").tokens == 150  # 100, and one more prompt of 10 still fitted: one completion over
    assert most[0] <= 3 and len(refused) == 3


def test_a_failed_call_gives_its_room_back() -> None:
    limits = Limits()
    with limits.scope("task", LimitSpec(tokens=100)):
        with pytest.raises(ZeroDivisionError), limits.reserve(Estimate(90, 10)):
            raise ZeroDivisionError
        with limits.reserve(Estimate(90, 10)):
            pass


def test_a_scope_can_use_a_meter_that_others_share() -> None:
    shared = LocalMeter(Spent(tokens=10))
    one, other = Limits(), Limits()
    with one.scope("sweep", LimitSpec(tokens=100), meter=shared), other.scope("sweep", LimitSpec(tokens=100), meter=shared):
        one.add(row(50, 30))
        with pytest.raises(LimitExceeded, match="sweep"):
            other.check_before_call(11)


def test_a_tasks_limit_is_an_agent_failure_and_a_streams_limit_stops() -> None:
    assert classify(LimitExceeded("task", "tokens", 1, 2)).verdict == "agent_failure"
    assert classify(LimitExceeded("stream", "tokens", 1, 2)).verdict == "stop"


@pytest.mark.parametrize("name", ["calls", "tokens", "usd", "seconds", "steps"])
@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), float("-inf")])
def test_a_limit_that_is_no_limit_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"limit {name} is {value}"):
        LimitSpec(**{name: value})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nan", r"^run: limits\.task\.usd is nan, which is no number to work with"),
        ("inf", r"^run: limits\.task\.usd is inf, which is no number to work with"),
        ("-1", r"^run: the limit usd is -1\.0, it must be a finite number from 0 on"),
    ],
)
def test_the_configuration_says_which_limit_makes_no_sense(value: str, message: str) -> None:
    from harness.config import RunConfig, validate

    with pytest.raises(ConfigError, match=message) as caught:
        validate(RunConfig, {"limits": {"task": {"usd": float(value)}}}, "run")
    assert "\n" not in str(caught.value)


def test_zero_is_a_limit() -> None:
    assert LimitSpec(calls=0, seconds=0.0).calls == 0
