"""`python -m envs.webarena_local`: list, play, oracle, noop (see envs.cli)."""

from __future__ import annotations

import sys

from envs import cli
from envs.webarena_local.adapter import WebArenaLocal

if __name__ == "__main__":
    sys.exit(cli.main(WebArenaLocal))
