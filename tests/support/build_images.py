"""Build the images of the sandboxed environments and of the sandbox's own tests: `python -m tests.support.build_images`.

CI calls it before the tests: two workers would build the same image at the same time, inside a test's time limit.
"""

from __future__ import annotations

from pathlib import Path

from envs.kramabench.adapter import KramaBench
from envs.officebench.adapter import OfficeBench
from harness.sandbox.docker import Docker
from tests.harness.sandbox.test_sandbox import IMAGE


def main() -> None:
    engine = Docker()
    for image in (KramaBench().image, OfficeBench().image, IMAGE):
        print(f"building {image.name} from {Path(str(image.context)).name}", flush=True)
        engine.build(image)


if __name__ == "__main__":
    main()
