"""`python -m envs.bbeh`: list, play, oracle, noop (see envs.cli)."""

import sys

from envs import cli
from envs.bbeh.adapter import Bbeh

if __name__ == "__main__":
    sys.exit(cli.main(Bbeh))
