"""Builders that tests share: a configuration as plain data, a prepared cell, a finished run."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from harness.run import Prepared, play, prepare

CHOICES = {"host": "single", "method": "none", "env": "toy", "models": "scripted", "run": "default"}


def scripted(policy: str = "oracle", **options: Any) -> dict[str, Any]:
    """A scripted model set with one endpoint."""
    endpoint = {"backend": "scripted", "model": f"scripted/{policy}", "options": {"policy": policy, **options}}
    return {"name": "scripted", "label": f"scripted ({policy})", "endpoints": {"main": endpoint}, "keys": {"default": "main"}}


def values(root: Path, **groups: Any) -> dict[str, Any]:
    """A whole configuration on the toy environment; keyword arguments are merged into the group of that name."""
    base: dict[str, Any] = {
        "host": {"name": "single"},
        "method": {"name": "none"},
        "env": {"name": "toy"},
        "models": scripted(),
        "run": {"root": str(root), "progress": "off"},
    }
    for group, content in groups.items():
        base[group] = {**base[group], **deepcopy(content)} if group != "models" else deepcopy(content)
    return base


def prepared(root: Path, **groups: Any) -> Prepared:
    composed = values(root, **groups)
    choices = {**CHOICES, **{group: composed[group]["name"] for group in ("host", "method", "env", "models")}}
    return prepare(composed, choices)


def played(root: Path, **groups: Any) -> Path:
    """Play a stream to its end; its directory."""
    ready = prepared(root, **groups)
    assert play(ready) == 0
    return ready.directory
