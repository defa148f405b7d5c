"""Any provider and any OpenAI-compatible server, through litellm.

litellm is imported inside the first call (4 to 8 s): its own retries, cache, callbacks and telemetry stay off, and it gets plain
lists and dicts only. Requests run on one event loop in a thread of its own, because only a cancelled coroutine closes the
connection at the deadline; a read time-out alone starts anew with every byte.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib.metadata
import importlib.util
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from harness.contracts import Problem, TaskInfo, Usage
from harness.errors import ConfigError, ModelSetupError, ProviderTimeout
from harness.models.backends.base import Answer, Request
from harness.models.backends.litellm_errors import translate
from harness.models.backends.openai_tokens import count_openai
from harness.models.config import EndpointConfig
from harness.models.tokens import estimate_messages, estimate_text
from harness.models.vectors import encode_vectors

# compromised releases, and releases that cannot be imported (MODELS.md)
BAD_VERSIONS = ("1.82.7", "1.82.8", "1.107.0", "1.106.0", "1.106.1", "1.106.2")
GRACE_S = 5.0  # for a provider whose code blocks the loop: then the thread gives up without it


class LiteLLMBackend:
    """No options of its own; what a provider wants beyond the common parameters goes into `extra_body`."""

    scripted, constrains, concurrent = False, False, True

    def __init__(self, name: str, config: EndpointConfig, seed: int) -> None:
        if config.options:
            raise ConfigError(f"models.endpoints.{name}.options: the litellm back-end has none.", "Use extra_body.")
        self._name, self._config = name, config
        self._litellm: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
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
        data = sorted(response.data, key=lambda item: item["index"])
        usage, raw = self._usage(getattr(response, "usage", None), "", request)
        vectors = encode_vectors([item["embedding"] for item in data])
        return Answer(vectors, usage, response.model or self._config.model, "stop", raw)

    def _response(self, request: Request, ask: Callable[[Any, Request], Coroutine[Any, Any, Any]]) -> Any:
        litellm, loop = self._open()
        future = asyncio.run_coroutine_threadsafe(ask(litellm, request), loop)
        try:
            return future.result(request.timeout_s + GRACE_S)
        except concurrent.futures.CancelledError as error:
            raise ModelSetupError(f"The endpoint '{self._name}' was closed during a call.") from error
        except TimeoutError as error:
            future.cancel()
            raise ProviderTimeout(f"{self._config.model} did not answer within {request.timeout_s:.1f} s.") from error
        except Exception as error:
            raise translate(error, self._config, request, self._key()) from error

    def close(self) -> None:
        """Cancel what is in flight; no call can be made afterwards."""
        with self._lock:
            self._closed = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._loop = None

    # --- one call -----------------------------------------------------------------------------------------------------------
    async def _ask(self, litellm: Any, request: Request) -> Any:
        answer = litellm.acompletion(messages=[dict(message) for message in request.call.messages], **self._options(request))
        return await asyncio.wait_for(answer, request.timeout_s)

    async def _ask_vectors(self, litellm: Any, request: Request) -> Any:
        texts = [message["content"] or " " for message in request.call.messages]  # providers reject an empty input
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
        choice = response.choices[0]
        text = choice.message.content or ""
        usage, raw = self._usage(getattr(response, "usage", None), text, request)
        return Answer(
            text=text,
            usage=usage,
            model=response.model or self._config.model,
            finish_reason=choice.finish_reason,
            raw_usage=raw,
            refused=choice.finish_reason == "content_filter",
        )

    def _usage(self, usage: Any, text: str, request: Request) -> tuple[Usage, dict[str, int]]:
        """The provider's numbers; where it gave none (litellm then says 0), the model's own tokenizer's, or an estimate."""
        if usage is not None and usage.prompt_tokens:
            inputs, outputs = usage.prompt_tokens_details, usage.completion_tokens_details
            counted = Usage(
                input=usage.prompt_tokens,
                output=usage.completion_tokens or 0,
                cached_input=getattr(inputs, "cached_tokens", None) or 0,
                reasoning=getattr(outputs, "reasoning_tokens", None) or 0,
            )
            return counted, {"input": counted.input, "output": counted.output}
        messages = request.call.messages
        exact = count_openai(self._config.model, messages, text)
        if exact is not None:
            return Usage(exact[0], exact[1], source="tokenizer"), {}
        return Usage(estimate_messages(messages), estimate_text(text), source="estimate"), {}

    def _key(self) -> str | None:
        return os.environ.get(self._config.api_key_env) if self._config.api_key_env else None

    # --- the library ----------------------------------------------------------------------------------------------------------
    def _open(self) -> tuple[Any, asyncio.AbstractEventLoop]:
        with self._lock:
            if self._closed:
                raise ModelSetupError(f"The endpoint '{self._name}' is closed.")
            if self._litellm is None:
                self._litellm = _import_litellm()
                try:
                    self._litellm.get_llm_provider(self._config.model, api_base=self._config.api_base)
                except Exception as error:
                    raise ModelSetupError(
                        f"litellm knows no provider for the model '{self._config.model}'.",
                        "Write it as <provider>/<model>, for example openai/<model> with api_base for a local server.",
                    ) from error
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name=f"memarena-{self._name}", daemon=True).start()
            return self._litellm, self._loop


def _import_litellm() -> Any:
    """litellm with everything off that reaches for the network or keeps state between calls."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import fetches a price list
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.cache = None
    litellm.drop_params = False  # what is dropped is the gateway's decision, and recorded
    litellm.num_retries = 0
    litellm.callbacks, litellm.success_callback, litellm.failure_callback = [], [], []
    litellm.disable_hf_tokenizer_download = True
    return litellm


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run `loop` until it is stopped, then cancel what is left on it (requests, litellm's own workers)."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
