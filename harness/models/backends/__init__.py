"""Back-ends: what turns a request into an answer. Loaded by name, and only when an endpoint uses them."""

from __future__ import annotations

from harness.models.backends.base import Backend
from harness.registry import Registry


def backends() -> Registry[Backend]:
    """Built-in back-ends, and those of installed packages (entry-point group `memarena.backends`)."""
    return Registry("back-end", "harness.models.backends.catalogue", "memarena.backends")
