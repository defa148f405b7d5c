"""The commands of `memarena` that work on runs which are there: their options, and what each calls.

Everything but argparse is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.errors import UserError

DEFAULT_ROOT = Path("results/runs")
Handler = Callable[[argparse.Namespace], int]
RUN = "a run's directory, or its name below --root"


def register(commands: Any) -> None:
    """Add the parsers to argparse's `commands`."""
    pack = commands.add_parser("pack", help="runs as one file that anybody can read and replay; secrets are left out")
    pack.add_argument("runs", metavar="RUN", nargs="+", help=RUN)
    pack.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file to write (default: made from the name)")
    pack.add_argument("--allow-lookalikes", action="store_true", help="text that only looks like a key may stay")

    unpack = commands.add_parser("unpack", help="verify a pack, then put its runs beside the others")
    unpack.add_argument("file", type=Path, metavar="FILE", help="what `memarena pack` has written")
    unpack.add_argument("--to", type=Path, default=DEFAULT_ROOT, metavar="DIR", help="where to (default %(default)s)")

    replay = commands.add_parser("replay", help="play a run again from its recordings and verify every score")
    replay.add_argument("run", metavar="RUN|PACK", help=f"{RUN}, or a pack")
    replay.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="where this machine keeps things: env.data_dir=…")

    diff = commands.add_parser("diff", help="what of a run still holds: REUSE, RESCORE or RERUN, with reasons")
    diff.add_argument("run", metavar="RUN", help=RUN)
    diff.add_argument("others", nargs="*", metavar="RUN|KEY=VALUE", help="another run; without one: this code, data and conf/")

    rescore = commands.add_parser("rescore", help="grade a run anew from its recorded actions, without a model")
    rescore.add_argument("run", metavar="RUN", help=RUN)
    rescore.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what to grade by: env.grader=fixed")
    rescore.add_argument("--name", help="the new run's directory beside the old one (default: made from both)")

    export = commands.add_parser("export", help="tasks, steps and calls as tables, or transcripts as logs of Inspect")
    export.add_argument("runs", metavar="RUN", nargs="+", help=RUN)
    export.add_argument("--format", choices=("csv", "parquet", "inspect"), default="csv", help="(default %(default)s)")
    export.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder to write into")

    for command in (pack, replay):
        command.add_argument("--recordings", type=Path, metavar="FILE", help="the recordings, if they lie elsewhere")
    for command in (pack, replay, diff, rescore, export):
        command.add_argument("--root", type=Path, default=DEFAULT_ROOT, help="where the runs are (default %(default)s)")
    for command in (pack, unpack, replay, diff, rescore, export):
        command.add_argument("--json", action="store_true", help="as JSON")


def place(args: argparse.Namespace, name: str) -> Path:
    """A run's directory or a pack: as it is named, or below the folder of runs."""
    root: Path = args.root
    return Path(name) if Path(name).exists() else root / name


def _print(found: Any, render: Callable[[Any], str], as_json: bool) -> None:
    print(json.dumps(found, indent=1, ensure_ascii=False) if as_json else render(found))


def _pack(args: argparse.Namespace) -> int:
    from harness.archive.packing import pack, render

    runs = [place(args, name) for name in args.runs]
    found = pack(runs, args.output, args.recordings, lookalikes=args.allow_lookalikes)
    _print(found, render, args.json)
    return 0


def _unpack(args: argparse.Namespace) -> int:
    from harness.archive.unpacking import render, unpack

    _print(unpack(args.file, args.to), render, args.json)
    return 0


def _replay(args: argparse.Namespace) -> int:
    from harness.archive.replaying import render, replay

    found = replay(place(args, args.run), args.overrides, args.recordings)
    _print(found, render, args.json)
    return 0 if all(run["identical"] for run in found) else 1


def _diff(args: argparse.Namespace) -> int:
    from harness.archive.differing import against_now, as_data, between, render
    from harness.store.view import RunView

    runs = [word for word in args.others if "=" not in word or place(args, word).is_dir()]
    words = [word for word in args.others if word not in runs]
    if len(runs) > 1 or (runs and words):
        raise UserError("Two runs are compared, or a run with what its command would play today.", "See `memarena diff --help`.")
    view = RunView(place(args, args.run))
    found = between(view, RunView(place(args, runs[0]))) if runs else against_now(view, words)
    _print(as_data(found) if args.json else found, render, args.json)
    return 0


def _rescore(args: argparse.Namespace) -> int:
    from harness.archive.rescoring import render, rescore
    from harness.store.view import RunView

    _print(rescore(RunView(place(args, args.run)), args.overrides, args.name), render, args.json)
    return 0


def _export(args: argparse.Namespace) -> int:
    from harness.archive.export import export, render
    from harness.store.view import RunView

    runs = [RunView(place(args, name)) for name in args.runs]
    _print(export(runs, args.format, args.output), render, args.json)
    return 0


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {"pack": _pack, "unpack": _unpack, "replay": _replay, "diff": _diff, "rescore": _rescore, "export": _export}
)
