"""`memarena diff`: what of a run still holds when something changes. Every difference is REUSE, RESCORE or RERUN, with a reason.

The classes say themselves which of their settings only concern grading: `metadata={"grading": True}` on the field.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.archive.recorded import choices_of, rebuild, require_cell, tuples, values_of
from harness.cell import Cell
from harness.compose import bases_of
from harness.errors import ConfigError, SetupError
from harness.registry import environments
from harness.report.text import columns
from harness.store.view import RunView

Verdict = Literal["REUSE", "RESCORE", "RERUN"]
ORDER: tuple[Verdict, ...] = ("REUSE", "RESCORE", "RERUN")
_ABSENT = "(absent)"
_VARIANT_KEY = r"(?:^|, )((?:host|method|env|models|run)\.[^=,\s]+)="
# what is kept beside the cell and may differ without changing a score
_BESIDE = (
    ("versions.host", "the part after the dash of a version leaves scores comparable"),
    ("versions.method", "the part after the dash of a version leaves scores comparable"),
    ("environment.version", "the part after the dash of a version leaves scores comparable"),
    ("models.prices.sha256", "another price file changes what a token costs, not the tokens"),
    ("tasks.n", "a stream with fewer tasks is the beginning of the one with more: the same command goes on"),
    ("git.commit", "the code's versions decide, not its commit"),
    ("memarena", "the code's versions decide, not the release"),
    ("python", "recorded; results are taken to be the same"),
)


@dataclass(frozen=True)
class Change:
    """One leaf that differs, and what it means for the run."""

    key: str
    old: Any
    new: Any
    verdict: Verdict
    reason: str


def grading_keys(env: Mapping[str, Any]) -> frozenset[str]:
    """The leaves `env.<field>` that only concern grading, as the environment's configuration class declares them."""
    try:
        schema = environments().load(str(env.get("name"))).Config
    except (ConfigError, SetupError):  # a third party's that is not installed here: nothing is known of it
        return frozenset()
    return frozenset(f"env.{item.name}" for item in dataclasses.fields(schema) if item.metadata.get("grading"))


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Every leaf that differs between two descriptions of cells, sorted by key."""
    before = {".".join(path): value for path, value in tuples(old)}
    after = {".".join(path): value for path, value in tuples(new)}
    grading = grading_keys(old["env"]) if old["env"].get("name") == new["env"].get("name") else frozenset()
    found = []
    for key in sorted(before.keys() | after.keys()):
        then, now = before.get(key, _ABSENT), after.get(key, _ABSENT)
        if then != now or (key in before) != (key in after):
            found.append(Change(key, then, now, *_meaning(key, grading)))
    return found


def _meaning(key: str, grading: frozenset[str]) -> tuple[Verdict, str]:
    if key in grading:
        return "RESCORE", "only concerns grading: the recorded actions can be graded anew"
    if key.startswith("code."):
        return "RERUN", "the part before the dash of a version says that scores are no longer comparable"
    if key == "data_digest":
        return "RERUN", "the tasks are made from other data"
    if key == "task_ids_sha256":
        return "RERUN", "other tasks, or another order: the memory learns in another order"
    group = key.partition(".")[0]
    what = {
        "host": "the agents work another way",
        "method": "the memory is another",
        "env": "the world is another",
        "models": "other answers",
        "run": "the stream is played another way",
    }
    return "RERUN", what.get(group, "part of what the run is")


def between(first: RunView, second: RunView) -> list[Change]:
    """What differs between two runs: their cells, and beside them what changes no score."""
    cells = [require_cell(view.manifest, view.directory) for view in (first, second)]
    return [*changes(*cells), *_beside(first.manifest, second.manifest)]


def against_now(view: RunView, overrides: Sequence[str] = ()) -> list[Change]:
    """What differs between a run and what its command would play today, with this code, data and conf/."""
    cell = present(view, overrides)
    now: dict[str, Any] = {
        "versions": {"host": type(cell.host).version, "method": cell.memory_class.version},
        "environment": {"version": cell.environment.version},
    }
    beside = [change for change in _beside(view.manifest, now) if change.key.startswith(("versions", "environment"))]
    return [*changes(require_cell(view.manifest, view.directory), cell.description), *beside]


def present(view: RunView, overrides: Sequence[str]) -> Cell:
    """The cell that the run's choices and deviations make today. Raises SetupError where its data is missing."""
    manifest = view.manifest
    values = values_of(manifest, view.directory)
    kept = set(re.findall(_VARIANT_KEY, str(manifest["labels"].get("variant") or "")))
    for group, base in bases_of(choices_of(manifest)).items():
        for path, value in tuples(base):
            if ".".join((group, *path)) not in kept and not _within(values[group], path, value):
                _put(values[group], path, value)
    cell = rebuild(view, overrides, values)
    cell.require(cell.environment.check())
    return cell


def _within(tree: Mapping[str, Any], path: Sequence[str], value: Any) -> bool:
    for part in path:
        if not isinstance(tree, Mapping) or part not in tree:
            return False
        tree = tree[part]
    return bool(tree == value)


def _put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *parents, last = path
    for part in parents:
        inner = tree.get(part)
        tree[part] = tree = dict(inner) if isinstance(inner, Mapping) else {}
    tree[last] = value


def _beside(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for key, reason in _BESIDE:
        then, now = _at(old, key), _at(new, key)
        if then is not None and now is not None and then != now:
            yield Change(key, then, now, "REUSE", reason)


def _at(tree: Any, key: str) -> Any:
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def verdict(found: Sequence[Change]) -> Verdict:
    """The strongest of all; without a difference the run can be used as it is."""
    return max((change.verdict for change in found), key=ORDER.index, default="REUSE")


def as_data(found: Sequence[Change]) -> dict[str, Any]:
    return {"verdict": verdict(found), "changes": [dataclasses.asdict(change) for change in found]}


def render(found: Sequence[Change]) -> str:
    """The verdict, then a line a difference, the strongest first."""
    if not found:
        return "REUSE: nothing differs."
    counted = {name: sum(change.verdict == name for change in found) for name in reversed(ORDER)}
    head = f"{verdict(found)}: " + ", ".join(f"{count} × {name}" for name, count in counted.items() if count)
    named = {
        change.key.partition(".")[0] for change in found if change.key in ("host.name", "method.name", "env.name", "models.name")
    }
    # another method has other settings: they say nothing of their own
    told = [change for change in found if change.key.partition(".")[0] not in named or change.key.endswith(".name")]
    ordered = sorted(told, key=lambda change: (-ORDER.index(change.verdict), change.key))
    rows = [(change.verdict, change.key, f"{_text(change.old)} → {_text(change.new)}", change.reason) for change in ordered]
    rest = [f"  … and {len(found) - len(told)} settings of what is another"] if len(told) < len(found) else []
    return "\n".join([head, *(f"  {line}" for line in columns(rows)), *rest])


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f"{text[:12]}…" if len(text) == 64 and all(char in "0123456789abcdef" for char in text) else text[:60]
