"""The double's server: its pages, its reset, planted faults, and its end. No browser."""

from __future__ import annotations

import http.cookiejar
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from envs.webarena_local.site.world import SERVED, SITES
from envs.webarena_local.sites import Sites
from harness.errors import EnvironmentCrashed

pytest.importorskip("flask", reason="the extra webarena is not installed")


@pytest.fixture(scope="module")
def running() -> Iterator[Sites]:
    sites = Sites()
    sites.urls()
    yield sites
    sites.close()


@pytest.fixture
def sites(running: Sites) -> Sites:
    for site in SITES:
        running.plant(site, None)
    running.reset()
    return running


class Visitor:
    """A browser without a window: cookies, forms, redirects."""

    def __init__(self, sites: Sites, site: str) -> None:
        self._base = sites.urls()[site]
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)

    def get(self, path: str, headers: Mapping[str, str] | None = None, timeout: float = 20) -> str:
        request = urllib.request.Request(self._base + path, headers=dict(headers or {}))
        return str(self._opener.open(request, timeout=timeout).read().decode())

    def post(self, path: str, **fields: str) -> str:
        data = urllib.parse.urlencode(fields).encode()
        return str(self._opener.open(self._base + path, data, timeout=20).read().decode())

    def post_json(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(self._opener.open(request, timeout=20))


def shopper(sites: Sites) -> Visitor:
    visitor = Visitor(sites, "shopping")
    visitor.post("/customer/account/login/", email="emma.lopez@gmail.com", password="Password.123")
    return visitor


def status(error: pytest.ExceptionInfo[urllib.error.HTTPError]) -> int:
    return error.value.code


def test_every_site_has_an_address_of_its_own_and_answers(sites: Sites) -> None:
    urls = sites.urls()
    assert list(urls) == list(SERVED)
    assert len(set(urls.values())) == len(SERVED)
    for site in SITES:
        assert "<main" in Visitor(sites, site).get("/")


def test_a_reset_restores_what_visitors_have_changed(sites: Sites) -> None:
    visitor = shopper(sites)
    visitor.post("/checkout/cart/add/product/5/")
    assert "000000189" in visitor.post("/checkout/onepage/")
    assert sites.state()["orders"] == 7
    assert Visitor(sites, "reset").get("/reset") == "Reset initiated, check status page"
    assert Visitor(sites, "reset").get("/status") == "Ready for duty!"
    assert sites.state()["orders"] == 6


def test_the_accounts_of_libwebarena_log_in_and_others_do_not(sites: Sites) -> None:
    assert "My Orders" in shopper(sites).get("/")
    stranger = Visitor(sites, "shopping")
    assert "Customer Login" in stranger.post("/customer/account/login/", email="emma.lopez@gmail.com", password="guessed")
    assert "Customer Login" in stranger.get("/sales/order/history/")


def test_what_is_written_is_shown_as_text(sites: Sites) -> None:
    visitor = Visitor(sites, "reddit")
    visitor.post("/login", _username="MarvelsGrantMan136", password="test1234")
    field = {"reply_to_submission_403[comment]": "<script>alert(1)</script>"}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in visitor.post("/f/gardening/403/-/comment", **field)


def test_the_interface_that_graders_ask(sites: Sites) -> None:
    visitor = shopper(sites)
    visitor.post("/review/product/post/id/2/", stars="4", nickname="Lopez")
    token = visitor.post_json("/rest/default/V1/integration/admin/token", {"username": "admin", "password": "admin1234"})
    headers = {"Authorization": f"Bearer {token}"}
    assert json.loads(visitor.get("/rest/V1/products/MUG-004/reviews", headers))[-1] == {
        "nickname": "Lopez",
        "title": "",
        "ratings": [{"rating_name": "Rating", "percent": 80}],
    }
    newest = json.loads(visitor.get("/rest/V1/orders?searchCriteria%5BpageSize%5D=1", headers))
    assert [order["increment_id"] for order in newest["items"]] == ["000000188"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        visitor.get("/rest/V1/orders")
    assert status(refused) == 401


def test_a_number_that_is_none_changes_no_price(sites: Sites) -> None:
    visitor = Visitor(sites, "shopping_admin")
    visitor.post("/", username="admin", password="admin1234")
    fields = {"product[price]": "cheap", "product[qty]": "3"}
    assert "Please enter a valid number." in visitor.post("/catalog/product/edit/id/1/", **fields)
    assert "39.50" in visitor.get("/catalog/product/edit/id/1/")


def test_planted_faults(sites: Sites) -> None:
    sites.plant("shopping", "error", "/lighting")
    visitor = Visitor(sites, "shopping")
    with pytest.raises(urllib.error.HTTPError) as broken:
        visitor.get("/lighting.html")
    assert status(broken) == 500
    assert "Kitchen" in visitor.get("/kitchen.html")
    sites.plant("shopping", "hang", "/kitchen")
    with pytest.raises(TimeoutError):
        visitor.get("/kitchen.html", timeout=0.3)
    sites.plant("shopping", "alert", "/")
    assert "<script>alert('Hello from the shop!')</script></body>" in visitor.get("/")
    sites.plant("shopping", "login")
    assert "Sign In" in shopper(sites).get("/")
    sites.plant("shopping", None)
    assert "My Orders" in shopper(sites).get("/")


def test_a_dead_server_is_an_infrastructure_failure_and_is_started_anew() -> None:
    own = Sites()
    own.urls()
    assert own.process_id is not None
    os.kill(own.process_id, signal.SIGSTOP)
    with pytest.raises(EnvironmentCrashed, match=r"^The server of the local WebArena sites did not answer within 0.5 s\.$"):
        own._answer(0.5)
    assert own.process_id is None
    assert "<main" in Visitor(own, "wikipedia").get("/")
    assert own._process is not None
    own._process.kill()
    own._process.wait()
    assert "<main" in Visitor(own, "wikipedia").get("/")  # found dead and replaced
    own.close()


def test_a_server_that_does_not_start_in_time_is_an_infrastructure_failure() -> None:
    with pytest.raises(EnvironmentCrashed, match=r"did not answer within 0 s"):
        Sites(start_seconds=0.0).urls()


def test_the_server_ends_with_a_parent_that_is_killed() -> None:
    source = (
        "from envs.webarena_local.sites import Sites\n"
        "import sys, time\n"
        "sites = Sites(); sites.urls(); print(sites.process_id, flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    server = int(parent.stdout.readline())
    assert _running(server)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while _running(server) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _running(server)


def _running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
