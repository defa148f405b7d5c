"""`python -m harness.worker`: one stream of a sweep, in a process of its own; the configuration comes as JSON on stdin."""

from __future__ import annotations

import json
import sys

from harness.cli import guarded


def main() -> int:
    from harness.sweep import play_point

    content = json.load(sys.stdin)
    return guarded(lambda: play_point(content))


if __name__ == "__main__":
    sys.exit(main())
