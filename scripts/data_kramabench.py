"""Fetch KramaBench (`make data-kramabench`): the questions and the data files of its six domains (some GB).

    python scripts/data_kramabench.py [--root DIR]

DIR defaults to where the environment looks for it: `$HARNESS_DATA/kramabench`, else the user's cache. The archive of a pinned
revision is fetched (an interrupted download continues), the questions are checked against their digests, and only questions and
inputs are unpacked.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import httpx

REVISION = "96b8253"
SOURCE = "https://codeload.github.com/mitdbg/Kramabench/tar.gz"
# of the 104 questions that this version of MemArena was tested with
SHA256 = {
    "archeology": "2e512b0855614905243a2e4a63f8a52ef655d829768c4999136935b06f125f70",
    "astronomy": "b578d3a728c8cb6808e4020c5561dc240279c13583c651416dd163671806d34e",
    "biomedical": "aa3304ef12524298e915a69d31055d803a3a8a059d3ee3dff665fbe4bf649f8c",
    "environment": "ffd1c523f393c1359e90af0edf9f3baea135a4abd2b5c937f502eb1b485ca974",
    "legal": "abb6e93a21bb104590ffd43b14338cdeee0815edf56ff58ad9091b600f8852e3",
    "wildfire": "9d4ed460be483a668d40b48cd06cfb9e6257650b6db9d026a21b9dcd84278f46",
}


def place_of(name: str) -> PurePosixPath | None:
    """Where a member of the archive belongs below the root; None for what is not wanted."""
    parts = PurePosixPath(name).parts[1:]
    if len(parts) == 2 and parts[0] == "workload" and parts[1].removesuffix(".json") in SHA256:
        return PurePosixPath(parts[1])
    if len(parts) > 3 and parts[0] == "data" and parts[1] in SHA256 and parts[2] == "input" and ".." not in parts:
        return PurePosixPath(*parts[1:])
    return None


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]  # so that it also runs from an uninstalled checkout
    from envs.kramabench.adapter import default_directory
    from scripts.download import fetch, sha256, unpack

    parser = argparse.ArgumentParser(description="Fetch KramaBench and check it.")
    parser.add_argument("--root", type=Path, default=default_directory(), help="where to put it (default: %(default)s)")
    parser.add_argument("--source", default=f"{SOURCE}/{REVISION}", help="the archive's address")
    arguments = parser.parse_args(argv)
    root: Path = arguments.root
    archive = root / f"kramabench-{REVISION}.tar.gz"
    try:
        with httpx.Client(timeout=60) as client:
            fetch(client, arguments.source, archive)
        count = unpack(archive, root, place_of)
        paths = {name: root / f"{name}.json" for name in SHA256}
        wrong = [name for name, path in paths.items() if not path.is_file() or sha256(path) != SHA256[name]]
        if wrong:
            raise ValueError(f"the questions of {', '.join(wrong)} are not those that this version of MemArena knows")
    except (httpx.HTTPError, OSError, ValueError, tarfile.TarError) as error:
        print(f"error: {type(error).__name__}: {error}. Run this again: what was fetched is kept.", file=sys.stderr)
        return 1
    archive.unlink()
    print(f"KramaBench is in {root}: {count} files.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
