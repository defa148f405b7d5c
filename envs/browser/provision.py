"""Where the browser and its data lie on this machine (`make setup-webarena` puts them there), and what is missing.

What the environment says comes first (PLAYWRIGHT_BROWSERS_PATH, NLTK_DATA, MINIWOB_URL), then the user's cache.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
from pathlib import Path

from harness.contracts import Problem

SETUP = "make setup-webarena"
REVISION = "1117"  # of the Chromium that playwright 1.44 looks for
_BINARY = Path(f"chromium-{REVISION}") / "chrome-linux" / "chrome"
BINARY_IN_CACHE = Path("browsers") / _BINARY
_PACKAGES = ("browsergym-core", "browsergym-webarena", "browsergym-miniwob", "playwright")


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memarena"


def browsers_dir() -> Path:
    """The folder that Playwright searches for browsers."""
    if given := os.environ.get("PLAYWRIGHT_BROWSERS_PATH"):
        return Path(given)
    own = cache() / "browsers"
    playwrights = cache().parent / "ms-playwright"
    return playwrights if not (own / _BINARY).exists() and (playwrights / _BINARY).exists() else own


def browser() -> Path:
    return browsers_dir() / _BINARY


def nltk_dir() -> Path:
    return cache() / "nltk_data"


def miniwob_pages() -> Path:
    """The folder with MiniWoB++'s HTML pages, as `make setup-webarena` unpacks them."""
    return cache() / "miniwob" / "html" / "miniwob"


def miniwob_url() -> str:
    """What BrowserGym puts before a page's name: MINIWOB_URL, an installed `miniwob` package, else the cache."""
    if given := os.environ.get("MINIWOB_URL"):
        return given
    spec = importlib.util.find_spec("miniwob")
    if spec is not None and spec.submodule_search_locations:
        pages = Path(next(iter(spec.submodule_search_locations))) / "html" / "miniwob"
        if pages.is_dir():
            return pages.as_uri() + "/"
    return miniwob_pages().as_uri() + "/"


def worker_env() -> dict[str, str]:
    """Environment variables by which a worker finds browser, tokenizer data and pages."""
    data = os.pathsep.join(part for part in (os.environ.get("NLTK_DATA", ""), str(nltk_dir())) if part)
    return {"PLAYWRIGHT_BROWSERS_PATH": str(browsers_dir()), "NLTK_DATA": data, "MINIWOB_URL": miniwob_url()}


def has_punkt() -> bool:
    """Whether NLTK would find `punkt_tab`, without importing NLTK."""
    given = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    roots = [Path(part) for part in given if part] + [nltk_dir(), Path.home() / "nltk_data", Path("/usr/share/nltk_data")]
    return any((root / "tokenizers" / "punkt_tab").is_dir() for root in roots)


def problems(*, webarena: bool) -> list[Problem]:
    """Missing packages, browser, and data: for MiniWoB its pages, for WebArena the tokenizer's data."""
    wanted = {"browsergym.core": "browsergym-core"}
    wanted |= {"browsergym.webarena": "browsergym-webarena"} if webarena else {"browsergym.miniwob": "browsergym-miniwob"}
    missing = [package for package in wanted.values() if version(package) is None]
    found = [Problem(f"Packages are not installed: {', '.join(missing)}.", SETUP)] if missing else []
    if not browser().exists():
        found.append(Problem(f"There is no browser at {browser()}.", SETUP))
    if webarena and not has_punkt():
        found.append(Problem("NLTK's data punkt_tab, which WebArena's evaluators need, is not there.", SETUP))
    if not webarena and (url := miniwob_url()).startswith("file://") and not Path(url.removeprefix("file://")).is_dir():
        found.append(Problem("MiniWoB++'s pages are not there.", SETUP))
    return found


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """For the run's provenance: packages and browser."""
    found = {name: value for name in _PACKAGES if (value := version(name)) is not None}
    return {**found, "browser": browser_version()}


def browser_version() -> str:
    """What the browser says of itself; "unknown" where it says nothing."""
    try:
        done = subprocess.run([str(browser()), "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip() or "unknown"
