"""The configuration of one stream: schema (dataclasses), validation, and what of it makes the cell's identity.

Values live in conf/, a YAML a choice; the dataclass beside each class is their schema. An unknown key, a wrong type or an
unknown name is one ConfigError that names the key and the nearest valid one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from harness.compose import GROUPS
from harness.errors import ConfigError
from harness.limits import LimitSpec
from harness.models.config import ModelsConfig
from harness.models.config import validate as check_models
from harness.registry import Registry, did_you_mean, environments, hosts, methods
from harness.store.identity import leaves

T = TypeVar("T")

LONGEST_NAME = 150  # characters of a derived directory name; file systems allow 255 bytes
LARGEST_SEED = 2**32  # the last task's seed, seed × 1000003 + i, must fit into SQLite's integers

# Fields that change how a run is carried out, but not what it measures, say so in their metadata.
RUN_OPTION: dict[str, Any] = {"identity": False}


@dataclass
class ReplayConfig:
    """Record and replay of model calls: `mode` is off, record, replay or auto; `path` the recording (null: in the run)."""

    mode: str = "off"
    path: str | None = None


@dataclass
class RunLimits:
    """Limits by scope. The task's are part of the cell (they change scores), the stream's and the sweep's are not."""

    task: LimitSpec = field(default_factory=LimitSpec)
    stream: LimitSpec = field(default_factory=LimitSpec, metadata=RUN_OPTION)


@dataclass
class RunConfig:
    """How a stream is played.

    `tasks` is the number of tasks from the start of the order (null: all). It is no part of the cell: a stream plays its
    tasks one after another, so a pilot of ten is the beginning of the whole run and is continued by asking for more.
    `order` is official or shuffled:<seed>; `constrain_actions` holds a back-end that has a grammar to the admissible
    actions. `name` is the run's directory below `root` (null: made from the configuration). `infra_retries` are repeats of
    a task after an infrastructure failure, `max_infra_failures` the number of tasks in a row that may fail so before the
    stream stops. `progress` is auto, bar, lines or off. `confirm_above` is the estimated cost in dollars above which `memarena
    run` asks before it begins (null: never).
    """

    seed: int = 0
    tasks: int | None = field(default=None, metadata=RUN_OPTION)
    order: str = "official"
    constrain_actions: bool = False
    limits: RunLimits = field(default_factory=RunLimits)
    name: str | None = field(default=None, metadata=RUN_OPTION)
    root: str = field(default="results/runs", metadata=RUN_OPTION)
    replay: ReplayConfig = field(default_factory=ReplayConfig, metadata=RUN_OPTION)
    infra_retries: int = field(default=1, metadata=RUN_OPTION)
    max_infra_failures: int = field(default=3, metadata=RUN_OPTION)
    progress: str = field(default="auto", metadata=RUN_OPTION)
    confirm_above: float | None = field(default=10.0, metadata=RUN_OPTION)


@dataclass(frozen=True)
class StreamConfig:
    """A validated configuration: one typed object a group, the chosen names, and what was overridden (`variant`)."""

    host: Any
    method: Any
    env: Any
    models: ModelsConfig
    run: RunConfig
    choices: Mapping[str, str]  # group → name of the YAML
    variant: str = ""  # deviations from the YAMLs that change the cell, "key=value, …"
    experiment: str | None = None

    def default_name(self) -> str:
        """A readable directory name that differs wherever the cell differs by an override."""
        parts = [self.choices["env"], self.choices["host"], self.choices["method"], self.choices["models"], f"s{self.run.seed}"]
        if self.variant:
            # no "=": Hydra would want the name quoted when it is given back as run.name
            parts.append(re.sub(r"[^A-Za-z0-9._-]+", "+", self.variant.replace("=", "-")))
        name = "-".join(parts)
        if len(name) <= LONGEST_NAME:
            return name
        return f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def identity_part(value: Any) -> Any:
    """The part of a configuration dataclass that belongs to the cell's identity, as plain JSON-able data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: identity_part(getattr(value, item.name))
            for item in dataclasses.fields(value)
            if item.metadata.get("identity", True)
        }
    if isinstance(value, Mapping):
        return {str(key): identity_part(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [identity_part(item) for item in value]
    return value


def validate(schema: type[T], values: Mapping[str, Any], where: str) -> T:
    """`values` as an instance of the dataclass `schema`. Raises ConfigError naming the key, the value and what is allowed."""
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), dict(values))
        for key, value in leaves(OmegaConf.to_container(merged)):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{key} is {value}, which is no number to work with")
        return cast(T, OmegaConf.to_object(merged))
    except ConfigKeyError as error:
        key = str(error.full_key or error.key)
        known = [item.name for item in dataclasses.fields(error.object_type or schema)]  # type: ignore[arg-type]
        hint = did_you_mean(key.rsplit(".", 1)[-1], known)
        raise ConfigError(f"Unknown key {where}.{key}.", hint) from error
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        full_key = getattr(error, "full_key", None)
        where = f"{where}.{full_key}" if full_key else where
        first = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(f"{where}: {first}.") from error


def _load(registry: Registry[Any], values: Mapping[str, Any], where: str) -> tuple[type[Any], Any]:
    name = values.get("name")
    if not isinstance(name, str):
        raise ConfigError(f"{where}.name is missing.", f"Name one of: {', '.join(registry.names())}.")
    cls = registry.load(name)
    return cls, validate(cls.Config, values, where)


def resolve(
    values: Mapping[str, Any],
    choices: Mapping[str, str],
    bases: Mapping[str, Mapping[str, Any]] | None = None,
    experiment: str | None = None,
) -> tuple[StreamConfig, type[Any], type[Any], type[Any]]:
    """Validate a composed configuration (plain data); return it with the host, method and environment classes.

    `bases` are the chosen YAMLs as they stand: what deviates from them makes the variant.
    """
    for group in values:
        if group not in GROUPS:
            raise ConfigError(f"Unknown key {group}.", did_you_mean(group, list(GROUPS)))
    for group in GROUPS:
        if not isinstance(values.get(group), Mapping):
            raise ConfigError(f"The configuration has no {group}.", f"Choose one: {group}=….")
    host_class, host = _load(hosts(), values["host"], "host")
    method_class, method = _load(methods(), values["method"], "method")
    env_class, env = _load(environments(), values["env"], "env")
    models = validate(ModelsConfig, values["models"], "models")
    run = validate(RunConfig, values["run"], "run")
    check_models(models)
    check_run(run)
    loaded = {"host": host, "method": method, "env": env, "models": models}
    variant = _variant(loaded, bases or {}, run)
    return StreamConfig(host, method, env, models, run, choices, variant, experiment), host_class, method_class, env_class


def _variant(loaded: Mapping[str, Any], bases: Mapping[str, Mapping[str, Any]], run: RunConfig) -> str:
    """What of the cell deviates from the chosen YAMLs: "env.max_steps=10, method.successful_topk=2"."""
    pairs = [(group, validate(type(value), bases[group], group), value) for group, value in loaded.items() if group in bases]
    pairs.append(("run", RunConfig(run.seed, run.tasks, constrain_actions=loaded["models"].constrain_actions), run))
    found = []
    for group, base, value in pairs:
        known = dict(leaves(identity_part(base)))
        found += [f"{group}.{key}={item}" for key, item in leaves(identity_part(value)) if key not in known or known[key] != item]
    return ", ".join(found)


def is_name(part: str) -> bool:
    return part == part.strip() and part.isprintable() and part not in ("", ".", "..") and len(part.encode()) <= 200


def check_run(run: RunConfig) -> None:
    """Reject values of the right type that make no sense."""
    if run.replay.mode not in ("off", "record", "replay", "auto"):
        raise ConfigError(
            f"run.replay.mode is {run.replay.mode!r}.", did_you_mean(run.replay.mode, ["off", "record", "replay", "auto"])
        )
    if run.order != "official" and not re.fullmatch(r"shuffled:\d+", run.order):
        raise ConfigError(f"run.order is {run.order!r}.", "Use official or shuffled:<seed>.")
    if run.tasks is not None and run.tasks < 1:
        raise ConfigError(f"run.tasks is {run.tasks}.", "Use a positive number, or null for all tasks.")
    if not 0 <= run.seed <= LARGEST_SEED:
        raise ConfigError(f"run.seed is {run.seed}.", f"Use a number from 0 to {LARGEST_SEED}.")
    if run.progress not in ("auto", "bar", "lines", "off"):
        raise ConfigError(f"run.progress is {run.progress!r}.", did_you_mean(run.progress, ["auto", "bar", "lines", "off"]))
    if run.name is not None and not all(is_name(part) for part in run.name.split("/")):
        raise ConfigError(f"run.name is {run.name!r}.", "Use a relative path of printable names, without empty parts and '..'.")
    if run.confirm_above is not None and run.confirm_above < 0:
        raise ConfigError(f"run.confirm_above is {run.confirm_above}.", "Use dollars from 0 on, or null to be never asked.")
    if run.infra_retries < 0 or run.max_infra_failures < 1:
        raise ConfigError("run.infra_retries must be 0 or more, run.max_infra_failures 1 or more.")
