"""`python -m harness.worker`: one stream of a sweep, in a process of its own; the configuration is a line of JSON on stdin."""

from __future__ import annotations

import json
import os
import sys

from harness.cli import guarded


def main() -> int:
    from harness.run import interruptible
    from harness.sweep import end_with_parent, play_point

    def work() -> int:
        with interruptible():
            # a duplicate: libraries that close or read stdin shall not end us
            stdin = os.fdopen(os.dup(0))
            content = json.loads(stdin.readline())
            end_with_parent(stdin)
            return play_point(content)

    return guarded(work)


if __name__ == "__main__":
    sys.exit(main())
