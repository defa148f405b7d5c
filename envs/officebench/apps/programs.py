"""Other programs: LibreOffice, tesseract and poppler, each in its own folder of the scratch space."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .workspace import Refused


def run(command: Sequence[str], *, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run to the end; the time limit is the sandbox's. Raises Refused where the program is not installed."""
    if shutil.which(command[0]) is None:
        raise Refused(f"The program {command[0]} is not installed here.")
    # tesseract starts as many threads as the machine has processors, which get in each other's way on the sandbox's share of them
    variables = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    return subprocess.run(command, input=stdin, capture_output=True, env=variables, check=False)


def reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last line that a program has complained with, or its exit code."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip().rstrip(".")[:200] if lines else f"code {done.returncode}"


def office_to_pdf(source: Path) -> bytes:
    """A document or workbook as PDF, by LibreOffice. Raises Refused where it cannot be read.

    The profile is new each time: it costs a tenth of a second, and two conversions never meet in one.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / f"file{source.suffix}"
        shutil.copyfile(source, copy)
        profile = f"-env:UserInstallation=file://{folder}/profile"
        options = ["--headless", "--norestore", "--nolockcheck", "--convert-to", "pdf", "--outdir", str(folder / "out")]
        run(["soffice", profile, *options, str(copy)])
        made = folder / "out" / "file.pdf"
        if not made.is_file():
            raise Refused("LibreOffice cannot read this file.")
        return made.read_bytes()
