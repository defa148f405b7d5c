"""`memarena report`: its options. Everything but argparse is imported when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.report.commands import add_root


def register(commands: Any) -> None:
    """Add the parser to argparse's `commands`."""
    report = commands.add_parser("report", help="runs as one HTML page to look at, search and compare; opens anywhere")
    report.add_argument("runs", metavar="RUN", nargs="*", help="a run's directory, or its name below --root (default: all there)")
    report.add_argument(
        "-o", "--output", type=Path, default=Path("results/report"), metavar="DIR", help="folder (default %(default)s)"
    )
    report.add_argument("--title", default="MemArena report", help="the page's heading (default: %(default)s)")
    report.add_argument("--no-prompts", action="store_true", help="leave the prompts out: a smaller page that says less")
    add_root(report)


def _report(args: argparse.Namespace) -> int:
    from harness.errors import UserError
    from harness.report.commands import runs_root
    from harness.report.html.page import build
    from harness.store.view import RunView, find_runs

    if args.runs:
        views = [RunView(Path(name) if Path(name).exists() else args.root / name) for name in args.runs]
    else:
        views = list(find_runs(runs_root(args)))
    if not views:
        raise UserError(f"There are no runs below {args.root}.", "Name some, or say where they are with --root.")
    made = build(views, args.output, title=args.title, prompts=not args.no_prompts)
    print(f"{made.path}: {made.runs} runs, {made.tasks} tasks, {made.transcripts} transcripts, {made.bytes / 1e6:.1f} MB")
    return 0


HANDLERS: Mapping[str, Callable[[argparse.Namespace], int]] = MappingProxyType({"report": _report})
