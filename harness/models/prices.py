"""The price file: dollars per million tokens, with a source for every entry. An unknown price is None, never 0."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from harness.compose import conf_dir
from harness.contracts import Usage
from harness.errors import ConfigError
from harness.models.intake import LONGEST_LINE
from harness.registry import did_you_mean

SHAPE = "It has 'models', and for each model input and output (USD per 1M tokens, not negative) and a source."


@dataclass(frozen=True)
class Price:
    """USD per 1,000,000 tokens. `cached_input` None: cached tokens cost as much as others."""

    input: float
    output: float
    cached_input: float | None = None
    source: str = ""

    def cost(self, usage: Usage) -> float:
        """Dollars for `usage`; cached tokens are part of the input (TOK-R3), reasoning is part of the output (TOK-R2)."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, usage.input - usage.cached_input)
        return (fresh * self.input + usage.cached_input * cached_price + usage.output * self.output) / 1e6

    def least_for_prompt(self, tokens: int) -> float:
        """The least that a prompt can cost: all of it cached."""
        return tokens * min(self.input, self.input if self.cached_input is None else self.cached_input) / 1e6


class PriceBook:
    """Prices by the endpoint's `model`; `name` and `digest` (sha256 of the file) go into the run's manifest."""

    def __init__(self, name: str, digest: str, prices: Mapping[str, Price]) -> None:
        self.name, self.digest = name, digest
        self._prices = dict(prices)

    @classmethod
    def load(cls, name: str | None = None, directory: Path | None = None) -> PriceBook:
        """Read `<directory>/<name>.yaml`; without a name the newest (the names are dates). Raises ConfigError."""
        directory = directory or conf_dir() / "prices"
        files = sorted(directory.glob("*.yaml"))
        if not files:
            raise ConfigError(f"There is no price file in {directory}.")
        path = files[-1] if name is None else directory / f"{name}.yaml"
        if not path.is_file():
            raise ConfigError(f"There is no price file {path}.", f"Known: {', '.join(f.stem for f in files)}.")
        try:
            content: Any = OmegaConf.to_container(OmegaConf.create(path.read_text(encoding="utf-8")), resolve=True)
            entries = dict(content["models"])
        except (YAMLError, OmegaConfBaseException, OSError, LookupError, TypeError, ValueError) as error:
            said = " ".join(str(error).split())[:LONGEST_LINE]
            raise ConfigError(f"{path} is no price file ({type(error).__name__}: {said}).", SHAPE) from error
        prices = {str(model): _price(entry, f"{path}: models.{model}") for model, entry in entries.items()}
        return cls(path.stem, hashlib.sha256(path.read_bytes()).hexdigest(), prices)

    @classmethod
    def empty(cls) -> PriceBook:
        """A book that knows no price: every cost is None."""
        return cls("none", "", {})

    def find(self, model: str) -> Price | None:
        """The price of `model`, or None where it is unknown."""
        return self._prices.get(model)

    def cost(self, model: str, usage: Usage) -> float | None:
        """Dollars for `usage` of `model`, or None where the price is unknown."""
        price = self._prices.get(model)
        return None if price is None else price.cost(usage)

    def describe(self) -> dict[str, str]:
        return {"name": self.name, "sha256": self.digest}


def _price(entry: Any, where: str) -> Price:
    """The price in `entry`. Raises ConfigError naming `where` it stands."""
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} is no price: {entry!r}.", SHAPE)
    known = [item.name for item in fields(Price)]
    for key in entry:
        if key not in known:
            raise ConfigError(f"{where} has the unknown key {key!r}.", did_you_mean(str(key), known))
    for key in ("input", "output", "cached_input"):
        value = entry.get(key)
        if value is None and key == "cached_input":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ConfigError(f"{where}: {key} is {value!r}.", "It is USD per 1M tokens: a finite number from 0 on.")
    if not isinstance(entry.get("source"), str) or not entry["source"]:
        raise ConfigError(f"{where} has no source.", SHAPE)
    return Price(**{str(key): value for key, value in entry.items()})
