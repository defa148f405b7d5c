"""ALFWorld as a MemArena environment: the 134 official household tasks, or generated ones where the data is not installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from envs.alfworld import data
from envs.alfworld.data import FAMILIES, Game
from envs.alfworld.engine import INSTALL, EnginePool
from envs.alfworld.generate import Recipe, default_cache, ensure
from envs.alfworld.session import AlfWorldSession
from harness.contracts import ActionMode, Environment, Problem, Task
from harness.errors import ConfigError, EnvironmentCrashed, SetupError

_PACKAGES = {"alfworld": "alfworld", "textworld": "textworld", "fast_downward": "fast-downward-textworld"}
_SOURCES = ("auto", "official", "generated")


@dataclass(frozen=True)
class AlfWorldConfig:
    """Values of conf/env/alfworld.yaml.

    `split` is train, valid_seen or valid_unseen; `source` is official, generated, or auto: the games of the data root where
    there are any, else generated ones. `max_steps` bounds an attempt; `few_shots` is 1 for a worked example in the prompt, or
    0. The next four fields describe the generated games (see `generate.Recipe`); `cache_dir` is where these are kept (null:
    the user's cache directory).
    """

    name: str = "alfworld"
    split: str = "valid_unseen"
    source: str = "auto"
    max_steps: int = 30
    few_shots: int = 1
    generated_seed: int = 0
    games_per_family: int = 4
    families: list[str] = field(default_factory=lambda: list(FAMILIES))
    repeat: int = 2
    cache_dir: str | None = field(default=None, metadata={"identity": False})

    def __post_init__(self) -> None:
        for key, value, known in (("split", self.split, tuple(data.OFFICIAL_COUNTS)), ("source", self.source, _SOURCES)):
            if value not in known:
                raise ConfigError(f"env.{key} is {value!r}.", f"There are: {', '.join(known)}.")
        if self.max_steps < 1:
            raise ConfigError(f"env.max_steps is {self.max_steps}.", "Use a positive number; the published comparisons use 30.")
        if self.few_shots not in (0, 1):
            raise ConfigError(f"env.few_shots is {self.few_shots}.", "Use 1, or 0 for none.")

    @property
    def recipe(self) -> Recipe:
        """The generated games. Raises ConfigError where they cannot be made."""
        return Recipe(self.generated_seed, self.games_per_family, tuple(self.families), self.repeat, self.split)


class AlfWorld(Environment):
    """Text games of household chores. Making one reads nothing; the engine is imported when the first game is opened."""

    Config: ClassVar[type[AlfWorldConfig]] = AlfWorldConfig
    name: ClassVar[str] = "alfworld"
    version: ClassVar[str] = "1-0"
    action_mode: ActionMode = "line"

    def __init__(self, config: AlfWorldConfig | None = None) -> None:
        self._config = config or AlfWorldConfig()
        self.max_steps = self._config.max_steps
        self._recipe = self._config.recipe
        self._root = data.data_root()
        self._pool = EnginePool()

    @cached_property
    def _installed_games(self) -> bool:
        """Whether the games of the data root are played, which with `auto` may be a set that `generate --out` made.

        Decided once, so that data which appears later cannot change a run under way.
        """
        if self._config.source != "auto":
            return self._config.source == "official"
        return data.has_games(self._root, self._config.split)

    @property
    def _official(self) -> bool:
        return self._installed_games and not data.is_generated(self._root)

    def _data_problems(self) -> list[Problem]:
        """What is wrong with the games of the data root, where these are to be played."""
        wanted = self._official or self._config.source == "official"
        return data.problems(self._root, self._config.split) if wanted else []

    @cached_property
    def _folder(self) -> Path:
        """The root of the games in play. Raises SetupError where there are none; makes generated ones that are missing."""
        for problem in self._data_problems():
            raise SetupError(problem.what, f"Run: {problem.fix}.")
        if self._installed_games:
            return self._root
        cache = Path(self._config.cache_dir).expanduser() if self._config.cache_dir else default_cache()
        return ensure(cache, self._recipe)

    @cached_property
    def _games(self) -> list[Game]:
        """All games in order; reads every file once (0.1 s for 134 games). Raises SetupError where they are not in order."""
        return data.read_games(self._folder, self._config.split)

    @cached_property
    def _by_id(self) -> dict[str, Game]:
        return {game.name: game for game in self._games}

    def _game(self, task: Task) -> Game:
        if task.task_id not in self._by_id:
            raise ConfigError(f"{task.task_id!r} is no task of ALFWorld's split {self._config.split}.")
        return self._by_id[task.task_id]

    @property
    def data_digest(self) -> str:
        """sha256 over the names and contents of the games, in order. Makes the generated games where they are missing."""
        return data.digest(self._games)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Which games these are, in which grammar and order, and what plays them. Holds nothing of this machine."""
        known = {name: importlib.metadata.version(name) for name in _PACKAGES.values() if _installed(name)}
        return {
            "source": "official" if self._official else "generated",
            "split": self._config.split,
            "games": len(self._games),
            "grammar": "+".join(sorted({game.grammar for game in self._games})),
            "order": "sorted paths, shuffled by numpy RandomState(1234)",
            "packages": known,
            **({} if self._official else {"generator": self._generator}),
        }

    @property
    def _generator(self) -> dict[str, Any]:
        """Who made the generated games; the digest of the data stands for the list of their files."""
        return {key: value for key, value in data.read_manifest(self._folder).items() if key != "files"}

    def check(self) -> list[Problem]:
        """Missing packages and missing data, with the command that mends each. Looks at names only, makes nothing."""
        missing = [name for module, name in _PACKAGES.items() if importlib.util.find_spec(module) is None]
        problems = [Problem(f"ALFWorld needs packages that are not installed: {', '.join(missing)}.", INSTALL)] if missing else []
        return problems + self._data_problems()

    def tasks(self) -> Sequence[Task]:
        """All games of the split in the official order; `index` is the official index."""
        return [
            Task(
                task_id=game.name,
                index=index,
                goal=f"{game.goal}.",
                key=f"{game.family}-{game.goal}",
                family=game.family,
                group=game.family,
            )
            for index, game in enumerate(self._games)
        ]

    @contextmanager
    def open(self, task: Task, seed: int) -> Iterator[AlfWorldSession]:
        """A fresh world for `task`; closed at the end of the block. Raises EnvironmentCrashed where the engine fails
        or the game's file is gone."""
        game = self._game(task)
        data.content_of(game)
        with self._pool.borrow() as engine:
            view = engine.start(game.path, seed)
            if view.won:
                raise EnvironmentCrashed(f"The game {game.name} is won before it begins.")
            session = AlfWorldSession(
                engine, task, view, grammar=game.grammar, max_steps=self.max_steps, few_shots=self._config.few_shots
            )
            try:
                yield session
            finally:
                session.close()

    def oracle(self, task: Task) -> Sequence[str] | None:
        """The walkthrough stored with the game; None where it has none."""
        return data.walkthrough(self._game(task)) or None


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
