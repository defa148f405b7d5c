"""`memarena export`: tasks, steps and model calls as tables, and transcripts as logs of Inspect, for other people's tools."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.report.measure import Run
from harness.store.view import RunView

FORMATS = ("csv", "parquet", "inspect")
Write = Callable[[Sequence[Run], Path], dict[str, int]]


def export(runs: Sequence[RunView], format: str, output: Path) -> dict[str, Any]:
    """Write `runs` into the folder `output`; the files with their number of rows (or samples).

    Raises UserError where a file would be overwritten, SetupError where Parquet's library is missing. Then nothing is written.
    """
    held = [Run(view) for view in runs]
    if len({run.view.directory.resolve() for run in held}) < len(held):
        raise UserError("A run is named twice.", "Name every run once.")
    if output.exists() and not output.is_dir():
        raise UserError(f"{output} is no folder.", "Name a folder with -o.")
    write = _writer(format)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=output) as scratch:
        counts = write(held, Path(scratch))
        for name in counts:
            if (output / name).exists():
                raise UserError(f"{output / name} exists.", "Name another folder with -o.")
        for name in counts:
            os.rename(Path(scratch) / name, output / name)
    return {"folder": str(output), "format": format, "files": counts}


def _writer(format: str) -> Write:
    if format == "inspect":
        from harness.archive.export.inspect_log import write_logs

        return write_logs
    from harness.archive.export.tables import write_tables

    return lambda runs, folder: write_tables(runs, folder, format)


def render(found: Mapping[str, Any]) -> str:
    what = "tasks" if found["format"] == "inspect" else "rows"
    return "\n".join(f"{Path(found['folder']) / name}: {count:,} {what}" for name, count in found["files"].items())
