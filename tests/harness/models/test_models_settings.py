"""Model sets, price file, and the small pure parts: stop emulation, token estimates, the limiter."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException, ValidationError

from harness.compose import conf_dir
from harness.contracts import Usage
from harness.errors import ConfigError
from harness.models.config import EndpointConfig, ModelsConfig, validate
from harness.models.gateway import Gateway
from harness.models.limiter import AdaptiveLimiter
from harness.models.prices import PriceBook
from harness.models.tokens import cut_at_stop, estimate_messages, estimate_text

SETS = sorted((conf_dir() / "models").glob("*.yaml"))
TABLE_2 = (
    "qwen3.5-0.8b",
    "qwen3.5-2b",
    "qwen3.5-9b",
    "qwen3.5-27b",
    "gemma-4-12b-it",
    "gemma-4-31b-it",
    "deepseek-v4-flash-0731",
    "qwen3.8-max",
    "glm-5.2",
    "kimi-k3",
    "gpt-5.6-terra",
    "claude-opus-5",
)


def load(values: Any) -> ModelsConfig:
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(ModelsConfig), values))
    assert isinstance(config, ModelsConfig)
    validate(config)
    return config


class TestModelSets:
    @pytest.mark.parametrize("path", SETS, ids=[p.stem for p in SETS])
    def test_every_yaml_is_a_valid_set_named_like_its_file(self, path: Path) -> None:
        config = load(OmegaConf.load(path))
        assert config.name == path.stem
        gate = Gateway(config, seed=0)
        assert gate.describe()["keys"].keys() == {
            "planner", "actor", "memory", "judge", "reflector", "optimizer", "eval_judge"
        }  # fmt: skip
        gate.close()

    @pytest.mark.parametrize("path", SETS, ids=[p.stem for p in SETS])
    def test_whatever_is_scripted_says_so_in_its_label(self, path: Path) -> None:
        config = load(OmegaConf.load(path))
        assert Gateway(config, seed=0).scripted == ("scripted" in config.label)

    @pytest.mark.parametrize("name", TABLE_2)
    def test_table_2_changes_actor_and_memory_and_nothing_else(self, name: str) -> None:
        config = load(OmegaConf.load(conf_dir() / "models" / f"{name}.yaml"))
        assert config.endpoint_for("actor") == config.endpoint_for("memory") == name
        assert config.endpoint_for("planner") == config.endpoint_for("judge") == "gpt-5-mini"
        main = load(OmegaConf.load(conf_dir() / "models" / "gpt-5-mini.yaml"))
        assert config.endpoints["gpt-5-mini"] == main.endpoints["gpt-5-mini"]

    def test_server_and_model_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMARENA_MODEL", "qwen3:8b")
        monkeypatch.setenv("MEMARENA_API_BASE", "http://there:1/v1")
        endpoint = load(OmegaConf.load(conf_dir() / "models" / "openai-compatible.yaml")).endpoints["main"]
        assert (endpoint.model, endpoint.api_base) == ("openai/qwen3:8b", "http://there:1/v1")

    @pytest.mark.parametrize(
        ("endpoint", "error"),
        [
            ({"max_tokens": "many"}, ValidationError),
            ({"temperature": "hot"}, ValidationError),
            ({"unsupported": "stop"}, OmegaConfBaseException),
            ({"max_tokns": 5}, ConfigKeyError),
        ],
    )
    def test_wrong_types_and_unknown_keys_are_refused(self, endpoint: dict[str, Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            load({"name": "s", "label": "S", "endpoints": {"main": {"backend": "scripted", "model": "m", **endpoint}}})

    @pytest.mark.parametrize(
        ("config", "hint"),
        [
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m")}, {"acter": "main"}), "actor"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m")}, {"actor": "mian"}), "main"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m", unsupported=["stopp"])}), "stop"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m", token_parameter="tokens")}), "max_tokens"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m", max_concurrency=0)}), "at least 1"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scriptd", "m")}), "scripted"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m", options={"policy": "orakel"})}), "oracle"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("scripted", "m", options={"polcy": "noop"})}), "policy"),
            (ModelsConfig("s", "S", {"main": EndpointConfig("embedded", "m", options={"thread": 1})}), "threads"),
        ],
    )
    def test_what_types_cannot_express_is_one_error_with_a_hint(self, config: ModelsConfig, hint: str) -> None:
        with pytest.raises(ConfigError, match=hint):
            Gateway(config, seed=0)


class TestPrices:
    def test_the_file_in_conf_loads_with_its_digest_and_a_source_for_every_entry(self) -> None:
        book = PriceBook.load()
        assert len(book.digest) == 64
        price = book.find("gpt-5-mini")
        assert price is not None and (price.input, price.cached_input, price.output) == (0.25, 0.025, 2.0)

    def test_cached_tokens_cost_less_and_reasoning_is_not_added_again(self) -> None:
        usage = Usage(input=1_000_000, cached_input=400_000, output=100_000, reasoning=90_000)
        assert PriceBook.load().cost("gpt-5-mini", usage) == pytest.approx(0.6 * 0.25 + 0.4 * 0.025 + 0.1 * 2.0)

    def test_an_unknown_model_has_no_cost(self) -> None:
        assert PriceBook.load().cost("openai/my-own-model", Usage(10, 10)) is None

    def test_the_embedded_model_costs_nothing_because_the_file_says_so(self) -> None:
        assert PriceBook.load().cost("smollm2-135m-instruct", Usage(10, 10)) == 0.0
        assert PriceBook.empty().cost("smollm2-135m-instruct", Usage(10, 10)) is None

    @pytest.mark.parametrize(
        "entry",
        ["{input: 1.0}", "{input: 1.0, output: 2.0}", "{input: -1, output: 2, source: x}", "{input: a, output: 2, source: x}"],
    )
    def test_an_entry_without_price_or_source_is_refused(self, entry: str, tmp_path: Path) -> None:
        (tmp_path / "2026-01-01.yaml").write_text(f"models:\n  m: {entry}\n")
        with pytest.raises(ConfigError):
            PriceBook.load(directory=tmp_path)

    def test_the_newest_file_is_taken_and_a_missing_one_is_named(self, tmp_path: Path) -> None:
        for name, price in (("2025-12-31", 1.0), ("2026-01-01", 2.0)):
            (tmp_path / f"{name}.yaml").write_text(f"models:\n  m: {{input: {price}, output: 0.0, source: x}}\n")
        assert PriceBook.load(directory=tmp_path).name == "2026-01-01"
        assert PriceBook.load("2025-12-31", tmp_path).cost("m", Usage(1_000_000)) == 1.0
        with pytest.raises(ConfigError, match="2026-01-01"):
            PriceBook.load("2027-01-01", tmp_path)


class TestStopEmulation:
    @pytest.mark.parametrize(
        ("text", "stop", "kept"),
        [
            ("go to desk 1\nthen look", ("\n",), "go to desk 1"),
            ("\n \n\ngo to desk 1\nx", ("\n",), "go to desk 1"),
            ("no newline", ("\n",), "no newline"),
            ("", ("\n",), ""),
            ("\n\n", ("\n",), ""),
            ("a END b STOP c", ("STOP", "END"), "a "),
            ("keep\nall\nof it", (), "keep\nall\nof it"),
            ("first\n\nsecond", ("\n\n",), "first"),
        ],
    )
    def test_the_text_ends_where_the_model_would_have_stopped(self, text: str, stop: tuple[str, ...], kept: str) -> None:
        assert cut_at_stop(text, stop) == kept

    @given(st.text(alphabet="ab \n", max_size=30))
    def test_cutting_again_changes_nothing_and_no_stop_remains(self, text: str) -> None:
        once = cut_at_stop(text, ("\n",))
        assert "\n" not in once and cut_at_stop(once, ("\n",)) == once
        assert bool(once.strip()) == bool(text.strip())  # the first line with anything on it is never lost


def test_estimates_round_up_and_add_messages_before_rounding() -> None:
    assert [estimate_text("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert estimate_messages([{"role": "user", "content": "xx"}, {"role": "user", "content": "xx"}]) == 1


class TestLimiter:
    def test_it_halves_once_for_requests_that_ran_side_by_side_and_grows_slowly(self) -> None:
        limiter = AdaptiveLimiter(8)
        with limiter.slot() as first, limiter.slot() as second:
            limiter.throttled(first)
            limiter.throttled(second)
        assert limiter.allowed == 4
        time.sleep(0.001)
        with limiter.slot() as later:
            limiter.throttled(later)
        assert limiter.allowed == 2
        for _ in range(2):
            limiter.answered()
        assert limiter.allowed == 2
        for _ in range(3):
            limiter.answered()
        assert limiter.allowed == 3
        for _ in range(200):
            limiter.answered()
        assert limiter.allowed == 8

    def test_it_never_falls_below_one(self) -> None:
        limiter = AdaptiveLimiter(2)
        for _ in range(5):
            time.sleep(0.0005)
            with limiter.slot() as started:
                limiter.throttled(started)
        assert limiter.allowed == 1


class TestNonsense:
    @pytest.mark.parametrize("url", ["http://me:secret@h/v1", "http://secret@h/v1", "http://h/v1?key=secret", "http://h/#secret"])
    def test_an_address_with_credentials_is_refused_without_repeating_them(self, url: str) -> None:
        with pytest.raises(ConfigError, match=r"models.endpoints.main.api_base.*api_key_env") as caught:
            validate(ModelsConfig("s", "S", {"main": EndpointConfig("litellm", "openai/x", api_base=url)}))
        assert "secret" not in str(caught.value)

    def test_a_plain_address_is_taken(self) -> None:
        validate(ModelsConfig("s", "S", {"main": EndpointConfig("litellm", "openai/x", api_base="http://[::1]:8000/v1")}))
        with pytest.raises(ConfigError, match="api_base"):
            validate(ModelsConfig("s", "S", {"main": EndpointConfig("litellm", "openai/x", api_base="http://[::1/v1")}))

    @pytest.mark.parametrize("name", ["timeout_s", "max_wait_s", "temperature", "top_p"])
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
    def test_numbers_that_are_none_are_refused(self, name: str, value: float) -> None:
        with pytest.raises(ConfigError, match=f"models.endpoints.main.{name} is {value}"):
            validate(ModelsConfig("s", "S", {"main": EndpointConfig("litellm", "openai/x", **{name: value})}))

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("models: [a", "is no price file"),
            ("models: {m: ${foo}}", "is no price file"),
            ("- a", "is no price file"),
            ("models: {m: {input: .nan, output: 1, source: s}}", "models.m: input is nan"),
            ("models: {m: {input: 1, output: .inf, source: s}}", "models.m: output is inf"),
            ("models: {m: {input: 1, output: -2, source: s}}", "models.m: output is -2"),
            ("models: {m: {input: 1, output: 2, cached_input: -1, source: s}}", "models.m: cached_input is -1"),
            ("models: {m: {input: 1, output: 2, cached: 1, source: s}}", "models.m has the unknown key 'cached'"),
            ("models: {m: 5}", "models.m is no price: 5"),
        ],
    )
    def test_a_broken_price_file_is_one_line_naming_file_and_entry(self, text: str, said: str, tmp_path: Path) -> None:
        (tmp_path / "2026-01-01.yaml").write_text(text)
        with pytest.raises(ConfigError) as caught:
            PriceBook.load(directory=tmp_path)
        assert str(tmp_path / "2026-01-01.yaml") in str(caught.value) and said in str(caught.value)
        assert "\n" not in str(caught.value)
