"""Plays one cell in this process: checks, identity, stream, and the exit code."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

from harness.cell import Cell
from harness.errors import IdentityError
from harness.limits import Limits
from harness.models.gateway import Gateway
from harness.models.prices import PriceBook
from harness.models.replay import Mode, Recorder
from harness.progress import Progress
from harness.store import manifest
from harness.store.database import Store
from harness.store.identity import differences
from harness.stream import Stream

EXIT_OK, EXIT_FAILED, EXIT_USER, EXIT_INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True)
class Prepared:
    """A cell that has passed every check that costs nothing."""

    cell: Cell
    directory: Path
    finished: bool


def directory_of(cell: Cell) -> Path:
    run = cell.config.run
    return Path(run.root) / (run.name or cell.config.default_name())


def prepare(
    values: Mapping[str, Any],
    choices: Mapping[str, str],
    bases: Mapping[str, Mapping[str, Any]] | None = None,
    experiment: str | None = None,
) -> Prepared:
    """Check everything that can be checked before anything is spent.

    Raises ConfigError, SetupError, or IdentityError where the run directory holds another cell (RUN-R5).
    """
    cell = Cell.build(values, choices, bases, experiment)
    directory = directory_of(cell)
    cell.require(cell.environment.check())
    found, identity = manifest.read(directory), cell.identity
    if found is not None and found["identity"] != identity:
        changed = differences(found.get("cell", {}), cell.description)
        raise IdentityError(
            f"{directory} holds another cell: {'; '.join(changed)}.",
            "Give this run a name of its own (run.name=…), or remove that directory.",
        )
    wanted = len(cell.tasks)
    finished = found is not None and _finished(directory, wanted)
    if found is not None and "rescored" in found and not finished:
        raise IdentityError(
            f"{directory} was graded anew from {found['rescored']['from']}; it is no stream that could go on.",
            "Give this run a name of its own (run.name=…).",
        )
    if not finished:  # what is finished needs neither key nor recording
        cell.require(gateway_of(cell, directory).check())
    return Prepared(cell, directory, finished)


def _finished(directory: Path, total: int) -> bool:
    from harness.store.view import RunView

    return {row.position for row in RunView(directory).tasks()} >= set(range(total))


def gateway_of(cell: Cell, directory: Path, limits: Limits | None = None, prices: PriceBook | None = None) -> Gateway:
    """The models of `cell`; recordings lie in `directory` unless the configuration says where; the newest prices if None."""
    run = cell.config.run
    path = Path(run.replay.path) if run.replay.path else directory / "recordings.sqlite"
    return Gateway(
        cell.config.models,
        seed=run.seed,
        constrain_actions=run.constrain_actions,
        limits=limits,
        replay=Recorder(cast(Mode, run.replay.mode), path),
        prices=prices or PriceBook.load(),
    )


def play(prepared: Prepared) -> int:
    """Play the stream to its end; 0, or 1 if tasks are left without a result. Raises what stops it."""
    cell, directory = prepared.cell, prepared.directory
    if prepared.finished:
        print(f"{directory}: finished before, nothing to do (memarena show {directory}).")
        return EXIT_OK
    limits = Limits()
    # to the very end: a second interrupt must not disturb what the first one has closed
    with interruptible(), ExitStack() as stack:
        store = stack.enter_context(Store(directory))
        _claim(store, cell)
        gateway = gateway_of(cell, directory, limits)
        stack.callback(gateway.close)
        previous = manifest.read(directory)
        manifest.write(directory, cell.manifest(gateway.describe(), previous))
        done, score = store.db.execute("SELECT count(*), coalesce(sum(score), 0) FROM task").fetchone()
        progress = Progress(cell.config.run.progress, directory.name, len(cell.tasks), done, score)
        stack.callback(progress.close)
        source = str(cell.environment.provenance.get("source", "official")).partition(", ")[0]
        if not source.startswith("official"):
            progress.note(f"these are {source} tasks, not the official data (memarena doctor env={cell.environment.name})")
        result = Stream(cell, store, gateway, limits, progress).play()
        # what the gateway learnt of the endpoints on the way belongs into the record; estimates of earlier processes count too
        written = manifest.read(directory)
        assert written is not None
        models = {**gateway.describe(), "usage_estimated": store.usage_estimated()}
        manifest.write(directory, {**written, "models": models})
    progress.finish(directory)
    if result.infra_failures:
        print(f"{directory}: {result.infra_failures} tasks failed for reasons of infrastructure; run it again to retry them.")
        return EXIT_FAILED
    return EXIT_OK


def _claim(store: Store, cell: Cell) -> None:
    """The results belong to a cell even where the manifest beside them was lost or exchanged."""
    kept = store.get("identity")
    if kept is None:
        store.put("identity", cell.identity)
    elif kept != cell.identity:
        raise IdentityError(
            f"The results in {store.directory} are those of another cell ({kept[:12]}…, this is {cell.identity[:12]}…).",
            "Give this run a name of its own (run.name=…), or remove that directory.",
        )


_PATIENCE = 5.0  # seconds in which a repeated interrupt is taken for the same one


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM end the stream in good order, wherever it is.

    A handler of our own keeps asyncio from installing one that waits for the running callback, i.e. for the model. A second
    signal soon after the first does not disturb the good order.
    """
    last = float("-inf")

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last > _PATIENCE:
            last = time.monotonic()
            raise KeyboardInterrupt(signal.Signals(number).name)

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
