"""`python -m envs.alfworld`: list, play, oracle, noop (see envs.cli) and generate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from envs import cli
from envs.alfworld.adapter import AlfWorld
from envs.alfworld.data import FAMILIES, OFFICIAL_COUNTS
from envs.alfworld.generate import Recipe, generate


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="new directory for the games")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-family", type=int, default=4, metavar="N", help="games of each family (default 4)")
    parser.add_argument("--families", default=",".join(FAMILIES), help="comma-separated; default: all six")
    parser.add_argument(
        "--repeat", type=int, default=1, help="games in a row that share goal, room and places (default 1: all new)"
    )
    parser.add_argument("--split", default="valid_unseen", choices=list(OFFICIAL_COUNTS))


def _generate(arguments: argparse.Namespace) -> None:
    families = tuple(name.strip() for name in arguments.families.split(",") if name.strip())
    recipe = Recipe(arguments.seed, arguments.per_family, families, arguments.repeat, arguments.split)
    total = recipe.per_family * len(set(recipe.families))
    with cli.progress(total, "game") as advance:
        generate(arguments.out, recipe, lambda _: advance())
    print(f"{total} games in {arguments.out}.")
    print(f"Play them with: ALFWORLD_DATA={arguments.out} python -m envs.alfworld list --split {recipe.split}")


GENERATE = cli.Command("generate", "make games of all six families", _add_arguments, _generate)

if __name__ == "__main__":
    sys.exit(cli.main(AlfWorld, extra=(GENERATE,)))
