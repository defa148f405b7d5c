"""`memarena unpack`: a pack is verified in full before the first run of it appears, and nothing is ever overwritten.

A pack comes from somebody else. Member names, sizes and digests are checked against its list before anything is believed.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from harness.archive.layout import CHUNK, FILES, FORMAT, INDEX, MANIFEST, RESULTS, SCHEMA_VERSION, Entry, PackedRun, measured
from harness.archive.recorded import require_cell
from harness.config import is_name
from harness.errors import MemArenaError, UserError
from harness.report.text import plural
from harness.store import manifest
from harness.store.identity import digest
from harness.store.schema import SCHEMA_VERSION as RESULTS_SCHEMA

LARGEST_INDEX = 16 << 20  # bytes of pack.json: a run has about 600
LARGEST_TOTAL = 64 << 30  # bytes of all files; a stream of 10,000 tasks stays below a tenth
# deflate cannot do better than 1032; transcripts of the same prompts over and over reach about 60
LARGEST_RATIO, RATIO_MATTERS = 500, 16 << 20


def unpack(path: Path, to: Path) -> dict[str, Any]:
    """Verify `path` and put its runs below `to`; what there was, as plain data. Raises UserError for anything that is wrong."""
    with verified(path) as (runs, folder):
        places = [(folder / run.name, to / run.name) for run in runs]
        for _, place in places:
            if place.exists():
                raise UserError(f"{place} exists.", "Nothing is overwritten: name another folder with --to.")
        if not to.exists():
            to.mkdir(parents=True)
        for source, place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            _move(source, place)
    return {"file": str(path), "digest": digest([_plain(run) for run in runs]), "runs": [str(place) for _, place in places]}


def render(found: Mapping[str, Any]) -> str:
    return "\n".join([f"{found['file']}: verified, {plural(len(found['runs']), 'run')}", *(f"  {run}" for run in found["runs"])])


@contextmanager
def verified(path: Path) -> Iterator[tuple[list[PackedRun], Path]]:
    """The runs of a pack in a temporary folder, everything checked; the folder goes when the block ends."""
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    with tempfile.TemporaryDirectory(prefix="memarena-unpack-") as scratch:
        folder = Path(scratch)
        try:
            with zipfile.ZipFile(path) as archive:
                runs = _index(archive, path)
                _check_members(archive, path, runs)
                for run in runs:
                    _extract(archive, path, run, folder / run.name)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
            if isinstance(error, MemArenaError):
                raise
            raise UserError(f"{path} is no pack, cut off or damaged: {error}.", "Get it again.") from error
        for run in runs:
            _check_run(path, run, folder / run.name)
        yield runs, folder


# --- the list -----------------------------------------------------------------------------------------------------------
def _index(archive: zipfile.ZipFile, path: Path) -> list[PackedRun]:
    names = archive.namelist()
    if names.count(INDEX) != 1:
        raise UserError(f"{path} is no pack: it has no {INDEX}.")
    if archive.getinfo(INDEX).file_size > LARGEST_INDEX:
        raise _refused(path, INDEX, "is larger than any list of files")
    try:
        content = json.loads(archive.read(INDEX))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        version = content["schema_version"]
        if version != SCHEMA_VERSION:
            raise UserError(
                f"{path} has the schema version {version!r}, this version reads {SCHEMA_VERSION}.",
                f"Use the version of memarena that wrote it ({content.get('memarena')}).",
            )
        runs = [_run(path, listed) for listed in content["runs"]]
        if digest([_plain(run) for run in runs]) != content["digest"]:
            raise ValueError("its digest is not that of its list")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refused(path, INDEX, f"cannot be believed ({type(error).__name__}: {error})") from error
    if not runs or len({run.name for run in runs}) != len(runs):
        raise _refused(path, INDEX, "lists no run, or one twice")
    return runs


def _run(path: Path, listed: Mapping[str, Any]) -> PackedRun:
    name = listed["name"]
    if not isinstance(name, str) or "\\" in name or not all(is_name(part) for part in name.split("/")):
        raise _refused(path, INDEX, f"names a run {name!r}, which is no place below a folder")
    files = {}
    for file, entry in listed["files"].items():
        if file not in FILES:
            raise _refused(path, f"runs/{name}/{file}", "is no file of a run")
        size, sha256 = entry["bytes"], entry["sha256"]
        if not isinstance(size, int) or size < 0 or not isinstance(sha256, str):
            raise _refused(path, f"runs/{name}/{file}", "has no size or no digest")
        files[str(file)] = Entry(size, sha256)
    if not {MANIFEST, RESULTS} <= files.keys():
        raise _refused(path, f"runs/{name}", f"lacks {MANIFEST} or {RESULTS}")
    return PackedRun(name, str(listed["identity"]), files)


def _plain(run: PackedRun) -> dict[str, Any]:
    files = {file: {"bytes": entry.bytes, "sha256": entry.sha256} for file, entry in run.files.items()}
    return {"name": run.name, "identity": run.identity, "files": files}


# --- the members --------------------------------------------------------------------------------------------------------
def _check_members(archive: zipfile.ZipFile, path: Path, runs: Sequence[PackedRun]) -> None:
    """Names and sizes as listed, each once, and no more than a disk can take. Nothing has been read of them yet."""
    listed = {run.member(file): entry for run in runs for file, entry in run.files.items()}
    seen: set[str] = {INDEX}
    for info in archive.infolist():
        name = info.orig_filename
        if name == INDEX:
            continue
        if name not in listed:
            raise _refused(path, name, "is not in its list")
        if name in seen:
            raise _refused(path, name, "is there twice")
        seen.add(name)
        if info.file_size != listed[name].bytes:
            raise _refused(path, name, f"has {info.file_size} bytes, its list says {listed[name].bytes}")
        if info.file_size > RATIO_MATTERS and info.file_size > LARGEST_RATIO * max(1, info.compress_size):
            raise _refused(path, name, f"swells from {info.compress_size} to {info.file_size} bytes")
    for name in listed:
        if name not in seen:
            raise _refused(path, name, "is missing")
    total = sum(entry.bytes for entry in listed.values())
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if total > min(LARGEST_TOTAL, free):
        raise UserError(f"{path} holds {total:,} bytes; {free:,} are free for it.", "Free some space, or set TMPDIR.")


def _extract(archive: zipfile.ZipFile, path: Path, run: PackedRun, folder: Path) -> None:
    folder.mkdir(parents=True)
    for file, entry in sorted(run.files.items()):
        member = run.member(file)
        try:
            with archive.open(member) as source, (folder / file).open("xb") as target:
                left = entry.bytes
                while block := source.read(min(CHUNK, left + 1)):
                    left -= len(block)
                    if left < 0:
                        raise _refused(path, member, "is longer than its list says")
                    target.write(block)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise _refused(path, member, f"is damaged ({error})") from error
        if measured(folder / file) != entry:
            raise _refused(path, member, "was changed: its sha256 is another than listed")


def _check_run(path: Path, run: PackedRun, folder: Path) -> None:
    """The files of a run belong together, and this version can read them."""
    try:
        found = manifest.read(folder)
        assert found is not None  # _run has demanded it
        require_cell(found, folder)
    except UserError as error:
        raise _refused(path, run.member(MANIFEST), f"is no manifest ({error.message.removeprefix(str(folder))})") from error
    if found["identity"] != run.identity:
        raise _refused(path, run.member(MANIFEST), "is that of another cell")
    if found.get("schema_version") != manifest.SCHEMA_VERSION:
        raise _refused(path, run.member(MANIFEST), f"has the unknown schema version {found.get('schema_version')!r}")
    try:
        with closing(sqlite3.connect(f"{(folder / RESULTS).as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            (health,) = db.execute("PRAGMA quick_check").fetchone()
            kept = dict(db.execute("SELECT key, value FROM run"))
    except sqlite3.DatabaseError as error:
        raise _refused(path, run.member(RESULTS), f"is no database ({error})") from error
    if health != "ok":
        raise _refused(path, run.member(RESULTS), f"is damaged ({health})")
    if kept.get("schema_version") != str(RESULTS_SCHEMA):
        raise _refused(path, run.member(RESULTS), f"has the unknown schema version {kept.get('schema_version')!r}")
    if kept.get("identity", run.identity) != run.identity:
        raise _refused(path, run.member(RESULTS), "holds the results of another cell")


def _move(source: Path, place: Path) -> None:
    """Into its place whole or not at all, also from another file system."""
    near = Path(tempfile.mkdtemp(prefix=".unpack-", dir=place.parent))
    try:
        shutil.copytree(source, near / "run")
        os.rename(near / "run", place)
    except OSError as error:
        if place.exists():
            raise UserError(f"{place} exists.", "Nothing is overwritten: name another folder with --to.") from error
        raise
    finally:
        shutil.rmtree(near, ignore_errors=True)


def _refused(path: Path, member: str, why: str) -> UserError:
    return UserError(f"{path} is refused: {member} {why}.", "Get it again from where it came.")
