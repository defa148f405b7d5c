"""What tests with a real browser share: where it is on this machine, and a small site with pages that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from envs.browser import provision
from envs.browser.plan import TaskPlan

# read when tests are collected, before any fixture moves the cache
_PLACES = provision.worker_env()


def use_installed_browser(monkeypatch: pytest.MonkeyPatch, *, webarena: bool = False) -> None:
    """Let the code find the browser of this machine's user, whatever cache a test has; skip where there is none."""
    for name, value in _PLACES.items():
        monkeypatch.setenv(name, value)
    if problems := provision.problems(webarena=webarena):
        pytest.skip(problems[0].what)


PAGES = {
    "/": "<title>Start</title><h1>Start</h1><a href='/other'>other page</a>"
    "<a href='/other' target='_blank'>in a new tab</a><a href='/file.bin'>a file</a>"
    "<button onclick=\"alert('Are you there?'); document.title='asked'\">ask</button>"
    "<button onclick='while (true) {}'>hang</button>",
    "/other": "<title>Other</title><h1>Other</h1><a href='/never'>a page that never comes</a><a href='/broken'>a broken page</a>"
    "<a href='/never' target='_blank'>a tab that never comes</a><iframe id='f'></iframe>"
    "<button onclick=\"document.getElementById('f').src='/never'\">frame</button>",
    "/cookie": "<title>Cookie</title><script>document.write(document.cookie || 'no cookie'); document.cookie='seen=1'</script>",
    "/long": "<title>Long</title>" + "".join(f"<button>number {i}</button>" for i in range(400)),
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, PageServer)
        if self.path == "/never":
            server.released.wait(60)  # until the test is over
            return
        status = 500 if self.path == "/broken" or server.sick else 200
        page = PAGES.get(self.path, "<title>Nothing</title>")
        self.send_response(status)
        if self.path == "/file.bin":
            self.send_header("content-type", "application/octet-stream")
            self.send_header("content-disposition", "attachment; filename=report.bin")
        else:
            self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *arguments: object) -> None:
        return None


class PageServer(ThreadingHTTPServer):
    """`sick` true: every page answers 500."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.sick, self.released = False, threading.Event()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"


@contextmanager
def page_server() -> Iterator[PageServer]:
    server = PageServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


def open_page(url: str, **more: object) -> TaskPlan:
    """A task without an end that begins at `url`."""
    kwargs = {"start_url": url, "goal": "look around"}
    return TaskPlan("browsergym.core.task:OpenEndedTask", kwargs, observation_delay=0.05, **more)  # type: ignore[arg-type]
