"""Reading what model-written code has left in a folder: regular files only, no link followed, nothing larger than a bound.

A link in a workspace may point anywhere on this machine; a grader that follows it hands the model the gold answer or a secret.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def copy_regular(source: Path, target: Path, *, largest: int = 64 << 20, most: int = 10_000) -> list[str]:
    """Copy the regular files below `source` into the new folder `target`; the relative paths of what was left out.

    Left out are links, devices, pipes, sockets, files with more than one name (a hard link may lead out), files over `largest`
    bytes, and everything after the first `most` files.
    """
    left_out: list[str] = []
    target.mkdir(parents=True)
    count = 0
    for folder, folders, files in os.walk(source, followlinks=False):
        here = Path(folder)
        relative = here.relative_to(source)
        for name in list(folders):
            if (here / name).is_symlink():
                folders.remove(name)
                left_out.append(str(relative / name))
            else:
                (target / relative / name).mkdir()
        for name in sorted(files):
            path = relative / name
            count += 1
            if count > most or not _copy(source / path, target / path, largest):
                left_out.append(str(path))
    return sorted(left_out)


def _copy(source: Path, target: Path, largest: int) -> bool:
    """Copy one file through a descriptor that follows no link, so that it cannot be exchanged in between."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1 or facts.st_size > largest:
            return False
        with target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    return True
