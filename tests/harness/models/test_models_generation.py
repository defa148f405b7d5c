"""A generation in its own thread, with a library that does as told in the place of the real one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.errors import ModelSetupError, ProviderTimeout
from harness.models.backends import generation
from harness.models.backends.generation import Generation

Callback = Callable[[Any], bool]
LAST = {"usage": {"prompt_tokens": 1}}


def endless(body: dict[str, Any], receive: Callback) -> None:
    """Like the library: whatever comes out of the callback is dropped, and only True ends it."""
    while True:
        try:
            if receive({"n": 1}):
                return
        except BaseException:
            pass
        time.sleep(0.001)


def test_all_chunks_come_back_in_order() -> None:
    def library(body: dict[str, Any], receive: Callback) -> None:
        assert not receive([{"n": 1}, {"n": 2}]) and not receive(LAST)

    assert Generation(library, {}).chunks(5.0) == [{"n": 1}, {"n": 2}, LAST]


def test_an_interrupt_stops_the_computation_and_is_not_lost_in_the_callback() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    running = Generation(endless, {})
    threading.Timer(0.1, signal.raise_signal, (signal.SIGUSR1,)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            running.chunks(30.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not running.runs


def test_an_error_inside_the_callback_is_raised_and_not_dropped() -> None:
    def library(body: dict[str, Any], receive: Callback) -> None:
        broken: Any = type("Chunks", (list,), {"__iter__": lambda self: (_ for _ in ()).throw(MemoryError("chunk"))})()
        assert receive(broken)
        receive(LAST)

    with pytest.raises(MemoryError, match="chunk"):
        Generation(library, {}).chunks(5.0)


def test_what_the_library_raises_is_raised_to_the_caller() -> None:
    def library(body: dict[str, Any], receive: Callback) -> None:
        raise RuntimeError("no slot")

    with pytest.raises(RuntimeError, match="no slot"):
        Generation(library, {}).chunks(5.0)


def test_its_time_is_bounded_even_if_no_chunk_ever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "LONGEST_STOP_S", 0.1)
    release = threading.Event()
    running = Generation(lambda body, receive: release.wait(), {})
    with pytest.raises(ProviderTimeout):
        running.chunks(0.1)
    assert running.runs
    release.set()


def test_stopping_from_another_thread_ends_the_wait() -> None:
    running = Generation(endless, {})
    threading.Timer(0.05, running.stop).start()
    with pytest.raises(ModelSetupError, match="closed"):
        running.chunks(30.0)
