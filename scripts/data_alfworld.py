"""Fetch ALFWorld's data (`make data-alfworld`): runs the package's `alfworld-download`, then checks that the games are there.

    python scripts/data_alfworld.py [--root DIR] [--force]

DIR defaults to where the environment looks for it: `$HARNESS_DATA/alfworld`, else `$ALFWORLD_DATA`, else `~/.cache/alfworld`.
Exit code 0 means that the evaluation split is complete; anything else comes with one line that says what to do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

SPLITS = ("valid_unseen", "valid_seen", "train")


def find_downloader() -> str | None:
    """`alfworld-download`, from this Python's environment first, so that no virtual environment need be active."""
    return shutil.which("alfworld-download", path=str(Path(sys.executable).parent)) or shutil.which("alfworld-download")


def download(command: str, root: Path, *, force: bool) -> str | None:
    """Run the downloader for `root`; returns what went wrong, or None."""
    root.mkdir(parents=True, exist_ok=True)
    arguments = [command, "--data-dir", str(root), *(["-f", "--force-download"] if force else [])]
    # the package makes the directory that this variable names as soon as it is imported
    environment = {**os.environ, "ALFWORLD_DATA": str(root)}
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE) as process:
        last = _pass_on(process.stderr)
    return None if process.returncode == 0 else f"alfworld-download ended with code {process.returncode}{last and ': '}{last}"


def _pass_on(stream: IO[bytes] | None) -> str:
    """Show the downloader's progress as it comes, but not its traceback; returns the last line of that."""
    held = b""
    while stream is not None and (chunk := os.read(stream.fileno(), 65536)):
        held += chunk
        if b"Traceback" not in held:
            sys.stderr.buffer.write(held)
            sys.stderr.flush()
            held = b""
    lines = held.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def main(argv: Sequence[str] | None = None) -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it also runs from an uninstalled checkout
    from envs.alfworld.data import data_root, problems
    from envs.alfworld.engine import INSTALL

    parser = argparse.ArgumentParser(description="Fetch ALFWorld's data and check that it is complete.")
    parser.add_argument("--root", type=Path, default=data_root(), help="where to put it (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="fetch again what is there already")
    arguments = parser.parse_args(argv)
    root: Path = arguments.root

    failure = None
    if arguments.force or any(problems(root, split) for split in SPLITS):
        command = find_downloader()
        if command is None:
            print(f"error: alfworld-download is not installed. Run: {INSTALL}", file=sys.stderr)
            return 2
        try:
            failure = download(command, root, force=arguments.force)
        except OSError as error:
            failure = f"{root}: {error.strerror}"
    missing = problems(root, SPLITS[0])
    if missing:
        reason = failure or "alfworld-download ended well without them"
        print(
            f"error: {missing[0].what} {reason}. Check the network and disk space, then run this again with --force.",
            file=sys.stderr,
        )
        return 1
    for split in SPLITS:
        print(f"{split}: {'incomplete' if problems(root, split) else 'complete'}")
    if failure:
        print(f"note: {failure}; what it was fetching then is not needed for playing {SPLITS[0]}.", file=sys.stderr)
    print(f"ALFWorld's games are in {root}. Try: python -m envs.alfworld list")
    return 0


if __name__ == "__main__":
    sys.exit(main())
