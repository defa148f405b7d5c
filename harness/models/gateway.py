"""The gateway: the one object through which hosts, memories, judges and optimisers reach a model (METHODS.md 1.1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.contracts import MODEL_KEYS, Call, LocalEmbedder, Message, Phase, Problem, Reply, TaskInfo
from harness.errors import ConfigError
from harness.limits import Limits
from harness.models.attempts import CallRun, Place, Services
from harness.models.config import EMBED, ModelsConfig, validate
from harness.models.counters import Counters
from harness.models.embeddings import embed_locally
from harness.models.endpoint import Endpoint, Prepared
from harness.models.ledger import LedgerRow, LedgerSink
from harness.models.prices import PriceBook
from harness.models.replay import Recorder
from harness.models.vectors import TEXTS_PER_CALL, decode_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_POOL = 64


class Gateway:
    """Models for the tasks of one stream.

    `constrain_actions` None leaves it to the model set. Construction validates names and numbers (ConfigError) but imports
    no model library, opens nothing and spends nothing. One task at a time; `complete_many` is concurrent inside it.
    """

    def __init__(
        self,
        config: ModelsConfig,
        *,
        seed: int,
        constrain_actions: bool | None = None,
        limits: Limits | None = None,
        replay: Recorder | None = None,
        prices: PriceBook | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        validate(config)
        self.config, self.seed = config, seed
        self.limits = limits or Limits()
        self.replay = replay or Recorder()
        self.prices = prices or PriceBook.load()
        self.counters = Counters()
        constrain = config.constrain_actions if constrain_actions is None else constrain_actions
        by_key: dict[str, str] = {key: name for key in MODEL_KEYS if (name := config.endpoint_for(key)) is not None}
        if EMBED in config.keys:
            by_key[EMBED] = config.keys[EMBED]
        self.endpoints = {
            name: Endpoint(name, config.endpoints[name], seed=seed, constrain=constrain, prices=self.prices)
            for name in sorted(set(by_key.values()))
        }
        self._by_key: dict[str, Endpoint] = {key: self.endpoints[name] for key, name in by_key.items()}
        self._closing = threading.Event()  # wakes whoever waits for the next attempt
        self._services = Services(self.limits, self.replay, self.counters, sleep or self._pause)
        self._pool: ThreadPoolExecutor | None = None
        self._open_task: str | None = None

    def check(self) -> list[Problem]:
        """What is missing before a call can be made: packages, files, keys, recordings. Spends nothing, imports no library."""
        problems = self.replay.check()
        if self.replay.mode == "replay":
            return problems  # nothing but the recordings is needed
        for endpoint in self.endpoints.values():
            problems += [p for p in endpoint.backend.check() if p not in problems]
        return problems

    def describe(self) -> dict[str, Any]:
        """What the run's manifest says about the models; JSON-able, without keys. `learned` is complete only at the end."""
        return {
            "name": self.config.name,
            "label": self.config.label,
            "scripted": self.scripted,
            "constrain_actions": any(e.constrain for e in self.endpoints.values()),
            "keys": {key: endpoint.name for key, endpoint in sorted(self._by_key.items())},
            "endpoints": {name: endpoint.describe() for name, endpoint in self.endpoints.items()},
            "prices": self.prices.describe(),
            "replay": self.replay.describe(),
            "usage_estimated": any(t.unreported for t in self.counters.totals().values()),
        }

    @property
    def scripted(self) -> bool:
        """Whether a test double answers for any key: such a run measures no model."""
        return any(endpoint.backend.scripted for endpoint in self.endpoints.values())

    @contextmanager
    def task(self, info: TaskInfo, *, position: int, sink: LedgerSink, step: Callable[[], int]) -> Iterator[TaskModels]:
        """The models for one task at place `position` of the stream; `step` returns the environment steps made so far."""
        if self._open_task is not None:
            raise RuntimeError(f"task {self._open_task} is still open: a stream plays one task at a time")
        self._open_task = info.task.task_id
        try:
            for endpoint in self.endpoints.values():
                endpoint.backend.start_task(info)
            yield TaskModels(self, info, position, sink, step)
        finally:
            self._open_task = None

    def endpoint(self, key: str) -> Endpoint:
        """The endpoint that answers for model key `key`. Raises ConfigError where the set has none."""
        try:
            return self._by_key[key]
        except KeyError:
            raise ConfigError(
                f"The model set '{self.config.name}' has no endpoint for '{key}'.", f"Set models.keys.{key}."
            ) from None

    def embedding_endpoint(self) -> Endpoint:
        """The endpoint of key `embed`. A test double embeds by itself; else a chat model is no substitute: ConfigError."""
        found = self._by_key.get(EMBED) or self._by_key.get("memory")
        if found is not None and (EMBED in self._by_key or found.backend.scripted):
            return found
        raise ConfigError(
            f"The model set '{self.config.name}' has no endpoint for embeddings.",
            "Set models.keys.embed to one with an embedding model, or choose a local embedder (method.embedder=wordllama).",
        )

    def pool(self) -> ThreadPoolExecutor:
        """The threads of `complete_many`, started when first needed."""
        if self._pool is None:
            size = min(LARGEST_POOL, sum(e.concurrency for e in self.endpoints.values()))
            self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="memarena-model")
        return self._pool

    @property
    def services(self) -> Services:
        return self._services

    def _pause(self, seconds: float) -> None:
        self._closing.wait(seconds)

    def close(self) -> None:
        """Abandon the calls in flight (after an interrupt there may be some), close recordings, release models."""
        self._closing.set()
        for endpoint in self.endpoints.values():
            endpoint.backend.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self.replay.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class TaskModels:
    """`harness.contracts.Models` for one task."""

    def __init__(self, gateway: Gateway, info: TaskInfo, position: int, sink: LedgerSink, step: Callable[[], int]) -> None:
        self._gateway, self._sink, self._step = gateway, sink, step
        self._position, self._task = position, info.task

    def complete(self, call: Call) -> Reply:
        """Answer one call; a row is written after every attempt. Raises as the contract says, and ModelSetupError."""
        endpoint = self._gateway.endpoint(call.key)
        prepared = endpoint.prepare(call)
        occurrence = self._sink.occurrences(prepared.digest)
        return CallRun(endpoint, prepared, occurrence, self._place(), self._gateway.services, self._sink.write).run()

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        """Answer independent calls; rows are written in the order of `calls`, whatever order they end in.

        At the first error no further call is started; those in flight end and are written, then the error is raised.
        """
        endpoints = [self._gateway.endpoint(call.key) for call in calls]
        sequential = self._gateway.replay.mode == "replay" or all(e.concurrency == 1 for e in endpoints)
        if sequential or len(calls) < 2:
            return [self.complete(call) for call in calls]
        runs = self._prepare_all(endpoints, calls)
        futures: list[Future[Reply]] = [self._gateway.pool().submit(run.run) for run, _ in runs]
        replies: list[Reply] = []
        failure: BaseException | None = None
        for future, (_, rows) in zip(futures, runs, strict=True):
            if failure is not None and future.cancel():
                continue
            error = future.exception()
            for row, transcript in rows:
                self._sink.write(row, transcript)
            if error is None:
                replies.append(future.result())
            elif failure is None:
                failure = error
        if failure is not None:
            raise failure
        return replies

    def embed(
        self, role: str, texts: Sequence[str], *, phase: Phase, agent: str | None = None, local: LocalEmbedder | None = None
    ) -> NDArray[np.float64]:
        """Vectors of `texts`, by `local` or by the endpoint of key `embed`, in calls of at most TEXTS_PER_CALL."""
        import numpy as np

        if local is not None:
            return embed_locally(local, role, texts, phase, agent, self._place(), self._sink)
        endpoint = self._gateway.embedding_endpoint()
        parts: list[NDArray[np.float64]] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            messages: list[Message] = [{"role": "user", "content": text} for text in texts[start : start + TEXTS_PER_CALL]]
            prepared = endpoint.prepare_embedding(Call(role, tuple(messages), "memory", phase, agent))
            occurrence = self._sink.occurrences(prepared.digest)
            run = CallRun(endpoint, prepared, occurrence, self._place(), self._gateway.services, self._sink.write)
            parts.append(decode_vectors(run.run().text))
        return np.concatenate(parts) if parts else np.zeros((0, 0))

    def _prepare_all(
        self, endpoints: Sequence[Endpoint], calls: Sequence[Call]
    ) -> list[tuple[CallRun, list[tuple[LedgerRow, Mapping[str, Any]]]]]:
        """The runs of `calls` with the rows they will fill; equal requests get consecutive occurrences."""
        place = self._place()
        seen: dict[str, int] = {}
        runs: list[tuple[CallRun, list[tuple[LedgerRow, Mapping[str, Any]]]]] = []
        for endpoint, call in zip(endpoints, calls, strict=True):
            prepared: Prepared = endpoint.prepare(call)
            occurrence = seen.get(prepared.digest, self._sink.occurrences(prepared.digest))
            seen[prepared.digest] = occurrence + 1
            rows: list[tuple[LedgerRow, Mapping[str, Any]]] = []
            emit = _appending(rows)
            runs.append((CallRun(endpoint, prepared, occurrence, place, self._gateway.services, emit), rows))
        return runs

    def _place(self) -> Place:
        return Place(self._position, self._task.index, self._task.task_id, self._step())


def _appending(rows: list[tuple[LedgerRow, Mapping[str, Any]]]) -> Callable[[LedgerRow, Mapping[str, Any]], None]:
    return lambda row, transcript: rows.append((row, transcript))
