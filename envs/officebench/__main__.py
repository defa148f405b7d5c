"""`python -m envs.officebench`: list, play, oracle, noop (see envs.cli)."""

import sys

from envs import cli
from envs.officebench.adapter import OfficeBench

if __name__ == "__main__":
    sys.exit(cli.main(OfficeBench))
