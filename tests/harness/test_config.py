"""conf/ and its schemas: every YAML loads, and says what its dataclass says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from harness.compose import compose_one, conf_dir
from harness.config import RunConfig, identity_part, resolve, validate
from harness.errors import ConfigError
from harness.models.config import ModelsConfig
from harness.registry import environments, hosts, methods


def yamls(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


@pytest.mark.parametrize(("group", "registry"), [("host", hosts()), ("method", methods()), ("env", environments())])
class TestEveryChoice:
    def test_every_name_has_a_yaml(self, group: str, registry: Any) -> None:
        assert set(registry.names()) - {"toy"} <= set(yamls(group))

    def test_every_yaml_equals_the_defaults_of_its_dataclass(self, group: str, registry: Any) -> None:
        for name in yamls(group):
            values = OmegaConf.to_container(OmegaConf.load(conf_dir() / group / f"{name}.yaml"), resolve=True)
            assert isinstance(values, dict)
            schema = registry.load(values["name"]).Config
            loaded = validate(schema, {str(k): v for k, v in values.items()}, group)
            if name != values["name"]:  # a variant: says only what it changes, and changes something
                assert dataclasses.asdict(loaded) != dataclasses.asdict(schema()), name
                continue
            assert dataclasses.asdict(loaded) == dataclasses.asdict(schema()), name
            assert set(values) == {item.name for item in dataclasses.fields(schema)}, f"{name}: a key is not shown"


@pytest.mark.parametrize("name", yamls("models"))
def test_every_model_set_is_valid_and_named_after_its_file(name: str) -> None:
    values = compose_one([f"models={name}"])[0]["models"]
    assert validate(ModelsConfig, values, "models").name == name


def test_the_run_yaml_shows_every_key_with_its_default() -> None:
    values = compose_one(["models=scripted"])[0]["run"]
    assert dataclasses.asdict(validate(RunConfig, values, "run")) == dataclasses.asdict(RunConfig())
    assert set(values) == {item.name for item in dataclasses.fields(RunConfig)}


@pytest.mark.parametrize("name", yamls("experiment"))
def test_every_experiment_composes_and_resolves(name: str) -> None:
    config, *_ = resolve(*compose_one([f"experiment={name}"]))
    assert config.experiment == name


def test_overrides_of_the_cell_show_in_the_name_and_run_options_do_not() -> None:
    plain = resolve(*compose_one(["models=scripted"]))[0]
    changed = resolve(*compose_one(["models=scripted", "env.max_steps=7", "run.progress=off", "run.tasks=3"]))[0]
    assert plain.default_name() == "alfworld-autogen-none-scripted-s0"
    assert changed.default_name() == "alfworld-autogen-none-scripted-s0-env.max_steps-7"
    assert changed.variant == "env.max_steps=7"


def test_constrain_actions_follows_the_model_set_unless_the_run_says_otherwise() -> None:
    assert resolve(*compose_one(["models=embedded"]))[0].run.constrain_actions is True
    assert resolve(*compose_one(["models=embedded", "run.constrain_actions=false"]))[0].run.constrain_actions is False
    assert resolve(*compose_one(["models=scripted"]))[0].run.constrain_actions is False


def test_a_key_that_only_the_schema_knows_needs_no_plus_and_a_misspelt_one_is_named() -> None:
    config = resolve(*compose_one(["models=embedded", "models.endpoints.main.temperature=0.7"]))[0]
    assert config.models.endpoints["main"].temperature == 0.7
    assert config.variant == "models.endpoints.main.temperature=0.7"
    with pytest.raises(ConfigError, match=r"Unknown key run\.sed\. Did you mean seed"):
        resolve(*compose_one(["run.sed=3"]))


def test_identity_leaves_out_fields_that_say_so() -> None:
    part = identity_part(RunConfig())
    assert "seed" in part and "root" not in part and "progress" not in part
    assert set(part["limits"]) == {"task"}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method=metagtp"], r"Unknown method 'metagtp'\. Did you mean metagpt or metagpt_pool\?"),
        (["experiment=dmo"], "Unknown experiment 'dmo'. Did you mean demo"),
        (["mothod=none"], "Unknown key mothod. Did you mean method"),
        (["method=none,metagpt"], "Ambiguous value"),
        (["a=b=c["], "mismatched input"),
    ],
)
def test_a_bad_override_is_one_clear_line(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        compose_one([*overrides, "models=scripted"])
    assert "\n" not in str(caught.value)


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(ConfigError, match="Unknown key methd. Did you mean method"):
        resolve({"methd": {}}, {})


def test_conf_is_found_beside_the_packages() -> None:
    assert conf_dir() == Path(__file__).resolve().parents[2] / "conf"
