"""What the tests of harness/models share: a sink in memory, a back-end that does as told, and short constructors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.contracts import Call, Message, Models, Problem, Task, TaskInfo, Usage
from harness.models.backends.base import Answer, Request
from harness.models.config import EndpointConfig, ModelsConfig
from harness.models.gateway import Gateway
from harness.models.ledger import LedgerRow
from harness.models.prices import PriceBook

Handle = Callable[[Request, int], Any]
TASK = Task("task-7", 7, "put a clean mug in cabinet", "clean-mug", "clean")


class MemorySink:
    """Rows and transcripts in memory; occurrences as the stream's ledger counts them."""

    def __init__(self) -> None:
        self.rows: list[LedgerRow] = []
        self.transcripts: list[Mapping[str, Any]] = []

    def write(self, row: LedgerRow, transcript: Mapping[str, Any]) -> None:
        self.rows.append(row)
        self.transcripts.append(transcript)

    def occurrences(self, digest: str) -> int:
        return sum(1 for row in self.rows if row.digest == digest and row.ok)


class ToldBackend:
    """Calls option `handle(request, n)` for the n-th attempt: it returns an Answer or text, or raises."""

    scripted, constrains, concurrent = False, False, True

    def __init__(self, name: str, config: EndpointConfig, seed: int) -> None:
        self.handle: Callable[[Request, int], Answer | str] = config.options["handle"]
        self.requests: list[Request] = []

    def check(self) -> list[Problem]:
        return [Problem("told back-end", "nothing")]

    def describe(self) -> dict[str, Any]:
        return {}

    def start_task(self, info: TaskInfo) -> None:
        return None

    def complete(self, request: Request) -> Answer:
        number = len(self.requests)
        self.requests.append(request)
        answer = self.handle(request, number)
        if isinstance(answer, Answer):
            return answer
        return Answer(answer, Usage(100, 10, 40, 5), "told-1", "stop", {"input": 100, "output": 10})

    def close(self) -> None:
        return None


def call(text: str = "What next?", **kw: Any) -> Call:
    user: Message = {"role": "user", "content": text}
    settings: dict[str, Any] = {"role": "host.single.agent", "key": "actor", "phase": "act", "messages": (user,)}
    return Call(**{**settings, **kw})


def info(oracle: list[str] | None = None, choices: tuple[str, ...] | None = None, task: Task = TASK) -> TaskInfo:
    return TaskInfo(task, 7, oracle=lambda: oracle, choices=lambda: choices)


def model_set(backend: str, model: str = "m", **kw: Any) -> ModelsConfig:
    return ModelsConfig("set", "Set", {"main": EndpointConfig(backend, model, **kw)}, {"default": "main"})


def scripted(policy: str, **options: Any) -> ModelsConfig:
    return model_set("scripted", f"scripted/{policy}", options={"policy": policy, **options})


def gateway(config: ModelsConfig, **kw: Any) -> Gateway:
    settings: dict[str, Any] = {"seed": 3, "prices": PriceBook.empty(), "sleep": lambda seconds: None}
    return Gateway(config, **{**settings, **kw})


@contextmanager
def playing(
    gate: Gateway, task: TaskInfo | None = None, sink: MemorySink | None = None, step: Callable[[], int] = lambda: 0
) -> Iterator[tuple[Models, MemorySink]]:
    sink = sink or MemorySink()
    with gate.task(task or info(), position=0, sink=sink, step=step) as models:
        yield models, sink


def told(handle: Handle, **kw: Any) -> ModelsConfig:
    return model_set("told", options={"handle": handle}, **kw)


def backend_of(gate: Gateway) -> ToldBackend:
    backend = gate.endpoints["main"].backend
    assert isinstance(backend, ToldBackend)
    return backend


def raising(*errors: Exception, then: str = "ok") -> Handle:
    def handle(request: Request, n: int) -> str:
        if n < len(errors):
            raise errors[n]
        return then

    return handle
