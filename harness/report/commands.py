"""The reporting commands of `memarena` beside show, memory and list: their options, and what each calls.

Everything but argparse is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.errors import UserError

if TYPE_CHECKING:
    from harness.store.view import RunView

DEFAULT_ROOT = Path("results/runs")
DEFAULT_PAPER = Path("results/paper")
Handler = Callable[[argparse.Namespace], int]


def register(commands: Any) -> None:
    """Add the parsers to argparse's `commands`."""
    compare = commands.add_parser("compare", help="is one method better than another? paired on the same tasks")
    side = "a run's directory, or its name below --root; several seeds of a method as A,B,C"
    compare.add_argument("first", metavar="RUN_A", help=side)
    compare.add_argument("second", metavar="RUN_B", help=side)
    compare.add_argument("--sequential", action="store_true", help="only whether two runs in progress may be stopped")
    compare.add_argument("--alpha", type=float, default=0.05, help="error rate (default %(default)s)")
    compare.add_argument("--detect", type=float, metavar="POINTS", help="also: tasks needed to find this difference")
    compare.add_argument("--json", action="store_true", help="as JSON")

    stability = commands.add_parser("stability", help="what seeds and the order of the tasks do to one cell")
    stability.add_argument("runs", metavar="RUN", nargs="+", help="streams of one cell: other seeds, other orders")
    stability.add_argument("--json", action="store_true", help="as JSON")

    check = commands.add_parser("check-reported", help="can each percentage that a paper reports be a count at all?")
    check.add_argument("tables", metavar="TABLE", nargs="*", help="files of results/reported, like sepm_table1 (default: all)")
    check.add_argument("--all", action="store_true", help="every number, not only the impossible ones")
    check.add_argument("--json", action="store_true", help="as JSON")

    table = commands.add_parser("table", help="a paper's table, measured beside reported")
    table.add_argument("table", metavar="TABLE", help="table1, table2, table5, components, …, or a YAML (docs/reports.md)")
    table.add_argument("--env", help="only this environment's column")
    table.add_argument("--models", help="only runs with this model set")
    table.add_argument("--format", choices=("markdown", "csv", "latex"), default="markdown")
    table.add_argument("--wide", action="store_true", help="every column and every run in one line each")
    table.add_argument("--deltas", choices=("displayed", "counts"), default="displayed", help="what changes are differences of")
    table.add_argument("--save", type=Path, metavar="DIR", help="write all three forms into this folder instead of printing one")

    figure = commands.add_parser("figure", help="a paper's figure of the runs there are, reported and measured apart")
    figure.add_argument("figure", metavar="FIGURE", help="figure1, figure4a, figure4b, figure5a, figure5b, learning, or a YAML")
    figure.add_argument("--env", help="only this environment's column")
    figure.add_argument("--models", help="only runs with this model set")
    figure.add_argument("--format", choices=("all", "pdf", "png", "svg", "csv"), default="all", help="csv: the numbers drawn")
    figure.add_argument("--save", type=Path, default=DEFAULT_PAPER, metavar="DIR", help="where to (default %(default)s)")

    paper = commands.add_parser("paper", help="all tables and figures of the runs there are, in one PDF")
    paper.add_argument("--env", help="only this environment's tables")
    paper.add_argument("--models", help="only runs with this model set")
    paper.add_argument("--deltas", choices=("displayed", "counts"), default="displayed", help="what changes are differences of")
    paper.add_argument("--save", type=Path, default=DEFAULT_PAPER, metavar="DIR", help="where to (default %(default)s)")

    for command in (compare, stability, table, figure, paper):
        add_root(command)


def add_root(command: argparse.ArgumentParser) -> None:
    command.add_argument("--root", type=Path, default=DEFAULT_ROOT, help="where the runs are (default %(default)s)")


def _view(args: argparse.Namespace, name: str) -> RunView:
    from harness.store.view import RunView

    return RunView(Path(name) if Path(name).exists() else args.root / name)


def _print(found: Any, text: Callable[[Any], str], as_json: bool) -> int:
    import json

    print(json.dumps(found, indent=1, ensure_ascii=False) if as_json else text(found))
    return 0


def _compare(args: argparse.Namespace) -> int:
    from harness.report.contrast import contrast
    from harness.report.contrast_text import render, render_sequential

    sides = [[_view(args, name) for name in side.split(",") if name] for side in (args.first, args.second)]
    if args.sequential and any(len(side) > 1 for side in sides):
        raise UserError("--sequential looks at one run a side.", "Compare several seeds when they are finished.")
    detect = None if args.detect is None else args.detect / 100
    found = contrast(*sides, alpha=args.alpha, detect=detect)
    return _print(found, render_sequential if args.sequential else render, args.json)


def _stability(args: argparse.Namespace) -> int:
    from harness.report.stability import render, stability

    return _print(stability([_view(args, name) for name in args.runs]), render, args.json)


def _check_reported(args: argparse.Namespace) -> int:
    from harness.report.checking import check, render

    def text(found: Sequence[Mapping[str, Any]]) -> str:
        return render(found, args.all)

    return _print(check(args.tables), text, args.json)


def _table(args: argparse.Namespace) -> int:
    from harness.report.tables import build

    table = build(args.table, runs_root(args), env=args.env, models=args.models, deltas=args.deltas)
    if args.save is not None:
        print("\n".join(map(str, table.save(args.save, args.wide))))
        return 0
    print(table.form(args.format, args.wide))
    return 0


def _figure(args: argparse.Namespace) -> int:
    from harness.report.figures.data import figure_data
    from harness.report.figures.draw import FORMATS
    from harness.report.paper import figure_files

    data = figure_data(args.figure, runs_root(args), env=args.env, models=args.models)
    kinds = {"all": FORMATS, "csv": ()}.get(args.format, (args.format,))
    files = figure_files(data, args.save, kinds)
    print("\n".join([*map(str, files), *(f"- {note}" for note in data.notes), *([f"- {data.missing}"] if data.missing else [])]))
    return 0


def _paper(args: argparse.Namespace) -> int:
    from harness.report.paper import make

    made = make(runs_root(args), args.save, env=args.env, models=args.models, deltas=args.deltas)
    print("\n".join([*map(str, made.files), *([f"- {made.remark}"] if made.remark else []), str(made.document)]))
    return 0


def runs_root(args: argparse.Namespace) -> Path:
    """The folder of runs; the default one need not exist yet."""
    root: Path = args.root
    if not root.is_dir() and root != DEFAULT_ROOT:
        raise UserError(f"There is no folder {root}.", "Say where the runs are with --root.")
    return root


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "compare": _compare,
        "stability": _stability,
        "check-reported": _check_reported,
        "table": _table,
        "figure": _figure,
        "paper": _paper,
    }
)
