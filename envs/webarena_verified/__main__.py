"""`python -m envs.webarena_verified`: list, play, noop (see envs.cli); there is no oracle."""

from __future__ import annotations

import sys

from envs import cli
from envs.webarena_verified.adapter import WebArenaVerified

if __name__ == "__main__":
    sys.exit(cli.main(WebArenaVerified))
