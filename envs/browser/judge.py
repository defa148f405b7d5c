"""An OpenAI-compatible endpoint on the loopback for evaluators that call one, answered by the run's own models.

libwebarena's fuzzy evaluators name a model and a server of their own. Inside the worker `OPENAI_BASE_URL` points here, and every
request is put to the parent, which answers it through the gateway: accounted, limited, recorded and replayed like any call.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# what stands for "no" while there is no answer to judge: the words of both of libwebarena's judging prompts
NO_ANSWER = "incorrect, different: no answer was given yet"


class JudgeEndpoint:
    """Serves POST …/chat/completions to holders of a random key, which the worker's environment variables name."""

    def __init__(self, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._ask = ask
        self._asked: dict[str, str] = {}
        self._may_ask: Callable[[], bool] = lambda: True
        key = secrets.token_urlsafe(24)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, key))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{self._server.server_port}/v1"
        os.environ["OPENAI_API_KEY"] = key

    def start_task(self, may_ask: Callable[[], bool]) -> None:
        """Forget the last task's verdicts. `may_ask` says whether there is something to judge."""
        self._asked, self._may_ask = {}, may_ask

    def answer(self, request: dict[str, Any]) -> str:
        """The judge's text. The evaluators run after every step: the same question about the same answer is asked once."""
        if not self._may_ask():
            return NO_ANSWER
        question = {key: request.get(key) for key in ("messages", "model", "temperature", "max_tokens")}
        key = json.dumps(question, sort_keys=True)
        if key not in self._asked:
            self._asked[key] = str(self._ask(question)["told"])
        return self._asked[key]


def _handler(endpoint: JudgeEndpoint, key: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if not secrets.compare_digest(self.headers.get("authorization", ""), f"Bearer {key}"):
                return self._reply(401, {"error": {"message": "wrong key"}})
            try:
                request = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
                text = endpoint.answer(request)
            except (ValueError, KeyError, TypeError) as error:
                return self._reply(400, {"error": {"message": str(error)}})
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._reply(
                200,
                {
                    "id": "judge",
                    "object": "chat.completion",
                    "created": 0,
                    "model": request.get("model", ""),
                    "choices": [choice],
                    "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
                },
            )

        def _reply(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            return None

    return Handler
