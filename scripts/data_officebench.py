"""Fetch OfficeBench (`make data-officebench`): the 300 tasks with their testbeds and reference files (25 MB).

    python scripts/data_officebench.py [--root DIR]

DIR defaults to where the environment looks for it: `$HARNESS_DATA/officebench`, else the user's cache. The archive of a pinned
revision is fetched (an interrupted download continues), only tasks and their files are unpacked, and the tasks are checked.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import httpx

REVISION = "40fca4bb952c8e39fac3e2f4164968b5fe2f4f77"
SOURCE = "https://codeload.github.com/zlwang-cs/OfficeBench/tar.gz"
_PARTS = ("subtasks", "testbed", "reference")


def place_of(name: str) -> PurePosixPath | None:
    """Where a member of the archive belongs below the root; None for what is not wanted."""
    parts = PurePosixPath(name).parts[1:]
    if parts == ("LICENSE",) or (len(parts) > 3 and parts[0] == "tasks" and parts[2] in _PARTS and ".." not in parts):
        return PurePosixPath(*parts)
    return None


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]  # so that it also runs from an uninstalled checkout
    from envs.officebench.dataset import default_directory, is_official, load
    from harness.errors import SetupError
    from scripts.download import fetch, unpack

    parser = argparse.ArgumentParser(description="Fetch OfficeBench and check it.")
    parser.add_argument("--root", type=Path, default=default_directory(), help="where to put it (default: %(default)s)")
    parser.add_argument("--source", default=f"{SOURCE}/{REVISION}", help="the archive's address")
    arguments = parser.parse_args(argv)
    root: Path = arguments.root
    archive = root / f"officebench-{REVISION[:8]}.tar.gz"
    try:
        with httpx.Client(timeout=60) as client:
            fetch(client, arguments.source, archive)
        count = unpack(archive, root, place_of)
        tasks = load(root)
        if not is_official(tasks):
            raise ValueError(f"the {len(tasks)} tasks are not those that this version of MemArena knows")
    except (httpx.HTTPError, OSError, ValueError, tarfile.TarError, SetupError) as error:
        print(f"error: {type(error).__name__}: {error}. Run this again: what was fetched is kept.", file=sys.stderr)
        return 1
    archive.unlink()
    print(f"OfficeBench is in {root}: {len(tasks)} tasks, {count} files.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
