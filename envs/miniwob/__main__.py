"""`python -m envs.miniwob`: list, play, oracle, noop (see envs.cli)."""

import sys

from envs import cli
from envs.miniwob.adapter import MiniWob

if __name__ == "__main__":
    sys.exit(cli.main(MiniWob))
