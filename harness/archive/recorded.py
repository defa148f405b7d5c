"""A run's configuration, read back from its manifest: the cell as it was, and the same cell as code and data are now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cell import Cell
from harness.compose import GROUPS, bases_of
from harness.errors import ConfigError, UserError
from harness.registry import did_you_mean
from harness.store.events import read_events
from harness.store.identity import digest
from harness.store.view import RunView

Tree = dict[str, Any]
CHOICES = ("host", "method", "env", "models")  # the groups whose choice the labels keep; that of run is always the default


def require_cell(manifest: Mapping[str, Any], where: Path) -> Mapping[str, Any]:
    """The description of the cell. Raises UserError where it is not there, or is not what the identity was made from."""
    cell = manifest.get("cell")
    if not isinstance(cell, Mapping) or any(not isinstance(cell.get(group), Mapping) for group in GROUPS):
        raise UserError(f"{where / 'manifest.json'} does not hold the run's configuration.", "It was damaged, or made by hand.")
    if digest(cell) != manifest["identity"]:
        raise UserError(f"{where / 'manifest.json'} was changed: its configuration and its identity do not fit.")
    lacking = [f"labels.{group}" for group in CHOICES if group not in manifest["labels"]]
    lacking += [] if "n" in manifest["tasks"] else ["tasks.n"]
    if lacking:
        raise UserError(f"{where / 'manifest.json'} has no {', '.join(lacking)}.", "It was damaged, or made by hand.")
    return cell


def values_of(manifest: Mapping[str, Any], where: Path) -> Tree:
    """The composed configuration of the run: what made its identity, every run option at its default."""
    cell = require_cell(manifest, where)
    values: Tree = {group: dict(cell[group]) for group in GROUPS}
    values["models"]["label"] = manifest["labels"].get("models_label") or manifest["labels"]["models"]
    values["run"] |= {"tasks": manifest["tasks"]["n"], "progress": "off"}
    return values


def choices_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {**{group: str(manifest["labels"][group]) for group in CHOICES}, "run": "default"}


def with_overrides(values: Tree, overrides: Sequence[str]) -> Tree:
    """`values` with `group.key=value` words applied. Raises ConfigError for a word that is no such thing."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    changed: Any = OmegaConf.create(values)
    for word in overrides:
        key, equals, _ = word.partition("=")
        group, dot, _ = key.partition(".")
        if not equals or not dot:
            raise ConfigError(f"{word!r} is no value of the configuration.", "Write it as group.key=value: env.grader=fixed.")
        if group not in GROUPS:
            raise ConfigError(f"Unknown key {key}.", did_you_mean(group, list(GROUPS)))
        try:
            changed = OmegaConf.unsafe_merge(changed, OmegaConf.from_dotlist([word]))
        except (OmegaConfBaseException, YAMLError, ValueError) as error:
            raise ConfigError(f"{word!r} cannot be read: {' '.join(str(error).split())}.") from error
    made = OmegaConf.to_container(changed)
    assert isinstance(made, dict)
    return {str(key): value for key, value in made.items()}


def rebuild(view: RunView, overrides: Sequence[str] = (), values: Tree | None = None, **run: Any) -> Cell:
    """The cell of `view` (or of `values`) with the code and data that are here now; `run` replaces run options.

    Raises ConfigError where the configuration does not fit this version any more, SetupError where a package is missing.
    """
    manifest = view.manifest
    values = with_overrides(values_of(manifest, view.directory) if values is None else values, overrides)
    values["run"] = {**values["run"], **run}
    choices = choices_of(manifest)
    try:
        return Cell.build(values, choices, bases_of(choices), manifest["labels"].get("experiment"))
    except ConfigError as error:
        raise ConfigError(f"{view.directory} does not fit this version or these values: {error.message}", error.hint) from error


def tuples(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of nested mappings with their paths; an empty mapping is a leaf."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=str):
            yield from tuples(value[key], (*path, str(key)))
    else:
        yield path, value


def played_order(view: RunView) -> list[int]:
    """The positions that have a result, in the order in which they were committed.

    It is that of the event log: a task that failed at first for reasons of infrastructure was played after later ones, and
    the memory had learnt from these. Without a log it is the order of the stream.
    """
    last = _ends(view.directory / "events.jsonl")
    return sorted((row.position for row in view.tasks()), key=lambda position: (last.get(position, -1), position))


def committed_attempts(view: RunView) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Position and events of each attempt that ended with the task's result, `attempt_start` first, in the order of the log."""
    path = view.directory / "events.jsonl"
    last, done = _ends(path), {row.position for row in view.tasks()}
    current: list[dict[str, Any]] = []
    for number, event in enumerate(read_events(path)):
        if event["event"] == "attempt_start":
            current = []
        current.append(event)
        if event["event"] == "task_end" and last.get(event["position"]) == number and event["position"] in done:
            yield event["position"], current
            current = []


def _ends(path: Path) -> dict[int, int]:
    """Where in the log the last `task_end` of each position stands: one that a crash kept from being committed was repeated."""
    return {event["position"]: number for number, event in enumerate(read_events(path)) if event["event"] == "task_end"}
