"""A real Ctrl-C while a model is at work: the process ends soon, and no torn answer is ever committed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer, answer
from test_models_embedded import needs_model

from harness.store import canonical
from harness.store.view import RunView
from tests.support.build import CHOICES, values

INTERRUPTED = "memarena: interrupted; what was committed is kept, the same command continues."


def endpoint(**kw: Any) -> dict[str, Any]:
    return {"name": "set", "label": "Set", "endpoints": {"main": kw}, "keys": {"default": "main"}}


def start(root: Path, name: str, models: dict[str, Any], **groups: Any) -> subprocess.Popen[str]:
    content = values(root, models=models, run={"name": name, "infra_retries": 0}, **groups)
    choices = {**CHOICES, **{group: content[group]["name"] for group in ("host", "method", "env", "models")}}
    path = root / f"{name}.json"
    path.write_text(json.dumps({"values": content, "choices": choices, "bases": {}, "experiment": None}))
    command = [sys.executable, "-m", "tests.support.play_toy", str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def ends_soon(process: subprocess.Popen[str], number: signal.Signals, within: float) -> str:
    """Send the signal; the exit code must be 130, in time. Returns what stands on stderr."""
    began = time.monotonic()
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=within)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130, (process.returncode, err)
    assert time.monotonic() - began < within
    return err.strip()


# --- the embedded model ---------------------------------------------------------------------------------------------------
EMBEDDED = endpoint(backend="embedded", model="smollm2-135m-instruct", context_window=2048, max_tokens=40, timeout_s=60.0)
SMALL = {"env": {"n": 3, "max_steps": 4}}


def wait_for_a_call(process: subprocess.Popen[str], events: Path) -> None:
    size = events.stat().st_size if events.exists() else 0
    while process.poll() is None:
        if events.exists() and '"model_call"' in events.read_bytes()[size:].decode("utf-8", "replace"):
            return
        time.sleep(0.005)


slow_model = [*needs_model, pytest.mark.slow]


class TestEmbedded:
    pytestmark = slow_model

    @pytest.mark.parametrize("host", ["single", "autogen"])
    def test_interrupted_again_and_again_and_resumed_it_equals_an_uninterrupted_run(self, tmp_path: Path, host: str) -> None:
        whole = start(tmp_path, "whole", EMBEDDED, host={"name": host}, **SMALL)
        _, err = whole.communicate(timeout=200)
        assert whole.returncode == 0, err
        rng = random.Random(host)
        interrupted = 0
        for repeat in range(6):
            process = start(tmp_path, "torn", EMBEDDED, host={"name": host}, **SMALL)
            wait_for_a_call(process, tmp_path / "torn" / "events.jsonl")
            time.sleep(rng.uniform(0.0, 1.0))  # inside an answer, nearly always
            if process.poll() is not None or RunView(tmp_path / "torn").status == "finished" or interrupted == 5:
                break
            err = ends_soon(process, (signal.SIGINT, signal.SIGTERM)[repeat % 2], within=8)
            assert err == INTERRUPTED
            interrupted += 1
        _, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert interrupted > 0
        assert list(canonical.lines(tmp_path / "torn")) == list(canonical.lines(tmp_path / "whole"))


# --- a server that hangs --------------------------------------------------------------------------------------------------
@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    made = OpenAIServer()
    made.handle = lambda body, n: answer("look") if n < 2 else answer(delay=600.0)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("host", ["single", "autogen", "dylan"])
@pytest.mark.parametrize("repeat", range(3))
def test_a_hanging_server_does_not_hold_an_interrupted_process_back(
    tmp_path: Path, server: OpenAIServer, host: str, repeat: int
) -> None:
    models = endpoint(backend="litellm", model="openai/m", api_base=server.base, timeout_s=300.0, max_retries=0)
    process = start(tmp_path, "hung", models, host={"name": host})
    while process.poll() is None and server.running < 1 + (len(server.requests) < 3):
        time.sleep(0.01)
    time.sleep(0.2 * repeat)
    assert ends_soon(process, signal.SIGINT, within=6) == INTERRUPTED
