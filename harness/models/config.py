"""The schema of conf/models/*.yaml: endpoints, and which endpoint answers for which model key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from omegaconf import MISSING

from harness.contracts import MODEL_KEYS
from harness.errors import ConfigError
from harness.registry import did_you_mean

DROPPABLE = ("temperature", "top_p", "stop", "seed", "response_format")  # what `unsupported` may list
TOKEN_PARAMETERS = ("max_tokens", "max_completion_tokens")

# the least value of each number; none may be infinite
LEAST: Mapping[str, int] = MappingProxyType(
    {
        "max_tokens": 1,
        "max_concurrency": 1,
        "max_retries": 0,
        "timeout_s": 0,
        "max_wait_s": 0,
        "context_window": 1,
        "temperature": 0,
        "top_p": 0,
    }
)

EMBED = "embed"  # the model key of embeddings; a chat endpoint is no substitute, so `default` does not serve it

# what changes how a run is carried out, not what it measures, is no part of a cell's identity
_RUN_OPTION: Mapping[str, Any] = MappingProxyType({"identity": False})


@dataclass
class EndpointConfig:
    """One model behind one back-end.

    `model` is the back-end's own name of it (for litellm `<provider>/<model>`), and the key into the price file.
    `max_tokens` is the completion cap where a call names none (4096: hidden reasoning eats a small one, METHODS.md 1.1);
    `temperature` and `top_p` None means: not sent. `timeout_s` bounds one attempt in seconds, `max_wait_s` all waiting
    between the attempts of one call. `context_window` is in tokens: the embedded model is loaded with it, for others it
    only completes error messages. `unsupported` lists parameters that the endpoint rejects (temperature, top_p, stop,
    seed, response_format); `stop` is then emulated. `extra_body` is sent as it is. `options` are the back-end's own
    (embedded: threads, model_path; scripted: policy, replies, cycle, luck, noop).
    """

    backend: str = MISSING
    model: str = MISSING
    max_tokens: int = 4096
    temperature: float | None = 0.0
    top_p: float | None = None
    api_base: str | None = None
    api_key_env: str | None = field(default=None, metadata=_RUN_OPTION)
    timeout_s: float = field(default=120.0, metadata=_RUN_OPTION)
    max_retries: int = field(default=5, metadata=_RUN_OPTION)
    max_wait_s: float = field(default=300.0, metadata=_RUN_OPTION)
    max_concurrency: int = field(default=8, metadata=_RUN_OPTION)
    context_window: int | None = None
    unsupported: list[str] = field(default_factory=list)
    token_parameter: str = "max_tokens"
    extra_body: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class ModelsConfig:
    """A model set. `keys` maps a model key (planner, actor, memory, judge, reflector, optimizer, eval_judge) to the name of
    an endpoint; the key `default` serves those that are not listed.
    The key `embed` names the endpoint of embeddings. `label` is what tables print.

    `constrain_actions` holds a back-end that has grammars to the admissible actions, unless the run says otherwise.
    """

    name: str = MISSING
    label: str = field(default=MISSING, metadata=_RUN_OPTION)
    endpoints: dict[str, EndpointConfig] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=lambda: {"default": "main"})
    constrain_actions: bool = False

    def endpoint_for(self, key: str) -> str | None:
        """The name of the endpoint that answers for `key`; None where the set has none."""
        return self.keys.get(key, self.keys.get("default"))


def validate(config: ModelsConfig) -> None:
    """Raise ConfigError for what types cannot express: unknown names, and numbers that make no sense."""
    for key, name in config.keys.items():
        if key not in (known := [*MODEL_KEYS, EMBED, "default"]):
            raise ConfigError(f"models.keys has the unknown model key '{key}'.", did_you_mean(key, known))
        if name not in config.endpoints:
            raise ConfigError(
                f"models.keys.{key} names the unknown endpoint '{name}'.", did_you_mean(name, list(config.endpoints))
            )
    for name, endpoint in config.endpoints.items():
        where = f"models.endpoints.{name}"
        for parameter in endpoint.unsupported:
            if parameter not in DROPPABLE:
                raise ConfigError(f"{where}.unsupported lists '{parameter}'.", did_you_mean(parameter, list(DROPPABLE)))
        if endpoint.token_parameter not in TOKEN_PARAMETERS:
            raise ConfigError(
                f"{where}.token_parameter is '{endpoint.token_parameter}'.", f"Known: {', '.join(TOKEN_PARAMETERS)}."
            )
        _check_address(where, endpoint.api_base)
        _check_numbers(where, endpoint)


def _check_address(where: str, url: str | None) -> None:
    """The address is part of the cell's identity and stands in the manifest: no secret may be in it."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{where}.api_base is no address: {error}.") from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"{where}.api_base holds a user, a password or a query, which would be written into the run's files.",
            f"Put the key into an environment variable and name it in {where}.api_key_env.",
        )


def _check_numbers(where: str, endpoint: EndpointConfig) -> None:
    for name, least in LEAST.items():
        value = getattr(endpoint, name)
        if value is not None and not least <= value < math.inf:
            raise ConfigError(f"{where}.{name} is {value}; it must be a finite number of at least {least}.")
