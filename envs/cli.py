"""`python -m envs.<name>`: an environment without any host or memory, for people and for checks.

list, play N, oracle and noop work for every environment of the contract; an adapter may add commands of its own. Results go
to stdout, progress and errors to stderr. Exit code: 0; 1 where an oracle does not solve everything; 2, with one line that says
why, for bad input and for what is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
import time
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.contracts import Environment, Guided, Idle, Session, Task
from harness.errors import ConfigError, MemArenaError, SetupError
from harness.seeds import case_seed


@dataclass(frozen=True)
class Command:
    """A command that one adapter adds: `arguments` declares its options, `run` carries it out (and may raise MemArenaError)."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> typing.NoReturn:
        print(f"error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[[], object]]:
    """A progress bar on stderr where that is a terminal, else nothing. Yields the function that advances it by one."""
    if sys.stderr is None:  # the shell has closed it (2>&-)
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, file=sys.stderr, disable=None, leave=False) as bar:
        yield lambda: bar.update(1)


def main(environment: Callable[[Any], Environment], argv: Sequence[str] | None = None, *, extra: Sequence[Command] = ()) -> int:
    """Run one command. `environment` is the adapter's class. Returns the exit code."""
    config_class = typing.cast(Any, environment).Config
    parser = _parser(config_class, extra)
    arguments = parser.parse_args(argv)
    try:
        own = next((command for command in extra if command.name == arguments.command), None)
        code = own.run(arguments) or 0 if own else _run(environment(_configure(config_class, arguments)), arguments)
        if sys.stdout is not None:  # it is where the shell has closed it (>&-)
            sys.stdout.flush()
    except MemArenaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # the reader (head, less) has had enough; Python would complain once more when it flushes at exit
        sys.stdout = typing.cast(Any, None)
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


# --- arguments --------------------------------------------------------------------------------------------------------
def _parser(config_class: type, extra: Sequence[Command]) -> argparse.ArgumentParser:
    name = next(item.default for item in dataclasses.fields(config_class) if item.name == "name")
    keys = [item.name for item in dataclasses.fields(config_class) if item.name != "name"]
    common = _Parser(add_help=False)
    if "split" in keys:
        common.add_argument("--split", help="the benchmark's split (default: as in conf/env)")
    common.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help=f"another value of conf/env: {', '.join(keys)}"
    )
    parser = _Parser(prog=f"python -m envs.{name}", description=f"Tasks of {name}, without a host or a memory.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", parents=[common], help="the tasks in the official order")
    play = commands.add_parser("play", parents=[common], help="play task N yourself")
    play.add_argument("index", type=int, metavar="N", help="index of the task, from 0")
    oracle = commands.add_parser("oracle", parents=[common], help="play the stored solutions: must score 1")
    noop = commands.add_parser("noop", parents=[common], help="do nothing in every task")
    for command in (listing, oracle, noop):
        command.add_argument("--limit", type=int, metavar="N", help="only the first N tasks")
    for command in (listing, oracle, noop):
        command.add_argument("--json", action="store_true", help="machine-readable lines on stdout")
    for command in (play, oracle, noop):
        command.add_argument("--seed", type=int, default=0, help="base seed of the attempt (default 0)")
    for own in extra:
        own.arguments(commands.add_parser(own.name, help=own.help))
    return parser


def _configure(config_class: type, arguments: argparse.Namespace) -> Any:
    """The adapter's configuration with `--split` and `--set` applied; values are read as YAML, as in conf/."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    known = {item.name for item in dataclasses.fields(config_class)}
    values: dict[str, Any] = {}
    for text in arguments.set:
        key, equals, value = text.partition("=")
        if not equals or key not in known or key == "name":
            raise ConfigError(f"--set {text}: there is no such key.", f"There are: {', '.join(sorted(known - {'name'}))}.")
        try:
            values[key] = OmegaConf.from_dotlist([f"value={value}"]).value
        except (YAMLError, OmegaConfBaseException) as error:
            raise ConfigError(f"--set {text}: {str(error).splitlines()[0]}.", "The value is read as YAML.") from error
    if getattr(arguments, "split", None) is not None:
        values["split"] = arguments.split
    return _typed(config_class, values)


def _typed(config_class: type, values: dict[str, Any]) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(config_class), values))
    except OmegaConfBaseException as error:
        raise ConfigError(f"--set: {str(error).splitlines()[0]}.") from error


# --- commands ---------------------------------------------------------------------------------------------------------
def _run(environment: Environment, arguments: argparse.Namespace) -> int:
    for problem in environment.check():
        raise SetupError(f"{problem.what.rstrip('.')}.", f"Mend it with: {problem.fix.rstrip('.')}.")
    tasks = environment.tasks()
    if arguments.command == "play":
        if not 0 <= arguments.index < len(tasks):
            raise ConfigError(f"There is no task {arguments.index}.", f"Tasks are numbered 0 to {len(tasks) - 1}.")
        _play(environment, tasks[arguments.index], arguments.seed)
        return 0
    if arguments.limit is not None:
        if arguments.limit < 1:
            raise ConfigError(f"--limit {arguments.limit}: use a positive number.")
        tasks = tasks[: arguments.limit]
    if arguments.command == "list":
        for task in tasks:
            print(_task_line(task, as_json=arguments.json))
        return 0
    return _score(environment, tasks, arguments)


def _task_line(task: Task, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"index": task.index, "task_id": task.task_id, "family": task.family, "goal": task.goal})
    return f"{task.index:4d}  {task.family:32s}  {task.goal}"


def _score(environment: Environment, tasks: Sequence[Task], arguments: argparse.Namespace) -> int:
    """Play `tasks` by the oracle or by doing nothing; print the totals. Returns 1 where an oracle solves less than all."""
    oracle = arguments.command == "oracle"
    start, total, solved, without = time.monotonic(), 0.0, 0, 0
    with progress(len(tasks), "task") as advance:
        for task in tasks:
            attempt = _attempt(environment, task, arguments.seed, oracle=oracle)
            if attempt is None:
                without += 1
                continue
            score, success = attempt
            total, solved = total + score, solved + success
            if oracle and not success:
                print(f"not solved: {task.index} {task.task_id} (score {score:g})", file=sys.stderr)
            advance()
    n = len(tasks) - without
    if without and not n:
        raise ConfigError(f"There is no oracle for task {tasks[0].index} ({tasks[0].task_id}) nor for any other one here.")
    if without:
        print(f"left out: {without} tasks that have no oracle", file=sys.stderr)
    score = total / n if n else 0.0
    seconds = round(time.monotonic() - start, 2)
    if arguments.json:
        print(json.dumps({"n": n, "solved": solved, "score": score, "seconds": seconds}))
    else:
        print(f"{arguments.command}: {solved} of {n} solved, mean score {score:.3f}, {seconds:.1f} s")
    return int(oracle and solved < n)


def _attempt(environment: Environment, task: Task, seed: int, *, oracle: bool) -> tuple[float, bool] | None:
    """Score and success of one attempt; None where an oracle was asked for and there is none."""
    with environment.open(task, case_seed(seed, task.index)) as session:
        actions = _solution(environment, task, session) if oracle else _idle(environment, task, session)
        if actions is None:
            return None
        for action in itertools.islice(actions, environment.max_steps):
            if session.step(session.normalise(action)).done:
                break
        outcome = session.outcome()
    return outcome.score, outcome.success


def _solution(environment: Environment, task: Task, session: Session) -> Iterator[str] | None:
    """The stored solution: the environment's list, else what the session proposes from step to step, else None."""
    actions = environment.oracle(task)
    if actions is not None:
        return iter(actions)
    if not isinstance(session, Guided) or session.oracle_action() is None:
        return None
    return iter(session.oracle_action, None)


def _idle(environment: Environment, task: Task, session: Session) -> Sequence[str]:
    """What an agent does that does nothing: what the adapter says, else the no-op to the last step."""
    return environment.idle(task) if isinstance(environment, Idle) else [session.noop_action] * environment.max_steps


def _play(environment: Environment, task: Task, seed: int) -> None:
    with environment.open(task, case_seed(seed, task.index)) as session:
        print(f"{session.instructions}\n\n{session.observation}\n")
        print(f"(? lists what is possible, q quits; {environment.max_steps} steps)")
        _converse(session, environment.max_steps)
        outcome = session.outcome()
        print(f"{outcome.feedback} Score {outcome.score:g}.")


def _converse(session: Session, max_steps: int) -> None:
    """Read actions from stdin until the episode ends, `q`, or the end of the input."""
    step = 0
    while step < max_steps:
        print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
            return
        text = line.strip()
        if text == "q":
            return
        if text == "?":
            print("\n".join(session.choices or [session.instructions]))
            continue
        action = session.normalise(text)
        if not action:
            continue
        result = session.step(action)
        step += 1
        print(result.observation)
        if result.done:
            return
    print("That was the last step.")
