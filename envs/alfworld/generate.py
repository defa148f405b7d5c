"""Real ALFWorld games without a download: made from the domain files of the `alfworld` package, deterministic by seed.

Every game is played to its end in the engine before it is kept: its walkthrough must consist of admissible commands and win
with its last one. A set of games is a directory laid out as the official data, with a manifest beside it that says who made it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from envs.alfworld import generate_world
from envs.alfworld.data import AGAIN, FAMILIES, GAMES, MANIFEST, damage_of, files_below
from envs.alfworld.engine import Engine
from envs.alfworld.generate_files import Domain, game_files, sentence
from harness.errors import ConfigError, EnvironmentCrashed, SetupError
from harness.seeds import rng

GENERATOR = "memarena-alfworld"
GENERATOR_VERSION = 1  # raise it whenever the same seed gives other bytes
_ABANDONED = 3600.0  # seconds after which a half-made set is certainly nobody's


@dataclass(frozen=True)
class Recipe:
    """What a set of games is made from.

    `per_family` games of each of `families`. `repeat` games at a time share one goal in one room with the wanted objects in
    the same places (only the other objects and all object numbers differ), so that there is something to remember; 1 makes
    every game new.
    """

    seed: int = 0
    per_family: int = 4
    families: tuple[str, ...] = FAMILIES
    repeat: int = 2
    split: str = "valid_unseen"

    def __post_init__(self) -> None:
        if self.per_family < 1 or self.repeat < 1:
            raise ConfigError("Generated games: the number per family and repeat must be 1 or more.")
        if not self.families:
            raise ConfigError("Generated games: no family is chosen.", f"There are: {', '.join(FAMILIES)}.")
        for family in self.families:
            if family not in FAMILIES:
                raise ConfigError(f"Generated games: unknown family {family!r}.", f"There are: {', '.join(FAMILIES)}.")

    def manifest(self, domain: Domain) -> dict[str, object]:
        """What goes into the manifest, and decides whether two sets are the same."""
        return {
            "generator": GENERATOR,
            "version": GENERATOR_VERSION,
            "domain": domain.sha256,
            **asdict(self),
            "families": sorted(set(self.families)),
        }


def _worlds(recipe: Recipe) -> Iterator[tuple[str, str, generate_world.World, str]]:
    """(directory, trial, room, goal sentence) of every game, family by family."""
    for family in sorted(set(recipe.families)):
        path = ("alfworld", "generate", recipe.split, family)
        goals = generate_world.goals_of(family)
        rng(recipe.seed, *path).shuffle(goals)
        for number in range(recipe.per_family):
            round_, trial = divmod(number, recipe.repeat)
            goal = goals[round_ % len(goals)]
            trial_rng = rng(recipe.seed, *path, "trial", number)
            world = generate_world.build(goal, rng(recipe.seed, *path, "room", round_), trial_rng)
            directory = f"{family}-{goal.thing}-None-{goal.target}-{900 + round_}"
            yield directory, f"trial_G{recipe.seed}_{round_:04d}_{trial:02d}", world, sentence(goal, trial_rng)


def verify(game: Path, walkthrough: list[str], engine: Engine) -> None:
    """Play `walkthrough`. Raises EnvironmentCrashed unless it wins, with its last command, by admissible commands only."""
    view = engine.start(game, 0)
    for command in walkthrough:
        if view.won or command not in view.admissible:
            raise EnvironmentCrashed(f"The generated game {game} cannot be won as planned: stopped before {command!r}.")
        view = engine.step(command)
    if not view.won:
        raise EnvironmentCrashed(f"The generated game {game} is not won by its walkthrough.")


def _fill(folder: Path, recipe: Recipe, domain: Domain, engine: Engine, progress: Callable[[str], object]) -> None:
    for directory, trial, world, said in _worlds(recipe):
        target = folder / GAMES / recipe.split / directory / trial
        target.mkdir(parents=True)
        for name, content in game_files(world, trial, said, domain).items():
            (target / name).write_bytes(content)
        verify(target / "game.tw-pddl", generate_world.walkthrough(world), engine)
        progress(f"{directory}/{trial}")
    manifest = {**recipe.manifest(domain), "files": files_below(folder)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def generate(out: Path, recipe: Recipe, progress: Callable[[str], object] = lambda name: None) -> None:
    """Make the games of `recipe` in `out`, which must be empty or absent.

    `out` appears whole or not at all: it is made under another name beside its place and renamed. Raises SetupError where `out`
    holds something or cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SetupError(f"{out} is not empty.", "Name a new directory.")
    domain, engine = Domain.load(), Engine()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{out.name}.building-", dir=out.parent))
    except OSError as error:
        raise SetupError(f"{out} cannot be made: {error.strerror}.", "Name a directory that you may write to.") from error
    try:
        _fill(building, recipe, domain, engine, progress)
        building.chmod(0o755)  # mkdtemp makes it private
        os.rename(building, out)
    except OSError as error:
        raise SetupError(
            f"The games could not be written to {out}: {error.strerror}.", "Look for space and permissions."
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def cache_path(cache_dir: Path, recipe: Recipe) -> Path:
    """Where the games of `recipe` lie in the cache: another generator, domain or recipe is another directory."""
    key = hashlib.sha256(json.dumps(recipe.manifest(Domain.load()), sort_keys=True).encode()).hexdigest()[:16]
    return cache_dir / f"alfworld-games-{key}"


def default_cache() -> Path:
    """The user's cache directory for MemArena (XDG)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "memarena"


def ensure(cache_dir: Path, recipe: Recipe) -> Path:
    """The games of `recipe` from the cache, made first where they are missing, and again where they are not as they were made.

    Two processes may do so at once: each builds its own, the first rename wins, the other's copy is thrown away.
    """
    path = cache_path(cache_dir, recipe)
    if path.exists() and damage_of(path):
        _put_aside(path)
    if path.exists():
        return path
    _sweep(cache_dir)
    try:
        generate(path, recipe)
    except SetupError:
        if damage_of(path):  # otherwise another process was quicker: its games are ours, byte for byte
            raise
    return path


def _put_aside(path: Path) -> None:
    """Take a damaged set of games out of the way; another process may do so too."""
    try:
        aside = tempfile.mkdtemp(prefix=f".{path.name}.building-", dir=path.parent)
        with suppress(FileNotFoundError):
            os.rename(path, Path(aside) / "damaged")
    except OSError as error:
        raise SetupError(f"The games in {path} are damaged: {damage_of(path)}.", AGAIN) from error
    shutil.rmtree(aside, ignore_errors=True)


def _sweep(cache_dir: Path) -> None:
    """Remove what killed processes left half-made."""
    for left in cache_dir.glob(".alfworld-games-*.building-*"):
        with suppress(FileNotFoundError):  # its maker may finish, or another process sweep it, just now
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
