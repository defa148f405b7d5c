"""Puts the page together: summary, style and script inline, a compressed chunk a task, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.archive.secrets import Redactor
from harness.report.html.summary import Opening, summary
from harness.report.html.texts import Mask, compressed, inline
from harness.report.html.transcript import Chunks, shown
from harness.report.measure import Run
from harness.store.view import RunView

SCRIPTS = ("base", "data", "charts", "board", "overview", "tasks", "graph", "steps", "task", "compare", "main")
OPENING = 700  # characters of a task's first observation that can be searched without opening it


@dataclass(frozen=True)
class Report:
    """What was written."""

    path: Path
    runs: int
    tasks: int
    transcripts: int
    bytes: int


def build(views: Sequence[RunView], directory: Path, *, title: str = "MemArena report", prompts: bool = True) -> Report:
    """Write `directory`/index.html about these runs; the same runs give the same bytes.

    Secrets and folders of this machine are masked in every text. Raises UserError for a run that cannot be read, OSError where
    the disk refuses.
    """
    runs = [Run(view) for view in views]
    ids = _ids(runs)
    keys = {
        str(e.get("api_key_env")) for run in runs for e in (run.at("models.endpoints") or {}).values() if e.get("api_key_env")
    }
    mask = Mask(Redactor.of_this_machine(keys, *(view.directory.parent for view in views)))
    directory.mkdir(parents=True, exist_ok=True)
    chunks, fresh, openings = directory / ".chunks.tmp", directory / ".index.tmp", dict[str, Opening]()
    path, count = directory / "index.html", 0
    places: list[dict[str, int]] = [{} for _ in runs]
    try:
        with chunks.open("w", encoding="ascii") as out:
            for number, run in enumerate(runs):
                for line in _chunks(run, number, mask, prompts, openings, places[number]):
                    out.write(line)
                    count += 1
        found = summary(runs, ids, openings)
        for made, where in zip(found["runs"], places, strict=True):
            made["transcripts"] = where
        found = mask.tree(found)
        found["prompts"] = prompts
        with fresh.open("w", encoding="utf-8", newline="\n") as out, chunks.open(encoding="ascii") as ready:
            head, tail = _frame(title, found)
            out.write(head)
            out.writelines(ready)
            out.write(tail)
        fresh.replace(path)  # whole or not at all: a page that was there stays where the disk is full
    finally:
        chunks.unlink(missing_ok=True)
        fresh.unlink(missing_ok=True)
    return Report(path, len(runs), len(found["tasks"]), count, path.stat().st_size)


def _ids(runs: Sequence[Run]) -> list[str]:
    """The runs' names; a name that occurs again gets a number."""
    found: list[str] = []
    for run in runs:
        name, number = run.name, 1
        while name in found:
            number += 1
            name = f"{run.name} ({number})"
        found.append(name)
    return found


def _chunks(
    run: Run, number: int, mask: Mask, prompts: bool, openings: dict[str, Opening], places: dict[str, int]
) -> Iterator[str]:
    """A data element for each task of the run. Notes in `openings` how the tasks begin, in `places` where their chunks are."""
    maker = Chunks(run, mask, prompts)
    for attempt in shown(run):
        opening = str(attempt.start.get("observation") or "").strip()
        if len(opening) > OPENING:  # the goal stands at the end where the beginning describes a place
            opening = f"{opening[: OPENING // 2]} … {opening[-OPENING // 2 :]}"
        openings.setdefault(attempt.task_id, Opening(attempt.start.get("goal"), opening))
        places[attempt.task_id] = attempt.position
        yield f'<script type="text/plain" id="c{number}-{attempt.position}">{compressed(maker.chunk(attempt))}</script>\n'


def _static(name: str) -> str:
    return files("harness.report.html").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _frame(title: str, found: Any) -> tuple[str, str]:
    """The page before and after the chunks. The script comes before them, so that the tables stand while they arrive."""
    style = _static("style.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_static(f"{name}.js") for name in SCRIPTS) + "\n})();\n"
    allowed = {"default-src": "'none'", "script-src": f"'sha256-{_hash(script)}'", "style-src": f"'sha256-{_hash(style)}'"}
    policy = "; ".join(f"{kind} {what}" for kind, what in {**allowed, "base-uri": "'none'", "form-action": "'none'"}.items())
    parts = {"policy": policy, "title": escape(title), "style": style, "summary": inline(found), "script": script}
    head, _, tail = _static("page.html").partition("[[chunks]]")
    head, tail = (re.sub(r"\[\[(\w+)\]\]", lambda match: parts[match[1]], half) for half in (head, tail))
    return head, tail
