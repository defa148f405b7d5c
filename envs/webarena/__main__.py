"""`python -m envs.webarena`: list, play, noop (see envs.cli). There is no stored solution of the official tasks."""

import sys

from envs import cli
from envs.webarena.adapter import WebArena

if __name__ == "__main__":
    sys.exit(cli.main(WebArena))
