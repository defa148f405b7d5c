"""A real OpenAI-compatible HTTP server on this machine, scripted per request, that adds up what it reports."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Response:
    """What the server does with one request. `delay` seconds pass first; `dribble` then sends a byte every so many seconds."""

    status: int = 200
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    dribble: float | None = None


def answer(
    text: str | None = "ok",
    *,
    prompt: int = 11,
    completion: int = 3,
    cached: int = 0,
    reasoning: int = 0,
    finish: str = "stop",
    usage: bool = True,
    **kw: Any,
) -> Response:
    body: Json = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model-2026",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
    }
    if usage:
        body["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    return Response(200, body, **kw)


def error(status: int, message: str, *, code: str | None = None, param: str | None = None, **headers: str) -> Response:
    kind = "invalid_request_error" if status < 429 else "server_error"
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Response(status, body, {k.replace("_", "-"): v for k, v in headers.items()})


class OpenAIServer:
    """`handle` maps (request body, number of the request from 0) to a Response."""

    def __init__(self) -> None:
        self.handle: Callable[[Json, int], Response] = lambda body, n: answer()
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.reported = {"prompt": 0, "completion": 0, "cached": 0, "reasoning": 0}
        self.running = self.most_running = self.broken = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def reset(self) -> None:
        self.handle = lambda body, n: answer()
        self.requests, self.headers = [], []
        self.reported = dict.fromkeys(self.reported, 0)
        self.most_running = self.broken = 0

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _count(self, body: Mapping[str, Any]) -> None:
        usage = body.get("usage")
        if isinstance(usage, dict) and "prompt_tokens_details" in usage:
            self.reported["prompt"] += usage["prompt_tokens"]
            self.reported["completion"] += usage["completion_tokens"]
            self.reported["cached"] += usage["prompt_tokens_details"]["cached_tokens"]
            self.reported["reasoning"] += usage["completion_tokens_details"]["reasoning_tokens"]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    number = len(server.requests)
                    server.requests.append(body)
                    server.headers.append({k.lower(): v for k, v in self.headers.items()})
                    server.running += 1
                    server.most_running = max(server.most_running, server.running)
                try:
                    self._respond(server.handle(body, number))
                except (BrokenPipeError, ConnectionResetError):
                    server.broken += 1
                    self.close_connection = True
                finally:
                    with server._lock:
                        server.running -= 1

            def _respond(self, response: Response) -> None:
                time.sleep(response.delay)
                content = json.dumps(response.body).encode()
                with server._lock:
                    server._count(response.body)
                self.send_response(response.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if response.dribble is None:
                    self.wfile.write(content)
                    return
                for at in range(len(content)):
                    self.wfile.write(content[at : at + 1])
                    self.wfile.flush()
                    time.sleep(response.dribble)

            def log_message(self, format: str, *args: Any) -> None:
                return None

        return Handler
