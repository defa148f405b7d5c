"""`python -m envs.kramabench`: list, play, oracle, noop (see envs.cli)."""

import sys

from envs import cli
from envs.kramabench.adapter import KramaBench

if __name__ == "__main__":
    sys.exit(cli.main(KramaBench))
