"""`memarena doctor`: what is installed, which data and keys are there, and the command that mends the rest."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.compose import compose_one, conf_dir
from harness.contracts import Environment, Probed, Problem
from harness.errors import MemArenaError
from harness.registry import environments, hosts, methods

Level = Literal["ok", "missing", "warning"]

# litellm: compromised releases, and releases whose import fails (docs/models.md)
_BAD_LITELLM = {"1.82.7", "1.82.8", "1.107.0", "1.106.0", "1.106.1", "1.106.2"}


@dataclass(frozen=True)
class Finding:
    """One line of the report; `fix` is the command or setting that mends it."""

    area: str
    level: Level
    what: str
    fix: str = ""


def examine(overrides: Sequence[str], *, as_json: bool = False) -> int:
    """Print the findings; 1 if something that the asked-for configuration needs is missing, else 0.

    Without overrides everything is looked at and nothing is required: a machine need not have every benchmark.
    """
    findings = [*_basics(), *(_needed(overrides) if overrides else _everything())]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1, ensure_ascii=False))
    else:
        width = max(len(finding.area) for finding in findings)
        for finding in findings:
            fix = f"  → {finding.fix}" if finding.fix else ""
            print(f"{finding.level:8} {finding.area:{width}}  {finding.what}{fix}")
    return int(bool(overrides) and any(finding.level == "missing" for finding in findings))


def _basics() -> Iterator[Finding]:
    version = sys.version.split()[0]
    yield Finding(
        "python", "ok" if sys.version_info >= (3, 11) else "missing", version, "" if sys.version_info >= (3, 11) else "use 3.11"
    )
    litellm = _version("litellm")
    if litellm in _BAD_LITELLM:
        yield Finding("litellm", "warning", f"{litellm} is a release to shun", "pip install 'litellm==1.110.2'")
    for package in ("hydra-core", "autogen-agentchat", "litellm", "alfworld", "textworld"):
        found = _version(package)
        yield Finding(package, "ok" if found else "warning", found or "not installed", "" if found else "make install")
    free = shutil.disk_usage(".").free
    yield Finding("disk", "ok" if free > 2 << 30 else "warning", f"{free / 2**30:.1f} GiB free here")
    yield Finding("conf", "ok", str(conf_dir().name))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _problems(area: str, problems: Sequence[Problem], good: str) -> Iterator[Finding]:
    remedies: dict[str, list[str]] = {}
    for problem in problems:
        remedies.setdefault(problem.fix, []).append(problem.what.rstrip("."))
    for fix, what in remedies.items():
        yield Finding(area, "missing", "; ".join(what) if len(what) < 3 else f"{what[0]}, and {len(what) - 1} more like it", fix)
    if not problems:
        yield Finding(area, "ok", good)


def _needed(overrides: Sequence[str]) -> Iterator[Finding]:
    """What one configuration needs. Raises ConfigError where it is wrong in itself."""
    from harness.cell import Cell
    from harness.run import directory_of, gateway_of

    cell = Cell.build(*compose_one(overrides))
    choices = cell.config.choices
    problems = cell.environment.check()
    if not problems and isinstance(cell.environment, Probed):
        problems = cell.environment.probe()
    yield from _problems(f"env {choices['env']}", problems, _provenance(cell.environment))
    gateway = gateway_of(cell, directory_of(cell))
    yield from _problems(f"models {choices['models']}", gateway.check(), cell.config.models.label)


def _everything() -> Iterator[Finding]:
    for kind, registry in (("host", hosts()), ("method", methods()), ("env", environments())):
        for name in registry.names():
            try:
                loaded: Any = registry.load(name)
            except MemArenaError as error:
                yield Finding(f"{kind} {name}", "missing", error.message, error.hint)
                continue
            if kind == "env":
                environment: Environment = loaded(loaded.Config())
                yield from _problems(f"env {name}", environment.check(), _provenance(environment))
            else:
                yield Finding(f"{kind} {name}", "ok", f"version {loaded.version}")
    yield from _model_sets()


def _provenance(environment: Environment) -> str:
    parts = [f"{key} {value}" for key, value in environment.provenance.items() if isinstance(value, str | int)]
    return ", ".join([f"version {environment.version}", *parts])


def _model_sets() -> Iterator[Finding]:
    from harness.config import validate
    from harness.models.config import ModelsConfig
    from harness.models.gateway import Gateway

    for path in sorted((conf_dir() / "models").glob("*.yaml")):
        area = f"models {path.stem}"
        try:
            values = compose_one([f"models={path.stem}"])[0]["models"]
            config = validate(ModelsConfig, values, "models")
            yield from _problems(area, Gateway(config, seed=0).check(), config.label)
        except MemArenaError as error:
            yield Finding(area, "missing", error.message, error.hint)
