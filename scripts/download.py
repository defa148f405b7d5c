"""Fetch one file over HTTP: resumable, checked against its sha256, never half there under its own name. Unpack an archive."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import httpx

CHUNK = 1 << 20


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(client: httpx.Client, url: str, path: Path, digest: str | None = None) -> bool:
    """Bring `url` to `path`; False if it was there already. A part left by an interrupted call is continued.

    Raises ValueError where the digest is wrong (the part is removed), httpx.HTTPError where the network fails.
    """
    if path.is_file() and (digest is None or sha256(path) == digest):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    with client.stream("GET", url, headers={"Range": f"bytes={have}-"} if have else {}, follow_redirects=True) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()  # it is longer than the file: not a part of it
            return fetch(client, url, path, digest)
        response.raise_for_status()
        mode = "ab" if response.status_code == httpx.codes.PARTIAL_CONTENT else "wb"
        with part.open(mode) as file:
            for chunk in response.iter_bytes(CHUNK):
                file.write(chunk)
    if digest is not None and (found := sha256(part)) != digest:
        part.unlink()
        raise ValueError(f"{url} has the sha256 {found}, not {digest}: it has changed since this version of MemArena")
    part.replace(path)
    return True


def unpack(archive: Path, root: Path, place_of: Callable[[str], PurePosixPath | None]) -> int:
    """Unpack the files for which `place_of(name in the archive)` knows a place below `root`; how many there were.

    Links and devices in the archive are passed over.
    """
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            place = place_of(member.name)
            stream = tar.extractfile(member) if place is not None and member.isfile() else None
            if place is None or stream is None:
                continue
            target = root / place
            target.parent.mkdir(parents=True, exist_ok=True)
            with stream, target.open("wb") as file:
                shutil.copyfileobj(stream, file)
            count += 1
    return count
