"""Addresses, health and reset of the sites, against servers made here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from envs.browser import provision
from envs.webarena import dataset
from envs.webarena import sites as health
from envs.webarena.adapter import WebArena, WebArenaConfig
from envs.webarena.sites import SITES, SiteAddresses
from harness.contracts import Problem
from harness.errors import EnvironmentCrashed
from tests.support.browsers import PageServer, page_server

DEAD = "http://127.0.0.1:1"


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server() as running:
        yield running


@contextmanager
def reset_server(code: int, statuses: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Answers /reset with `code` and /status with the texts in turn, the last one for ever. Yields address and requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            text = statuses.pop(0) if self.path == "/status" and len(statuses) > 1 else statuses[0]
            self.send_response(code if self.path == "/reset" else 200)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None:
            return None

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", asked
    finally:
        running.shutdown()
        running.server_close()


def test_an_address_comes_from_the_configuration_else_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WA_REDDIT", "http://env:9999/")
    monkeypatch.setenv("WA_MAP", "http://env:3000")
    monkeypatch.setenv("WA_FULL_RESET", "http://env:7565")
    found = SiteAddresses(map="http://conf:3000").resolved()
    assert found == {"reddit": "http://env:9999", "map": "http://conf:3000", "reset": "http://env:7565"}
    assert health.worker_env(found)["WA_MAP"] == "http://conf:3000"


def test_hosts_hold_no_password_and_no_reset_server() -> None:
    addresses = {"reddit": "http://me:secret@host:9999/x", "map": "http://maps", "reset": "http://host:7565"}
    assert health.hosts(addresses) == ("host:9999", "maps")


def test_a_site_is_well_unless_its_server_fails(server: PageServer) -> None:
    addresses = {"reddit": server.url, "map": f"{server.url}/broken", "gitlab": DEAD}
    found = health.ailing(addresses)
    assert found["map"] == "HTTP 500" and found["gitlab"].startswith("ConnectError") and "reddit" not in found


def test_a_reset_waits_until_the_server_is_ready_and_the_sites_answer(server: PageServer) -> None:
    for code in (200, 418):
        with reset_server(code, ["busy", "busy", health.READY]) as (address, asked):
            health.reset(address, {"reddit": server.url, "reset": address}, 10.0, poll=0.01)
        assert asked == ["/reset", "/status", "/status", "/status"]


def test_a_reset_that_fails_is_infrastructure(server: PageServer) -> None:
    with reset_server(500, [health.READY]) as (address, _), pytest.raises(EnvironmentCrashed, match="HTTP 500 to /reset"):
        health.reset(address, {}, 10.0, poll=0.01)
    with reset_server(200, ["busy"]) as (address, _), pytest.raises(EnvironmentCrashed, match=r"not reset within 0\.05 s"):
        health.reset(address, {}, 0.05, poll=0.01)
    server.sick = True
    with reset_server(200, [health.READY]) as (address, _), pytest.raises(EnvironmentCrashed, match=r"reddit \(HTTP 500\)"):
        health.reset(address, {"reddit": server.url}, 0.05, poll=0.01)
    with pytest.raises(EnvironmentCrashed, match="does not answer /reset"):
        health.reset(DEAD, {}, 0.05)


@pytest.mark.skipif(dataset.path() is None, reason="libwebarena is not installed (make setup-webarena)")
class TestCheck:
    """What `check` says of sites and judge; packages and browser are another test's."""

    @pytest.fixture(autouse=True)
    def _provided(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(provision, "problems", lambda webarena: [])

    def made(self, server: PageServer, **values: object) -> WebArena:
        addresses = SiteAddresses(**dict.fromkeys(SITES, server.url))
        return WebArena(WebArenaConfig(**{"sites": addresses, "reset": "never", **values}))  # type: ignore[arg-type]

    def test_unknown_addresses_are_named_with_their_variables(self) -> None:
        problems = WebArena(WebArenaConfig(sites=SiteAddresses(**dict.fromkeys(SITES[1:], DEAD)))).check()
        assert problems == [Problem("Addresses of sites are not known: shopping", "export WA_SHOPPING=http://…")]

    def test_all_is_well_where_every_site_answers(self, server: PageServer) -> None:
        assert self.made(server).check() == []

    def test_only_the_sites_of_the_chosen_tasks_must_answer(self, server: PageServer) -> None:
        addresses = SiteAddresses(**{**dict.fromkeys(SITES, server.url), "map": DEAD})
        assert self.made(server, sites=addresses, groups=["reddit"]).check() == []
        problems = self.made(server, sites=addresses, groups=["map"]).check()
        assert [p.fix for p in problems] == ["start it, or correct WA_MAP"]
        assert problems[0].what.startswith(f"map at {DEAD} does not answer: ConnectError")

    def test_a_reset_needs_a_server(self, server: PageServer) -> None:
        assert [p.what for p in self.made(server, reset="auto").check()] == ["There is no reset server for env.reset=auto"]

    def test_a_judge_is_wanted_before_the_run_where_tasks_need_one(self, server: PageServer) -> None:
        problems = self.made(server, judge="none").check()
        assert problems == [
            Problem(
                "118 of the chosen tasks are graded by a model, and env.judge is none", "env.judge=gateway, or env.fuzzy=false"
            )
        ]
        assert self.made(server, judge="none", fuzzy=False).check() == []
        assert self.made(server, judge="none", tasks=[0]).check() == []
