"""`python -m tests.support.play_toy CONFIG.json`: play one stream in this process, the toy environment being registered."""

from __future__ import annotations

import json
import sys

from envs.catalogue import CATALOGUE
from harness.cli import guarded
from harness.sweep import play_point

if __name__ == "__main__":
    CATALOGUE["toy"] = "tests.support.toy:Toy"
    with open(sys.argv[1]) as file:
        content = json.load(file)
    sys.exit(guarded(lambda: play_point(content)))
