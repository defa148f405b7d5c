"""What a pack is: a zip file with `pack.json` and, for each run, up to four files below `runs/<name>/`.

`pack.json` names every file with its size and sha256; its own `digest` is the sha256 over that list, so that a pack can be
named in a paper by one number. It is no signature: whoever changes a file can make a new list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness.store.identity import digest

FORMAT, SCHEMA_VERSION = "memarena-pack", 1
INDEX = "pack.json"
MANIFEST, RESULTS, EVENTS, RECORDINGS = "manifest.json", "stream.sqlite", "events.jsonl", "recordings.sqlite"
FILES = (EVENTS, MANIFEST, RECORDINGS, RESULTS)
CHUNK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One file of a pack: its size in bytes and its sha256."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class PackedRun:
    """`name` is the run's directory below `runs/`, with `/` where it has parts."""

    name: str
    identity: str
    files: Mapping[str, Entry]

    def member(self, file: str) -> str:
        return f"runs/{self.name}/{file}"


def index_of(runs: list[PackedRun], version: str) -> dict[str, Any]:
    """The content of `pack.json`."""
    listed = [asdict(run) for run in runs]
    return {"format": FORMAT, "schema_version": SCHEMA_VERSION, "memarena": version, "digest": digest(listed), "runs": listed}


def measure(file: BinaryIO) -> Entry:
    """Size and sha256 of what is left in `file`."""
    total, size = hashlib.sha256(), 0
    while block := file.read(CHUNK):
        total.update(block)
        size += len(block)
    return Entry(size, total.hexdigest())


def measured(path: Path) -> Entry:
    with path.open("rb") as file:
        return measure(file)
