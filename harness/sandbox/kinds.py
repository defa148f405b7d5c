"""The kinds of sandbox by name."""

from __future__ import annotations

import importlib

from harness.errors import ConfigError
from harness.registry import did_you_mean
from harness.sandbox.base import SandboxKind

KINDS = {
    "docker": "harness.sandbox.docker:Docker",
    "bubblewrap": "harness.sandbox.bubblewrap:Bubblewrap",
    "process": "harness.sandbox.process:Process",
}


def sandbox_kind(name: str) -> SandboxKind:
    """The kind called `name`. Raises ConfigError for an unknown one."""
    if name not in KINDS:
        raise ConfigError(f"Unknown sandbox {name!r}.", did_you_mean(name, list(KINDS)))
    module, _, attribute = KINDS[name].partition(":")
    kind: SandboxKind = getattr(importlib.import_module(module), attribute)()
    return kind
