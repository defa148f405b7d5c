"""Which of the 460 questions are for training and which are held out (EMMA, Tables 8 and 9: seed 42, 4 and 16 a category).

The paper names the seed, not the procedure. Ours, the same for everybody: the categories in alphabetical order; of each the 20
positions in the order of the data file, shuffled by `random.Random("42/<category>")`; the first four train. The result is stored
in split.json as positions in the data file, so that nobody's Python can change it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from importlib import resources

SEED, TRAIN_PER_CATEGORY = 42, 4


def sample(categories: Sequence[str]) -> list[int]:
    """The training positions for the categories of all questions, by position; sorted."""
    train: list[int] = []
    for category in sorted(set(categories)):
        positions = [i for i, name in enumerate(categories) if name == category]
        random.Random(f"{SEED}/{category}").shuffle(positions)
        train += positions[:TRAIN_PER_CATEGORY]
    return sorted(train)


def train_positions() -> frozenset[int]:
    """The stored training positions."""
    return frozenset(json.loads(resources.files("envs.bbeh").joinpath("split.json").read_text()))
