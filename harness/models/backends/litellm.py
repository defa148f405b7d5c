"""Any provider and any OpenAI-compatible server, through litellm.

litellm is imported inside the first call (4 to 8 s): its own retries, cache, callbacks and telemetry stay off, and it gets plain
lists and dicts only. Requests run on one event loop in a thread of its own, because only a cancelled coroutine closes the
connection at the deadline; a read time-out alone starts anew with every byte.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.metadata
import importlib.util
import os
import socket
import threading
import urllib.parse
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

from harness.contracts import Message, Problem, TaskInfo, Usage
from harness.errors import ConfigError, ModelSetupError, ProviderTimeout
from harness.models.backends.base import Answer, Request
from harness.models.backends.litellm_errors import translate
from harness.models.backends.openai_tokens import count_openai
from harness.models.config import EndpointConfig
from harness.models.intake import believable, clean, one_line
from harness.models.tokens import estimate_messages, estimate_text
from harness.models.vectors import encode_vectors

# compromised releases, and releases that cannot be imported (MODELS.md)
BAD_VERSIONS = ("1.82.7", "1.82.8", "1.107.0", "1.106.0", "1.106.1", "1.106.2")
LONGEST_CANCEL_S, LONGEST_CLOSE_S = 1.0, 3.0  # closing waits no longer for tasks that ignore it
GRACE_S = 5.0  # for a provider whose code blocks the loop: then the thread gives up without it


def _plain(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as plain dictionaries that can be encoded, whatever an environment has put into them."""
    return [{"role": message["role"], "content": clean(message["content"])} for message in messages]


def _answers(address: str) -> bool:
    """Whether something accepts connections there. Only this machine is asked: a run must not hang on a dead local server, and
    for any other address the retries are the better judge."""
    parts = urllib.parse.urlsplit(address)
    if parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        return True
    try:
        with socket.create_connection((parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)), timeout=2):
            return True
    except OSError:
        return False


class LiteLLMBackend:
    """No options of its own; what a provider wants beyond the common parameters goes into `extra_body`."""

    scripted, constrains, concurrent = False, False, True

    def __init__(self, name: str, config: EndpointConfig, seed: int) -> None:
        if config.options:
            raise ConfigError(f"models.endpoints.{name}.options: the litellm back-end has none.", "Use extra_body.")
        self._name, self._config = name, config
        self._litellm: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._in_flight: set[Future[Any]] = set()
        self._closed = False
        self._lock = threading.Lock()

    def check(self) -> list[Problem]:
        config, problems = self._config, []
        if importlib.util.find_spec("litellm") is None:
            problems.append(Problem("The package litellm is not installed.", "pip install memarena"))
        elif (version := importlib.metadata.version("litellm")) in BAD_VERSIONS:
            problems.append(Problem(f"litellm {version} is a compromised or broken release.", "pip install litellm==1.110.2"))
        if not config.model.rpartition("/")[2]:
            problems.append(
                Problem(f"Endpoint '{self._name}' names no model ('{config.model}').", "export MEMARENA_MODEL=<model>")
            )
        if config.api_key_env and not os.environ.get(config.api_key_env):
            problems.append(Problem(f"The key for {config.model} is not set.", f"export {config.api_key_env}=<key>"))
        if config.api_base and not _answers(config.api_base):
            fix = "starting the server, or export MEMARENA_API_BASE=<address> (docs/models.md)"
            problems.append(Problem(f"No server answers at {config.api_base}.", fix))
        return problems

    def describe(self) -> dict[str, Any]:
        try:
            return {"library": f"litellm {importlib.metadata.version('litellm')}"}
        except importlib.metadata.PackageNotFoundError:
            return {"library": None}

    def start_task(self, info: TaskInfo) -> None:
        return None

    def complete(self, request: Request) -> Answer:
        return self._answer(self._response(request, self._ask), request)

    def embed(self, request: Request) -> Answer:
        """Vectors of the messages' contents, in their order whatever order they come back in."""
        response = self._response(request, self._ask_vectors)
        usage, raw, note = self._usage(getattr(response, "usage", None), "", request)
        text, unusable = "", ""
        try:
            data = sorted(response.data, key=lambda item: item["index"])
            if len(data) != len(request.call.messages):
                raise ValueError(f"{len(data)} for {len(request.call.messages)} texts")
            text = encode_vectors([item["embedding"] for item in data])
        except (LookupError, TypeError, ValueError) as error:
            unusable = f"it holds no proper vectors ({type(error).__name__}: {one_line(str(error))})"
        return Answer(text, usage, response.model or self._config.model, "stop", raw, unusable=unusable, note=note)

    def _response(self, request: Request, ask: Callable[[Any, Request], Coroutine[Any, Any, Any]]) -> Any:
        future = self._submit(request, ask)
        try:
            return future.result(request.timeout_s + GRACE_S)
        except CancelledError as error:
            raise ModelSetupError(f"The endpoint '{self._name}' was closed during a call.") from error
        except TimeoutError as error:
            raise ProviderTimeout(f"{self._config.model} did not answer within {request.timeout_s:.1f} s.") from error
        except Exception as error:
            raise translate(error, self._config, request, self._key()) from error
        finally:
            future.cancel()  # closes the connection, if whoever waited was interrupted; nothing where it has ended
            with self._lock:
                self._in_flight.discard(future)

    def close(self) -> None:
        """Cancel what is in flight, and wait a moment until its connections are closed; no call can be made afterwards."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            waited_for = list(self._in_flight)
        for future in waited_for:
            future.cancel()  # wakes its caller at once, whatever the loop is busy with
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONGEST_CLOSE_S)

    # --- one call -----------------------------------------------------------------------------------------------------------
    async def _ask(self, litellm: Any, request: Request) -> Any:
        answer = litellm.acompletion(messages=_plain(request.call.messages), **self._options(request))
        return await asyncio.wait_for(answer, request.timeout_s)

    async def _ask_vectors(self, litellm: Any, request: Request) -> Any:
        texts = [clean(message["content"]) or " " for message in request.call.messages]  # providers reject an empty input
        answer = litellm.aembedding(input=texts, encoding_format="float", **self._options(request))
        return await asyncio.wait_for(answer, request.timeout_s)

    def _options(self, request: Request) -> dict[str, Any]:
        """What every call says beside its content."""
        config = self._config
        options: dict[str, Any] = dict(request.parameters)
        if config.extra_body:
            options["extra_body"] = dict(config.extra_body)
        if config.api_base:
            options["api_base"] = config.api_base
        key = self._key()
        if key or config.api_base:
            options["api_key"] = key or "none"  # local servers want none, their client wants some
        return {"model": config.model, "timeout": request.timeout_s, "num_retries": 0, "max_retries": 0, **options}

    def _answer(self, response: Any, request: Request) -> Answer:
        choices = response.choices or []
        message = choices[0].message if choices else None
        content = getattr(message, "content", None) or ""
        text = content if isinstance(content, str) else ""
        finish = choices[0].finish_reason if choices else None
        usage, raw, note = self._usage(getattr(response, "usage", None), text, request)
        unusable = "it has no choices" if not choices else ("" if content == text else "its content is no text")
        return Answer(
            text=text,
            usage=usage,
            model=response.model or self._config.model,
            finish_reason=finish,
            raw_usage=raw,
            refused=finish == "content_filter",
            unusable=unusable,
            note=note,
        )

    def _usage(self, usage: Any, text: str, request: Request) -> tuple[Usage, dict[str, int], str]:
        """The provider's numbers; where it gave none (litellm then says 0) or such as cannot be, the model's own tokenizer's, or
        an estimate; and a note where numbers were not believed."""
        note = ""
        if usage is not None and usage.prompt_tokens:
            inputs, outputs = usage.prompt_tokens_details, usage.completion_tokens_details
            counted = Usage(
                input=usage.prompt_tokens,
                output=usage.completion_tokens or 0,
                cached_input=getattr(inputs, "cached_tokens", None) or 0,
                reasoning=getattr(outputs, "reasoning_tokens", None) or 0,
            )
            believed, note = believable(counted)
            if believed is not None:
                return believed, {"input": believed.input, "output": believed.output}, note
        messages = request.call.messages
        exact = count_openai(self._config.model, messages, text)
        if exact is not None:
            return Usage(exact[0], exact[1], source="tokenizer"), {}, note
        return Usage(estimate_messages(messages), estimate_text(text), source="estimate"), {}, note

    def _key(self) -> str | None:
        return os.environ.get(self._config.api_key_env) if self._config.api_key_env else None

    # --- the library ----------------------------------------------------------------------------------------------------------
    def _submit(self, request: Request, ask: Callable[[Any, Request], Coroutine[Any, Any, Any]]) -> Future[Any]:
        """Start a call on the loop. `close` cancels every future that this has returned: none is started after it."""
        with self._lock:
            if self._closed:
                raise ModelSetupError(f"The endpoint '{self._name}' is closed.")
            if self._litellm is None:
                self._litellm = self._load()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop, self._litellm), name=f"memarena-{self._name}", daemon=True
                )
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(ask(self._litellm, request), self._loop)
            self._in_flight.add(future)
            return future

    def _load(self) -> Any:
        litellm = _import_litellm()
        try:
            litellm.get_llm_provider(self._config.model, api_base=self._config.api_base)
        except Exception as error:
            raise ModelSetupError(
                f"litellm knows no provider for the model '{self._config.model}'.",
                "Write it as <provider>/<model>, for example openai/<model> with api_base for a local server.",
            ) from error
        return litellm


def _import_litellm() -> Any:
    """litellm with everything off that reaches for the network, keeps state between calls, or has work to do at exit."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import fetches a price list
    with _without_exit_handlers():
        import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.cache = None
    litellm.drop_params = False  # what is dropped is the gateway's decision, and recorded
    litellm.num_retries = 0
    litellm.callbacks, litellm.success_callback, litellm.failure_callback = [], [], []
    litellm.disable_hf_tokenizer_download = True
    # pages of it about an odd answer, of which the gateway makes one line
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    return litellm


@contextmanager
def _without_exit_handlers() -> Iterator[None]:
    """litellm's own exit handlers close clients from another event loop than theirs, which may never come back: `_run` closes
    them where they belong."""
    register = atexit.register

    def ours(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        if str(getattr(function, "__module__", "")).split(".")[0] == "litellm":
            return function
        return register(function, *args, **kwargs)

    with patch.object(atexit, "register", ours):
        yield


def _run(loop: asyncio.AbstractEventLoop, litellm: Any) -> None:
    """Run `loop` until it is stopped, then cancel what is left on it (requests, litellm's own workers) and close its clients.

    What does not let itself be cancelled is left behind; the thread is a daemon.
    """
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=LONGEST_CANCEL_S))
        loop.run_until_complete(_close_clients(litellm))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _close_clients(litellm: Any) -> None:
    """Close the connections that litellm keeps open for the running loop; the keys of its cache end with the loop's mark."""
    clients = getattr(litellm, "in_memory_llm_clients_cache", None)
    cached: dict[str, Any] = dict(getattr(clients, "cache_dict", {}))
    mark = clients.update_cache_key_with_event_loop("") if cached and clients is not None else ""
    for key, client in cached.items():
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        if not key.endswith(mark) or not asyncio.iscoroutinefunction(close):
            continue
        with suppress(Exception):
            await asyncio.wait_for(close(), LONGEST_CANCEL_S)
