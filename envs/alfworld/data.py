"""ALFWorld's game files: where they lie, which of them belong to a split, and in which order they are played.

The official order needs no index file. AlfredTWEnv collects the games of a split, and TextWorld shuffles what it collected with
NumPy's legacy generator, seed 1234. Sorting the paths first makes that reproducible, and the result for `valid_unseen` is
exactly the 134 rows of `alfworld_tasks_suffix.json`, the list that the published comparisons use
(tests/official/test_alfworld.py). The same rule orders every split, and our generated games.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.contracts import Problem
from harness.errors import EnvironmentCrashed, SetupError

Grammar = Literal["move", "put"]

FAMILIES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
# How many games of these six families each split of the official data has; an index or a seed means nothing in any other set.
OFFICIAL_COUNTS: Mapping[str, int] = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
GAMES = "json_2.1.1"
MANIFEST = "manifest.json"  # in the root of generated games, and only there
DOWNLOAD = "make data-alfworld"
OR_GENERATED = f"{DOWNLOAD}, or set env.source=generated"
AGAIN = "Remove that directory; then the games are made again."

_GOAL = re.compile(r"Your task is to: (?P<goal>[^\"\\]+?)\.?\s*(?:\\n|\")")


@dataclass(frozen=True)
class Game:
    """One game: `path` of its file, `name` "<family>-<…>/<trial>", the goal sentence, and the sha256 of the file."""

    path: Path
    name: str
    family: str
    goal: str
    grammar: Grammar
    sha256: str


def data_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Where official data is looked for: `$HARNESS_DATA/alfworld`, else `$ALFWORLD_DATA`, else alfworld-download's default."""
    if environ.get("HARNESS_DATA"):
        return Path(environ["HARNESS_DATA"]) / "alfworld"
    if environ.get("ALFWORLD_DATA"):
        return Path(environ["ALFWORLD_DATA"])
    return Path("~/.cache/alfworld").expanduser()


def has_games(root: Path, split: str) -> bool:
    """Whether any game of `split` lies below `root`; looks at names only and stops at the first."""
    return next((root / GAMES / split).glob("*/*/game.tw-pddl"), None) is not None


def is_generated(root: Path) -> bool:
    """Whether the games below `root` are ours."""
    return (root / MANIFEST).is_file()


def problems(root: Path, split: str) -> list[Problem]:
    """What keeps the official data of `split` below `root` from being played; looks at names only."""
    if is_generated(root):
        return [Problem(f"The games in {root} are generated ones, not ALFWorld's own.", OR_GENERATED)]
    folder, wanted = root / GAMES / split, OFFICIAL_COUNTS.get(split)
    found = len(game_names(root, split))
    if not found:
        return [Problem(f"There are no ALFWorld games in {folder}.", OR_GENERATED)]
    if wanted is not None and found < wanted:
        # with games missing, all later ones would have other indices and seeds than everybody else's
        return [Problem(f"{folder} holds {found} of the split's {wanted} games.", DOWNLOAD)]
    return []


def game_names(root: Path, split: str) -> list[str]:
    """The names of the games of the six families below `root`, sorted."""
    folder = root / GAMES / split
    names = (path.parent.relative_to(folder).as_posix() for path in folder.glob("*/*/game.tw-pddl"))
    return sorted(name for name in names if family_of(name) is not None)


def read_manifest(root: Path) -> dict[str, Any]:
    """Who made the generated games below `root`, and from what. Raises SetupError where that cannot be read."""
    try:
        return dict(json.loads((root / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(
            f"{root / MANIFEST} cannot be read ({type(error).__name__}).", f"Remove {root} and make the games again."
        ) from error


def official_order(names: Sequence[str]) -> list[str]:
    """`names` ("<family>-<…>/<trial>") as the benchmark plays them: sorted, then shuffled by TextWorld's rule."""
    import numpy as np

    ordered = sorted(names)
    # the legacy generator's stream is frozen by NumPy's policy (NEP 19), and it is the one TextWorld uses
    np.random.RandomState(1234).shuffle(ordered)
    return ordered


def family_of(name: str) -> str | None:
    """The task family in a game's directory name; None for kinds that the text version leaves out (sliced, movable)."""
    directory = name.split("/", 1)[0]
    if "Sliced" in directory or "movable" in directory:
        return None
    return next((family for family in FAMILIES if directory.startswith(family + "-")), None)


def parse_game(content: bytes, where: str) -> dict[str, Any]:
    """The game file as a dictionary. Raises SetupError where it is cut short or not a game."""
    try:
        game: Any = json.loads(content)
        if not all(isinstance(game[key], str) for key in ("pddl_domain", "grammar", "pddl_problem")):
            raise TypeError("a part is not text")
        solution = game.get("walkthrough") or []
        if not isinstance(solution, list) or not all(isinstance(command, str) for command in solution):
            raise TypeError("the walkthrough is no list of commands")
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(
            f"{where} is not an ALFWorld game ({type(error).__name__}: {error}).", f"Fetch it again: {DOWNLOAD}"
        ) from error
    return dict(game)


def _read(root: Path, split: str, name: str) -> Game | None:
    """The game `name`, or None where its file says that it cannot be solved."""
    path = root / GAMES / split / name / "game.tw-pddl"
    content = _content(path)
    game = parse_game(content, str(path))
    if not game.get("solvable"):
        return None
    found = _GOAL.search(game["grammar"])
    if found is None:
        raise SetupError(f"{path} states no goal.", f"Fetch it again: {DOWNLOAD}")
    return Game(
        path=path,
        name=name,
        family=family_of(name) or "",
        goal=found["goal"].strip(),
        grammar="move" if "move {o} to {r}" in game["grammar"] else "put",
        sha256=hashlib.sha256(content).hexdigest(),
    )


def read_games(root: Path, split: str) -> list[Game]:
    """The games of `split` below `root` in the official order.

    Raises SetupError where there are none, or where an official split is not complete (see `problems`).
    """
    generated = is_generated(root)
    games = [_read(root, split, name) for name in game_names(root, split)]
    if generated and (damage := damage_of(root)):
        raise SetupError(f"The generated games in {root} are damaged: {damage}.", AGAIN)
    by_name = {game.name: game for game in games if game is not None}
    wanted = len(by_name) if generated else OFFICIAL_COUNTS.get(split)
    if not by_name or len(by_name) != wanted:
        raise SetupError(f"{root / GAMES / split} holds {len(by_name)} solvable games instead of {wanted}.", f"Run: {DOWNLOAD}")
    return [by_name[name] for name in official_order(list(by_name))]


def digest(games: Sequence[Game]) -> str:
    """The sha256 over the games' names and file digests, in order."""
    text = "".join(f"{game.name} {game.sha256}\n" for game in games)
    return hashlib.sha256(text.encode()).hexdigest()


def content_of(game: Game) -> bytes:
    """The game's file. Raises EnvironmentCrashed where it is gone, or is another than when the games were read."""
    try:
        content = _content(game.path)
    except SetupError as error:
        raise EnvironmentCrashed(error.message, error.hint) from error
    if hashlib.sha256(content).hexdigest() != game.sha256:
        raise EnvironmentCrashed(f"{game.path} has changed since the games were read.", "Put it back.")
    return content


def walkthrough(game: Game) -> list[str]:
    """The stored solution: commands that win the game from its start. Raises like `content_of`."""
    return list(parse_game(content_of(game), str(game.path)).get("walkthrough") or [])


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.", "Put it back, or mend its permissions.") from error


# --- generated games --------------------------------------------------------------------------------------------------
def files_below(root: Path) -> dict[str, str]:
    """The sha256 of every file of a game below `root`, by its path from there. Raises OSError."""
    paths = sorted(path for path in (root / GAMES).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def damage_of(root: Path) -> str:
    """How the generated games below `root` differ from those that were made; empty where they do not."""
    try:
        wanted = read_manifest(root).get("files")
        found = files_below(root)
    except SetupError as error:
        return error.message.rstrip(".")
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    if not isinstance(wanted, dict):
        return "their manifest lists no files"
    missing, other = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    changed = [name for name in sorted(wanted.keys() & found.keys()) if wanted[name] != found[name]]
    for names, how in ((missing, "missing"), (changed, "changed"), (other, "too many")):
        if names:
            return f"{len(names)} of {len(wanted)} files {how}, first {names[0]}"
    return ""
