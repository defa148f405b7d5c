"""TextWorld's PDDL engine, made quick and harmless without changing what it says.

The engine translates each game to a planning task (`fast_downward.pddl2sas`) and expands every text from a grammar that it
parses again each time. While one of our calls is inside the engine, `_fast_path` puts memoised versions of its slow functions
in place and takes them away again; nothing stays patched in between. Measured on official games, CPU time on one slow core:
load and reset 1.41 s → 0.25 s, step 43 ms → 4 ms, with the identical trace (tests/envs/test_alfworld_engine.py).

The engine's manners that this module makes up for: `pddl2sas` overwrites `sys.argv` and redirects `sys.stdout` for the whole
process; none of it is thread-safe; importing `alfworld` creates the directory `$ALFWORLD_DATA`; every environment maps a copy
of the planner's library that can never be unmapped (unmapping it crashes the interpreter at exit), hence `EnginePool`.
"""

from __future__ import annotations

import gc
import io
import os
import random
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

from harness.errors import EnvironmentCrashed, SetupError

T = TypeVar("T")

# sys.argv, sys.stdout and the patched functions belong to the whole process, so their guard does too.
_ENGINE_LOCK = threading.RLock()

INSTALL = "pip install '.[alfworld]'"


@dataclass(frozen=True)
class View:
    """What the engine shows after a reset or a command: text, admissible commands (sorted), and whether the goal holds."""

    feedback: str
    admissible: tuple[str, ...]
    won: bool


class _Memo:
    """A bounded least-recently-used table; not locked, since it is only used inside `_ENGINE_LOCK`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._items:
            self._items[key] = make()
            if len(self._items) > self._size:
                self._items.popitem(last=False)
        self._items.move_to_end(key)
        value: T = self._items[key]
        return value


@dataclass(frozen=True)
class _Memos:
    """The tables of one engine: planning tasks are large and few, parsed expressions small and many."""

    tasks: _Memo
    symbols: _Memo
    queries: _Memo

    @classmethod
    def fresh(cls) -> _Memos:
        return cls(_Memo(2), _Memo(20_000), _Memo(2_000))


class _ThreadCapture(io.TextIOBase):
    """A stdout that swallows what the thread that made it writes, and hands on what other threads write."""

    def __init__(self, real: Any) -> None:
        self._real, self._owner, self._text = real, threading.get_ident(), io.StringIO()

    def write(self, text: str) -> int:
        target = self._text if threading.get_ident() == self._owner else self._real
        return int(target.write(text))

    def flush(self) -> None:
        if threading.get_ident() != self._owner:
            self._real.flush()

    def getvalue(self) -> str:
        return self._text.getvalue()


class _CapturingStdout(list[str]):
    """Stands in for `fast_downward.interface.CapturingStdout`, which takes the output of all threads away."""

    def __enter__(self) -> _CapturingStdout:
        self._stdout = sys.stdout
        self._capture = _ThreadCapture(self._stdout)
        sys.stdout = self._capture
        return self

    def __exit__(self, *_: object) -> None:
        self.extend(self._capture.getvalue().splitlines())
        sys.stdout = self._stdout


@contextmanager
def _guarded() -> Iterator[None]:
    """One caller at a time, with `sys.argv` and the output put back afterwards, whatever happens inside.

    Where a stream is closed (`>&-`) Python has None in its place; the engine wants something to write to.
    """
    with _ENGINE_LOCK:
        argv, stdout, stderr = sys.argv, sys.stdout, sys.stderr
        sys.stdout, sys.stderr = stdout or io.StringIO(), stderr or io.StringIO()
        try:
            yield
        finally:
            sys.argv, sys.stdout, sys.stderr = argv, stdout, stderr


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection inside: translating a game makes a million objects that all stay alive, a third of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """RUN-R3: `random` and `numpy.random` start from the case seed inside, and are as they were afterwards."""
    import numpy as np

    state, legacy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(legacy)


@contextmanager
def _fast_path(memos: _Memos) -> Iterator[None]:
    """Memoised versions of the engine's slow pure functions, for the duration of the block.

    - `pddl2sas`: kept for the last two games. Its second, optimised translation only serves the planner's hints, which we never
      ask for, so the first one is handed out instead.
    - parsing of grammar symbols and of queries: the same few hundred texts at every step. Symbols are copied when handed out,
      since the engine attaches a context to them; queries are never changed.
    - `copy_context`: copied deeply by the engine, but only ever changed at the top level.
    """
    import fast_downward
    import fast_downward.interface
    from textworld.envs.pddl import textgen
    from textworld.logic import Rule

    translate, parse = fast_downward.pddl2sas, textgen._parse_and_convert

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        return memos.tasks.get((domain, problem), lambda: translate(domain, problem, verbose=verbose))

    def parse_and_convert(text: str, **options: Any) -> Any:
        return deepcopy(memos.symbols.get((text, *sorted(options.items())), lambda: parse(text, **options)))

    def parse_conjunctive_query(expression: str) -> Any:
        return memos.queries.get(expression, lambda: Rule.parse_conjunctive_query(expression))

    def copy_context(context: dict[str, Any]) -> dict[str, Any]:
        return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}

    with (
        patch.object(fast_downward, "pddl2sas", pddl2sas),
        patch.object(fast_downward.interface, "CapturingStdout", _CapturingStdout),
        patch.object(textgen, "_parse_and_convert", parse_and_convert),
        patch.object(textgen, "Rule", SimpleNamespace(parse_conjunctive_query=parse_conjunctive_query)),
        patch.object(textgen, "copy_context", copy_context),
    ):
        yield


@contextmanager
def _without_data_folder() -> Iterator[None]:
    """Import `alfworld` without the directory that its import creates and without the variable that it sets."""
    before = os.environ.get("ALFWORLD_DATA")
    wanted = before or os.path.expanduser("~/.cache/alfworld")
    first = "alfworld" not in sys.modules
    # The import makes this directory; one that exists already stands in for it, and our caller's value is put back below.
    os.environ["ALFWORLD_DATA"] = wanted if os.path.isdir(wanted) else tempfile.gettempdir()
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("ALFWORLD_DATA", None)
        else:
            os.environ["ALFWORLD_DATA"] = before
        if first:
            for name in ("alfworld", "alfworld.info"):
                if name in sys.modules:
                    sys.modules[name].ALFWORLD_DATA = wanted  # type: ignore[attr-defined]


def _make_environment() -> Any:
    """A new TextWorld environment with its own copy of the planner's library."""
    try:
        with _guarded(), _without_data_folder():
            import textworld
            from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
            from textworld.envs import PddlEnv

            infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
            return AlfredInfos(AlfredDemangler(PddlEnv(infos)))
    except ImportError as error:
        raise SetupError(f"ALFWorld's engine cannot be imported: {error}.", f"Run: {INSTALL}") from error


class Engine:
    """One TextWorld environment, which plays one game at a time. `fast=False` leaves the engine as it comes (for tests)."""

    def __init__(self, *, fast: bool = True) -> None:
        self._memos = _Memos.fresh() if fast else None
        self._env = _make_environment()

    @contextmanager
    def _inside(self, what: str) -> Iterator[None]:
        """Everything that enters the engine goes through here. Raises EnvironmentCrashed for whatever comes out of it."""
        try:
            with _guarded():
                if self._memos is None:
                    yield
                else:
                    with _fast_path(self._memos):
                        yield
        except Exception as error:
            raise EnvironmentCrashed(f"ALFWorld's engine failed at {what}: {type(error).__name__}: {error}.") from error

    @staticmethod
    def _view(state: Any) -> View:
        return View(str(state.feedback), tuple(state.admissible_commands), bool(state.won))

    def start(self, game: Path, seed: int) -> View:
        """Load `game` in a fresh state. Raises EnvironmentCrashed where the file or the engine is at fault."""
        with self._inside(f"loading {game}"), _seeded(seed), _uncollected():
            self._env.load(str(game))
            return self._view(self._env.reset())

    def step(self, command: str) -> View:
        """Execute `command`; one that is not admissible changes nothing. TextWorld's own step limits do not apply here."""
        with self._inside(f"command {command!r}"):
            state, _, _ = self._env.step(command)
            return self._view(state)


class EnginePool:
    """Engines to borrow: as many as there are games in play at once, used again afterwards (loading replaces all state)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Engine] = []

    @contextmanager
    def borrow(self) -> Iterator[Engine]:
        """An engine for the duration of the block. One that failed is not handed out again."""
        with self._lock:
            engine = self._idle.pop() if self._idle else None
        engine = engine or Engine()
        try:
            yield engine
        except EnvironmentCrashed:
            raise
        except BaseException:
            self._give_back(engine)
            raise
        self._give_back(engine)

    def _give_back(self, engine: Engine) -> None:
        with self._lock:
            self._idle.append(engine)
