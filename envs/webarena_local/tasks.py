"""The tasks of the double: tasks.json, in the format of WebArena's own list, with __SHOPPING__ and so on for the addresses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from envs.webarena import dataset
from envs.webarena_local.site.world import SITES
from harness.contracts import Task

_DATA = ("tasks.json", "site/world.json")


@cache
def configs() -> tuple[dict[str, Any], ...]:
    """The configurations in order, addresses not yet filled in."""
    return tuple(json.loads(Path(__file__).with_name("tasks.json").read_text(encoding="utf-8")))


def digest() -> str:
    """sha256 over the tasks, over what the sites hold, and over their pages."""
    root = Path(__file__).parent
    pages = sorted(root.joinpath("site", "templates").rglob("*.html"))
    total = hashlib.sha256()
    for path in [*(root / name for name in _DATA), *pages]:
        total.update(path.relative_to(root).as_posix().encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def with_addresses(config: Mapping[str, Any], urls: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with the addresses of `urls` (site → address) in the place of their names."""
    text = json.dumps(config)
    for site in SITES:
        text = text.replace(f"__{site.upper()}__", urls[site])
    return cast(dict[str, Any], json.loads(text))


def task(config: Mapping[str, Any], index: int) -> Task:
    """As a task of env=webarena: `group` is its sites, `family` its intent template, of which most have several instances."""
    return replace(dataset.task(config), task_id=f"webarena_local.{config['task_id']}", index=index)
