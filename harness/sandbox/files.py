"""Reading what model-written code has left in a folder: regular files only, no link followed, nothing larger than a bound.

A link in a workspace may point anywhere on this machine; a grader that follows it hands the model the gold answer or a secret.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path


def copy_regular(
    source: Path, target: Path, *, largest: int = 64 << 20, most: int = 10_000, altogether: int = 512 << 20
) -> list[str]:
    """Copy the regular files below `source` into the new folder `target`; the relative paths of what was left out.

    Left out are links, devices, pipes, sockets, files with more than one name (a hard link may lead out), files over `largest`
    bytes, paths too long for the system, and everything after the first `most` files and folders or `altogether` bytes (holes
    count: a file of nothing else takes room only in the copy). Raises OSError where the copy cannot be written (a full disk).
    """
    left_out: list[str] = []
    target.mkdir(parents=True)
    count, room = 0, altogether
    for folder, folders, files in os.walk(source, followlinks=False):
        here = Path(folder)
        relative = here.relative_to(source)
        folders.sort()  # so that a bound always meets the same ones
        for name in list(folders):
            count += 1
            if count > most or os.path.islink(here / name) or not _folder(target / relative / name):
                folders.remove(name)
                left_out.append(str(relative / name))
        for name in sorted(files):
            path = relative / name
            count += 1
            size = _copy(source / path, target / path, min(largest, room)) if count <= most else None
            if size is None:
                left_out.append(str(path))
            else:
                room -= size
    return sorted(left_out)


def _folder(path: Path) -> bool:
    """Make one folder; False where its path is too long: that is the doing of who nested them, and no full disk."""
    try:
        path.mkdir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise
    return True


def _copy(source: Path, target: Path, largest: int) -> int | None:
    """Copy one file through a descriptor that follows no link, so that it cannot be exchanged in between; its size in bytes,
    None where it was left out."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1 or facts.st_size > largest:
            return None
        try:
            copy = target.open("wb")
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise
        with copy:
            shutil.copyfileobj(file, copy)
    return facts.st_size
