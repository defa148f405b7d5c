"""Fetch BBEH-mini (`make data-bbeh`): the 460 questions, and the full benchmark to tell the category of each.

    python scripts/data_bbeh.py [--root DIR]

DIR defaults to where the environment looks for it: `$HARNESS_DATA/bbeh`, else the user's cache. The questions are checked against
their digest; a category is that of the file of the full benchmark that has the same question. An interrupted download continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

SOURCE = "https://raw.githubusercontent.com/google-deepmind/bbeh/main/bbeh"
MINI_SHA256 = "14e77b3d6be68faa008d268abf53b1f8d2420ffdd762504a304dafc3f8d43026"
CATEGORIES = (
    "boardgame_qa", "boolean_expressions", "buggy_tables", "causal_understanding", "disambiguation_qa", "dyck_languages",
    "geometric_shapes", "hyperbaton", "linguini", "movie_recommendation", "multistep_arithmetic", "nycc", "object_counting",
    "object_properties", "sarc_triples", "shuffled_objects", "spatial_reasoning", "sportqa", "temporal_sequence",
    "time_arithmetic", "web_of_lies", "word_sorting", "zebra_puzzles",
)  # fmt: skip


def label(examples: Sequence[dict[str, Any]], full: dict[str, Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The questions with their category and their index in it. Raises ValueError where a question is in no category."""
    places = {row["input"]: (name, index) for name, rows in full.items() for index, row in enumerate(rows)}
    labelled = []
    for number, example in enumerate(examples):
        if example["input"] not in places:
            raise ValueError(f"question {number} of the mini set is in none of the full files")
        name, index = places[example["input"]]
        labelled.append({"task": f"bbeh_{name}", "index": index, **example})
    return labelled


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]  # so that it also runs from an uninstalled checkout
    from envs.bbeh.adapter import default_directory
    from scripts.download import fetch

    parser = argparse.ArgumentParser(description="Fetch BBEH-mini and check it.")
    parser.add_argument("--root", type=Path, default=default_directory(), help="where to put it (default: %(default)s)")
    parser.add_argument("--source", default=SOURCE, help="a mirror with the same layout")
    arguments = parser.parse_args(argv)
    root: Path = arguments.root
    try:
        with httpx.Client(timeout=60) as client:
            fetch(client, f"{arguments.source}/mini/data.json", root / "mini.json", MINI_SHA256)
            full = {}
            for name in CATEGORIES:
                path = root / "full" / f"{name}.json"
                fetch(client, f"{arguments.source}/benchmark_tasks/bbeh_{name}/task.json", path)
                full[name] = json.loads(path.read_text())["examples"]
        labelled = label(json.loads((root / "mini.json").read_text())["examples"], full)
        (root / "mini_labeled.json").write_text(json.dumps(labelled, ensure_ascii=False))
    except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
        print(f"error: {type(error).__name__}: {error}. Run this again: what was fetched is kept.", file=sys.stderr)
        return 1
    print(f"BBEH-mini is in {root}: {len(labelled)} questions of {len(CATEGORIES)} categories.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
