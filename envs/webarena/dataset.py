"""The 812 task configurations as they lie in the `libwebarena` package. Reads the file; imports nothing of the package."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.contracts import Task
from harness.errors import SetupError

COUNT = 812
_DISTRIBUTION, _FILE = "libwebarena", "webarena/test.raw.json"


def path() -> Path | None:
    """Where the file is, None where the package is not installed."""
    try:
        found = Path(str(importlib.metadata.distribution(_DISTRIBUTION).locate_file(_FILE)))
    except importlib.metadata.PackageNotFoundError:
        return None
    return found if found.is_file() else None


def configs() -> list[dict[str, Any]]:
    """All configurations in the official order, sites as placeholders (__SHOPPING__). Raises SetupError."""
    found = path()
    if found is None:
        raise SetupError("WebArena's tasks are not installed.", "Mend it with: make setup-webarena.")
    rows: list[dict[str, Any]] = json.loads(found.read_text())
    return rows


def evaluator(config: Mapping[str, Any]) -> str:
    """The evaluators of a task as one word, as in "url_match+program_html"."""
    return "+".join(config["eval"]["eval_types"])


def needs_judge(config: Mapping[str, Any]) -> bool:
    """Whether the task's evaluator calls a model (118 of 812; for 36 of them the right answer is that it cannot be done)."""
    return bool((config["eval"].get("reference_answers") or {}).get("fuzzy_match"))


def asks_a_server(config: Mapping[str, Any]) -> bool:
    """Whether the evaluator looks something up at a site besides what the browser shows."""
    targets = config["eval"].get("program_html") or []
    return any(str(target.get(part, "")).startswith("func:") for target in targets for part in ("url", "locator"))


def task(config: Mapping[str, Any]) -> Task:
    """`group` is the sites of the task in alphabetical order, `family` the template that its intent was made from (190)."""
    sites = "+".join(sorted(config["sites"]))
    template = f"template-{config['intent_template_id']}"
    return Task(
        task_id=f"webarena.{config['task_id']}",
        index=int(config["task_id"]),
        goal=str(config["intent"]),
        key=f"{sites}-{config['intent']}",
        family=template,
        group=sites,
        payload=config,
    )


def sites_of(configurations: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The sites that these tasks are played on."""
    return tuple(sorted({site for config in configurations for site in config["sites"]}))
