"""The shell app: bash, with the apps' own rights. Its time limit, and the end of what it leaves running, are the sandbox's.

As in the official app a command that begins with cd changes the folder for the commands and relative paths after it. The first
folder is the workspace (the official one is the root of the file system, where relative paths lead nowhere).
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from .workspace import WORKSPACE, Refused, Workspace

KEPT = 100_000  # bytes of a command's output
# the folder it ended in goes to a file of its own: what a command prints is its own affair
_REMEMBER = "trap 'pwd > \"$MEMARENA_FOLDER\"' EXIT\n"


def command(space: Workspace, arguments: Mapping[str, Any]) -> str:
    line = arguments["command"]
    if isinstance(line, list | tuple):
        line = " ".join(str(part) for part in line)
    if not isinstance(line, str) or not line.strip() or "\0" in line:
        raise Refused("command must be a command line.")
    root = str(space.root)
    line = re.sub(rf"{WORKSPACE}(?![\w.-])", lambda _: root, line)  # it lies elsewhere where the sandbox is only a process
    moves = line.lstrip().startswith("cd")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        after = f"{folder}/folder"
        variables = {**os.environ, "MEMARENA_FOLDER": after}
        # output goes to a file, not a pipe: a process left in the background must not hold up the answer
        done = subprocess.run(
            ["bash", "-c", (_REMEMBER if moves else "") + line],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            check=False,
        )
        output.seek(0)
        shown = output.read(KEPT).decode("utf-8", "replace").strip().replace(root, WORKSPACE)
        if moves and os.path.isfile(after):
            with open(after, encoding="utf-8") as file, contextlib.suppress(OSError):  # it may have removed where it went
                os.chdir(file.read().rstrip("\n"))
    if done.returncode != 0:
        raise Refused(f"{shown}\nThe command ended with code {done.returncode}.".strip())
    return shown or "The command ran and printed nothing."
