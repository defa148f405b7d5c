"""`memarena pack`: runs become one file that anybody can read, and replay with neither key nor network."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import harness
from harness.archive.layout import CHUNK, FILES, INDEX, RECORDINGS, RESULTS, PackedRun, index_of, measured
from harness.archive.recorded import require_cell
from harness.archive.secrets import Redactor
from harness.archive.strip import Stripped, missing_recordings
from harness.errors import UserError
from harness.models.replay import Recorder
from harness.report.text import plural
from harness.store.view import RunView


def pack(
    runs: Sequence[Path], output: Path | None, recordings: Path | None = None, *, lookalikes: bool = False
) -> dict[str, Any]:
    """Write one pack of `runs`; what it holds, as plain data. `recordings` is their file if it lies elsewhere.

    Raises UserError for what is no run, holds a secret that cannot be removed, or would be overwritten.
    """
    views = [RunView(run) for run in runs]
    for view in views:
        require_cell(view.manifest, view.directory)
    named = sorted(zip(_names(views), views, strict=True), key=lambda pair: pair[0])  # the order of the words changes nothing
    names = [name for name, _ in named]
    target = output or Path(f"{names[0].replace('/', '-') if len(names) == 1 else f'{len(names)}-runs'}.memarena.zip")
    if target.exists():
        raise UserError(f"{target} exists.", "Name another file with -o.")
    if not target.parent.is_dir():
        raise UserError(f"There is no folder {target.parent}.", "Make it, or name another file with -o.")
    with tempfile.TemporaryDirectory(prefix=".pack-", dir=target.parent) as scratch:
        packed, notes = [], []
        for name, view in named:
            folder = Path(scratch) / "runs" / name
            folder.mkdir(parents=True)
            notes += [f"{name}: {note}" for note in _strip(view, folder, recordings, lookalikes)]
            files = {file: measured(folder / file) for file in FILES if (folder / file).is_file()}
            packed.append(PackedRun(name, view.manifest["identity"], files))
        index = index_of(packed, harness.__version__)
        made = Path(scratch) / "made.zip"
        _zip(made, index, packed, Path(scratch) / "runs")
        try:
            os.link(made, target)  # unlike a rename it never replaces what has come there meanwhile
        except FileExistsError:
            raise UserError(f"{target} exists.", "Name another file with -o.") from None
        except OSError:  # a file system without links
            made.replace(target)
    size = measured(target)
    return {"file": str(target), **asdict(size), "digest": index["digest"], "runs": index["runs"], "notes": notes}


def render(found: Mapping[str, Any]) -> str:
    lines = [f"{found['file']}: {plural(len(found['runs']), 'run')}, {found['bytes']:,} bytes, sha256 {found['sha256']}"]
    for run in found["runs"]:
        parts = ", ".join(f"{name} {entry['bytes']:,}" for name, entry in sorted(run["files"].items()))
        lines.append(f"  {run['name']}: {parts}")
    return "\n".join([*lines, *(f"  note: {note}" for note in found["notes"])])


def _names(views: Sequence[RunView]) -> list[str]:
    """A name for each: its own, and where two share it, with the beginning of the identity."""
    identities = Counter((view.manifest.get("name"), view.manifest["identity"]) for view in views)
    for view in views:
        if identities[view.manifest.get("name"), view.manifest["identity"]] > 1:
            raise UserError(f"The run {view.manifest.get('name')} is named twice.", "Name every run once.")
    own = [str(view.manifest.get("name") or view.directory.name) for view in views]
    shared = Counter(own)
    return [
        name if shared[name] == 1 else f"{name}-{view.manifest['identity'][:8]}" for name, view in zip(own, views, strict=True)
    ]


def _strip(view: RunView, folder: Path, recordings: Path | None, lookalikes: bool) -> list[str]:
    """Write the stripped files into `folder`; what whoever packs must know."""
    path = recordings or view.directory / RECORDINGS
    if recordings is not None and not recordings.is_file():
        raise UserError(f"There is no file {recordings}.", "Name the recordings that run.replay.path named.")
    found = path if path.is_file() else None
    if found is not None and (problems := Recorder("replay", found).check()):
        raise UserError(problems[0].what, "Name another file with --recordings, or remove this one.")
    redactor = Redactor.of_this_machine(_key_variables(view.manifest), view.directory.absolute().parent)
    stripped = Stripped(view.directory, folder, redactor, lookalikes)
    try:
        stripped.write(view.manifest, found)
    except sqlite3.DatabaseError as error:
        raise UserError(f"{view.directory} is damaged: {error}.", "Restore it.") from error
    return _notes(view, folder, stripped.kept_places)


def _notes(view: RunView, folder: Path, kept_places: Sequence[str]) -> list[str]:
    notes = []
    if not (folder / RECORDINGS).is_file():
        notes.append("without recordings, so it can be read but not replayed (run.replay.mode=record makes them)")
    else:
        missing, wanted = missing_recordings(folder / RESULTS, folder / RECORDINGS)
        if missing:
            notes.append(f"{missing} of {plural(wanted, 'call')} were not recorded, so it cannot be replayed")
    if view.status != "finished":
        notes.append(f"{len(view.tasks())} of {plural(view.manifest['tasks']['n'], 'task')} have a result")
    if kept_places:
        more = f" and {len(kept_places) - 1} more" if len(kept_places) > 1 else ""
        notes.append(f"a folder of this machine stays where the replay compares it: {kept_places[0]}{more}")
    return notes


def _key_variables(manifest: Mapping[str, Any]) -> set[str]:
    """The environment variables that hold keys: those of this run's endpoints, and of every model set there is."""
    from omegaconf import OmegaConf

    from harness.compose import conf_dir

    endpoints = list((manifest.get("models", {}).get("endpoints") or {}).values())
    for path in (conf_dir() / "models").glob("*.yaml"):
        loaded: Any = OmegaConf.to_container(OmegaConf.load(path))
        endpoints += list((loaded.get("endpoints") or {}).values())
    return {str(endpoint["api_key_env"]) for endpoint in endpoints if endpoint.get("api_key_env")}


def _zip(path: Path, index: Mapping[str, Any], runs: Sequence[PackedRun], folder: Path) -> None:
    """The same content makes the same bytes: no clock, no owner, members in a fixed order."""
    text = json.dumps(index, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(_member(INDEX), text.encode())
        for run in runs:
            for file in sorted(run.files):
                member = _member(run.member(file))
                with (folder / run.name / file).open("rb") as source, archive.open(member, "w", force_zip64=True) as target:
                    shutil.copyfileobj(source, target, CHUNK)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the earliest that the format can say
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    return info
