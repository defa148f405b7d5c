"""The `memarena` command: thin, and quick to start. Everything heavy is imported by the subcommand that needs it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.archive import commands as archive_commands
from harness.errors import MemArenaError, UserError
from harness.report import commands as report_commands
from harness.report.html import command as html_command

EPILOG = """examples:
  memarena run experiment=demo                      three memories on three small tasks, with the embedded model
  memarena run method=generative models=gpt-5-mini  one stream
  memarena run -m method=none,metagpt,generative    a sweep, each stream in its own process
  memarena table table1 --env alfworld              measured beside reported
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memarena",
        description="Find out whether a memory makes a team of LLM agents better, and at what cost.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    run = commands.add_parser("run", help="play a stream, or a sweep of streams", description="Play a stream or a sweep.")
    run.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values, a process each")
    run.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="streams of a sweep at a time (default 1)")
    run.add_argument("--cfg", action="store_true", help="print the composed configuration and exit")
    run.add_argument("-y", "--yes", action="store_true", help="do not ask, whatever it may cost (run.confirm_above)")
    run.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="host= method= env= models= experiment= run.seed= …")

    plan = commands.add_parser("plan", help="what a stream or a sweep would cost, before anything is spent")
    plan.add_argument("-m", "--multirun", action="store_true", help="a sweep over comma-separated values, as in run")
    plan.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what `memarena run` would be given")
    plan.add_argument("--json", action="store_true", help="as JSON")

    show = commands.add_parser("show", help="what a run found: score, steps, tokens, cost")
    show.add_argument("run", metavar="RUN", help="a run's directory, or its name below --root")
    show.add_argument("--json", action="store_true", help="as JSON")

    memory = commands.add_parser("memory", help="what the memory of a run has learnt, and what its own calls cost")
    memory.add_argument("run", metavar="RUN", help="a run's directory, or its name below --root")
    memory.add_argument("--json", action="store_true", help="as JSON")
    memory.add_argument("--graph", metavar="TASK", help="only the graph of this task: its id, a part of it, or its number")
    memory.add_argument("--format", choices=("mermaid", "dot"), default="mermaid", help="how to draw it (default %(default)s)")

    listing = commands.add_parser("list", help="the runs there are")
    listing.add_argument("--json", action="store_true", help="as JSON")

    for command in (plan, show, memory, listing):
        command.add_argument(
            "--root", type=Path, default=report_commands.DEFAULT_ROOT, help="where the runs are (default %(default)s)"
        )
    report_commands.register(commands)
    html_command.register(commands)
    archive_commands.register(commands)

    doctor = commands.add_parser("doctor", help="what is installed, which data and keys are there, what to do about the rest")
    doctor.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="check only what this configuration needs")
    doctor.add_argument("--json", action="store_true", help="as JSON")
    return parser


def guarded(work: Callable[[], int]) -> int:
    """Run `work`; an error that we know becomes one line on stderr and an exit code, never a traceback."""
    _occupy_standard_descriptors()
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UserError as error:
        _complain(f"memarena: {error}")
        return 2
    except MemArenaError as error:
        _complain(f"memarena: {error}")
        return 1
    except KeyboardInterrupt:
        _complain("memarena: interrupted; what was committed is kept, the same command continues.")
        return 130
    except BrokenPipeError:
        # the reader of our output has gone (`| head`): not an error, but nothing more can be written
        _silence()
        return 0
    except OSError as error:
        # a disk, a file or an output that fails is the machine's affair: no page of Python for it
        _silence()
        _complain(f"memarena: {type(error).__name__}: {error}")
        return 1


def _occupy_standard_descriptors() -> None:
    """Where the caller closed one of the first three descriptors, the next file opened would take its place and be written to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(text, file=sys.stderr, flush=True)


def _silence() -> None:
    """Whatever is still in stdout's buffer cannot be written, and Python would say so once more at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    args, rest = parser.parse_known_args(arguments)
    # argparse takes positional words only in one row; `memarena run method=none -m run.seed=0,1` is as good as any order
    if rest and not (hasattr(args, "overrides") and all("=" in word and not word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        args.overrides += rest
    if args.version:
        from harness import __version__

        print(f"memarena {__version__}")
        return 0
    if args.command is None:
        parser.print_help()
        return 2
    return guarded(lambda: _COMMANDS[args.command](args))


def _run(args: argparse.Namespace) -> int:
    if args.cfg:
        from omegaconf import OmegaConf

        from harness.compose import compose_one

        print(OmegaConf.to_yaml(OmegaConf.create(compose_one(args.overrides)[0])), end="")
        return 0
    from harness.sweep import run

    return run(args.overrides, multirun=args.multirun, jobs=args.jobs, yes=args.yes)


def _plan(args: argparse.Namespace) -> int:
    import json

    from harness.plan.estimate import as_data, plan
    from harness.plan.text import render
    from harness.sweep import points_of

    points, _ = points_of(args.overrides, multirun=args.multirun)
    found = plan(points, [report_commands.runs_root(args)])
    print(json.dumps(as_data(found), indent=1, ensure_ascii=False) if args.json else render(found))
    return 0


def _directory(args: argparse.Namespace) -> Path:
    given = Path(args.run)
    return given if given.exists() else args.root / args.run


def _show(args: argparse.Namespace) -> int:
    import json

    from harness.report.show import render, summary
    from harness.store.view import RunView

    found = summary(RunView(_directory(args)))
    print(json.dumps(found, indent=1, ensure_ascii=False) if args.json else render(found))
    return 0


def _memory(args: argparse.Namespace) -> int:
    import json

    from harness.report.inspection import graph_of, inspect_run, render
    from harness.store.view import RunView

    view = RunView(_directory(args))
    if args.graph:
        print(graph_of(view, args.graph, args.format))
        return 0
    found = inspect_run(view)
    print(json.dumps(found, indent=1, ensure_ascii=False) if args.json else render(found))
    return 0


def _list(args: argparse.Namespace) -> int:
    import json

    from harness.report.listing import listing, render

    found = listing(report_commands.runs_root(args))
    print(json.dumps(found, indent=1, ensure_ascii=False) if args.json else render(found))
    return 0


def _doctor(args: argparse.Namespace) -> int:
    from harness.doctor import examine

    return examine(args.overrides, as_json=args.json)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "plan": _plan,
    "show": _show,
    "memory": _memory,
    "list": _list,
    "doctor": _doctor,
    **report_commands.HANDLERS,
    **html_command.HANDLERS,
    **archive_commands.HANDLERS,
}
