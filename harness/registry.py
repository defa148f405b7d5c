"""Lazy typed registry: a name in the configuration → the class, imported when it is first needed.

The harness knows no concrete host, method or environment. Each package lists its own in a catalogue module (names and
"module:attr" strings, no imports); a third party adds names by entry point, in the groups named below.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from harness.contracts import Environment, Host, Memory
from harness.errors import ConfigError, SetupError

T = TypeVar("T")


def did_you_mean(word: str, names: list[str]) -> str:
    """Did you mean …?" for the nearest names, else the list of all names."""
    near = difflib.get_close_matches(word, names, n=2, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(sorted(names))}."


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Names of one kind of plug-in. `catalogue` is a module with `CATALOGUE: dict[str, str]`; `group` an entry-point group."""

    kind: str
    catalogue: str
    group: str

    def _targets(self) -> dict[str, str]:
        known: Mapping[str, str] = importlib.import_module(self.catalogue).CATALOGUE
        found = {point.name: point.value for point in importlib.metadata.entry_points(group=self.group)}
        for name in found.keys() & known.keys():
            raise ConfigError(f"An installed package registers the {self.kind} {name!r}, which MemArena has itself.")
        return {**known, **found}

    def names(self) -> list[str]:
        return sorted(self._targets())

    def load(self, name: str) -> type[T]:
        """The class behind `name`. Raises ConfigError for an unknown name, SetupError where its package is missing."""
        targets = self._targets()
        if name not in targets:
            raise ConfigError(f"Unknown {self.kind} {name!r}.", did_you_mean(name, list(targets)))
        module, _, attribute = targets[name].partition(":")
        try:
            loaded: Any = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise SetupError(
                f"The {self.kind} {name!r} needs the package {error.name!r}, which is not installed.",
                "See `memarena doctor`.",
            ) from error
        return cast("type[T]", loaded)


def hosts() -> Registry[Host]:
    return Registry("host", "methods.hosts.catalogue", "memarena.hosts")


def methods() -> Registry[Memory]:
    return Registry("method", "methods.catalogue", "memarena.methods")


def environments() -> Registry[Environment]:
    return Registry("env", "envs.catalogue", "memarena.envs")
