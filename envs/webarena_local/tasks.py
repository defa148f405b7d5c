"""The tasks of the double: tasks.json, in the format of WebArena's own list, with __SHOPPING__ and so on for the addresses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any, cast

from envs.webarena import dataset
from envs.webarena_local.site.world import SITES
from harness.contracts import Task

FILES = ("tasks.json", "site/world.json")


@cache
def configs() -> tuple[dict[str, Any], ...]:
    """The configurations in order, addresses not yet filled in."""
    return tuple(json.loads(_read("tasks.json").decode()))


def _read(name: str) -> bytes:
    return resources.files(__package__).joinpath(name).read_bytes()


def digest() -> str:
    """sha256 over the tasks and over what the sites hold."""
    return hashlib.sha256(b"".join(map(_read, FILES))).hexdigest()


def with_addresses(config: Mapping[str, Any], urls: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with the addresses of `urls` (site → address) in the place of their names."""
    text = json.dumps(config)
    for site in SITES:
        text = text.replace(f"__{site.upper()}__", urls[site])
    return cast(dict[str, Any], json.loads(text))


def task(config: Mapping[str, Any], index: int) -> Task:
    """As a task of env=webarena: `group` is its sites, `family` its intent template, of which most have several instances."""
    return replace(dataset.task(config), task_id=f"webarena_local.{config['task_id']}", index=index)
