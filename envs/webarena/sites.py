"""The sites of WebArena as a run sees them: their addresses, whether they answer, and their reset server."""

from __future__ import annotations

import os
import time
import urllib.parse
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

from harness.errors import EnvironmentCrashed

# BrowserGym refuses to start unless it knows all seven, also for tasks that need one
SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "wikipedia", "map", "homepage")
READY = "Ready for duty!"  # what the reset server's /status says when it is done (browsergym.webarena.instance)
_GLANCE, _POLL, _WARM = 5.0, 5.0, 60.0  # seconds: of a health check, between two looks at a reset, for a site's first answer


@dataclass
class SiteAddresses:
    """Where each site is, `reset` the reset server; null: as WA_SHOPPING, …, WA_HOMEPAGE and WA_FULL_RESET say."""

    shopping: str | None = None
    shopping_admin: str | None = None
    reddit: str | None = None
    gitlab: str | None = None
    wikipedia: str | None = None
    map: str | None = None
    homepage: str | None = None
    reset: str | None = None

    def resolved(self) -> dict[str, str]:
        """Site → address, for those that are known; `reset` is among them."""
        found = {item.name: getattr(self, item.name) or os.environ.get(variable(item.name)) or "" for item in fields(self)}
        return {name: address.rstrip("/") for name, address in found.items() if address}


def variable(site: str) -> str:
    """The environment variable that BrowserGym reads."""
    return "WA_FULL_RESET" if site == "reset" else f"WA_{site.upper()}"


def worker_env(addresses: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of a worker that plays on these sites."""
    return {variable(site): address for site, address in addresses.items()}


def hosts(addresses: Mapping[str, str]) -> tuple[str, ...]:
    """`host:port` of every site, as a browser writes it: without a name and password that an address may hold."""
    places = (urllib.parse.urlparse(address).netloc.rpartition("@")[2] for site, address in addresses.items() if site != "reset")
    return tuple(sorted({place for place in places if place}))


def ailment(address: str, seconds: float = _GLANCE) -> str | None:
    """What is wrong with a site: no answer, or an answer of its server's failure (5xx). None where it is well."""
    import httpx

    try:
        # only the head of the answer counts: a front page may be large
        with httpx.stream("GET", address, timeout=seconds, follow_redirects=True, verify=False, trust_env=False) as answer:
            return f"HTTP {answer.status_code}" if answer.status_code >= 500 else None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{type(error).__name__}: {error}".rstrip(": ")


def ailing(addresses: Mapping[str, str], seconds: float = _GLANCE) -> dict[str, str]:
    """Sites that are not well and what is wrong with each, all asked at the same time."""
    if not addresses:
        return {}
    with ThreadPoolExecutor(len(addresses)) as pool:
        found = pool.map(lambda address: ailment(address, seconds), addresses.values())
        return {site: what for site, what in zip(addresses, found, strict=True) if what is not None}


def reset(server: str, addresses: Mapping[str, str], seconds: float, poll: float = _POLL) -> None:
    """Have the reset server bring all sites to their first state and wait until they answer; takes 200 to 500 s with the images.

    Raises EnvironmentCrashed where that does not succeed within `seconds`.
    """
    deadline = time.monotonic() + seconds
    if (code := _get(server, "/reset")[0]) not in (200, 418):  # 418: a reset is under way already
        raise EnvironmentCrashed(f"The reset server {server} answered HTTP {code} to /reset.")
    while _get(server, "/status") != (200, READY):
        if time.monotonic() > deadline:
            raise EnvironmentCrashed(f"The sites were not reset within {seconds:g} s.", "env.reset_server_seconds is the limit.")
        time.sleep(poll)
    while sick := ailing({site: address for site, address in addresses.items() if site != "reset"}, _WARM):
        if time.monotonic() > deadline:
            raise EnvironmentCrashed(f"After the reset a site does not answer: {described(sick)}.")
        time.sleep(poll)


def _get(server: str, path: str) -> tuple[int, str]:
    import httpx

    try:
        answer = httpx.get(f"{server.rstrip('/')}{path}", timeout=_WARM, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EnvironmentCrashed(f"The reset server {server} does not answer {path}: {error}.") from error
    return answer.status_code, answer.text.strip()


def described(sick: Mapping[str, str]) -> str:
    return "; ".join(f"{site} ({what})" for site, what in sick.items())
