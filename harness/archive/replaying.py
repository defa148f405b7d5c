"""`memarena replay`: every task once more, answered from the recordings, and everything compared with what was kept.

Played is in a temporary folder, in the order in which the results were committed; neither key nor network is needed for the
models. An environment that needs a service needs it here too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from harness.archive.comparing import compare, shortened, summary
from harness.archive.layout import EVENTS, RECORDINGS, RESULTS
from harness.archive.recorded import played_order, rebuild
from harness.archive.secrets import holds_mask
from harness.archive.strip import missing_recordings, not_being_played, require_whole
from harness.archive.unpacking import verified
from harness.cell import Cell
from harness.contracts import Task
from harness.errors import IdentityError, ReplayMiss, UserError
from harness.limits import Limits
from harness.models.prices import PriceBook
from harness.models.replay import Recorder
from harness.report.text import plural
from harness.run import gateway_of, interruptible
from harness.store.database import Store
from harness.store.events import read_events
from harness.store.identity import differences
from harness.store.schema import TaskRow
from harness.store.view import RunView
from harness.stream import Stream

REPEATS = 5  # of a task whose environment fails: more than the run itself may have needed


def replay(target: Path, overrides: Sequence[str] = (), recordings: Path | None = None) -> list[dict[str, Any]]:
    """Replay a run's directory or every run of a pack; what was found, a dictionary a run.

    Raises UserError where a run was not recorded or the environment lacks something, IdentityError where code or data are others.
    """
    with ExitStack() as stack:
        if target.is_file():
            runs, folder = stack.enter_context(verified(target))
            views = [RunView(folder / run.name) for run in runs]
            names = [f"{target} {run.name}" for run in runs]
        else:
            views, names = [RunView(target)], [str(target)]
        ready = [_ready(view, name, overrides, recordings) for view, name in zip(views, names, strict=True)]
        return [_replayed(view, name, *rest) for view, name, rest in zip(views, names, ready, strict=True)]


def render(found: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(line for run in found for line in _lines(run))


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    if run["difference"] is None:
        same = "scores, steps, usage and memory are those of the run"
        yield f"{run['run']}: {plural(run['tasks'], 'task')} replayed, {same} (record {run['record'][:16]}…)"
    else:
        yield f"{run['run']}: NOT the same. First difference: {run['difference']}"
    yield from (f"  note: {note}" for note in run["notes"])


# --- before anything is played ----------------------------------------------------------------------------------------
def _ready(view: RunView, name: str, overrides: Sequence[str], recordings: Path | None) -> tuple[Cell, PriceBook, list[str]]:
    """The cell with this code and data, the run's prices, and what a reader must know. Spends nothing."""
    if "rescored" in view.manifest:
        origin = view.manifest["rescored"]["from"]
        raise UserError(f"{name} was graded anew, not played.", f"Replay the run it came from: {origin}.")
    path = _recordings_of(view, name, recordings)
    cell = rebuild(view, overrides, replay={"mode": "replay", "path": str(path)}, infra_retries=REPEATS, max_infra_failures=1)
    cell.require(cell.environment.check())
    if changed := differences(view.manifest["cell"], cell.description):
        raise IdentityError(
            f"{name} was another cell than this code and this data make: {'; '.join(changed)}.", _way_back(view, changed)
        )
    prices, notes = _prices(view)
    return cell, prices, notes


def _way_back(view: RunView, changed: Sequence[str]) -> str:
    """Where what the run was made of is to be had: the data, if nothing else differs, else the code."""
    if all(line.startswith(("data_digest:", "task_ids_sha256:")) for line in changed):
        source = ((view.manifest.get("environment") or {}).get("provenance") or {}).get("source", "other")
        return f"The code is the same, the data is not: the run played {source} data. Say where that is (HARNESS_DATA)."
    return f"Use the version that played it (memarena {view.manifest.get('memarena')}, commit {_commit(view)})."


def _recordings_of(view: RunView, name: str, given: Path | None) -> Path:
    path = given or view.directory / RECORDINGS
    hint = "Play it with run.replay.mode=record (or name its file with --recordings) to make it replayable."
    if not path.is_file():
        raise UserError(f"{name} was not recorded: there is no {path.name}.", hint)
    if problems := Recorder("replay", path).check():
        raise UserError(problems[0].what, hint)
    for file in (view.directory / RESULTS, path):
        require_whole(file)
    missing, wanted = missing_recordings(view.directory / RESULTS, path)
    if missing:
        raise UserError(f"{name} was not recorded in full: {missing} of its {plural(wanted, 'call')} have no recording.", hint)
    return path


def _commit(view: RunView) -> str:
    commit = (view.manifest.get("git") or {}).get("commit")
    return str(commit)[:12] if commit else "unknown"


def _prices(view: RunView) -> tuple[PriceBook, list[str]]:
    """The price file of the run where it is here; without it no cost can be compared."""
    kept = (view.manifest.get("models") or {}).get("prices") or {}
    try:
        book = PriceBook.load(str(kept["name"]))
    except (UserError, KeyError):
        book = PriceBook.empty()
    if book.digest == kept.get("sha256"):
        return book, []
    return PriceBook.empty(), [f"its price file {kept.get('name')} is not here as it was: costs are not compared"]


# --- playing ----------------------------------------------------------------------------------------------------------
class Quiet:
    """An observer that keeps the last failure."""

    def __init__(self) -> None:
        self.failure = ""

    def task_done(self, row: TaskRow, store: Store) -> None:
        return None

    def task_failed(self, position: int, task: Task, error: str) -> None:
        self.failure = error


def _replayed(view: RunView, name: str, cell: Cell, prices: PriceBook, notes: list[str]) -> dict[str, Any]:
    order = played_order(view)
    with not_being_played(view.directory), _scratch() as folder:
        stopped = _play(cell, prices, folder, order)
        found = compare(view.directory, folder, order, costs=prices.digest != "", stopped=stopped)
        difference = None if found is None else f"{found}{_parting(view, folder, order)}"
        record = None if found else summary(view.directory)
    left = view.manifest["tasks"]["n"] - len(order)
    if left:
        notes = [*notes, f"{plural(left, 'task')} of the run without a result (nothing to compare)"]
    if lost := [attempt for attempt in view.attempts() if attempt["kind"] != "committed"]:
        notes = [*notes, f"{plural(len(lost), 'attempt')} of the run that left no result: not repeated"]
    return {
        "run": name,
        "identity": view.manifest["identity"],
        "tasks": len(order),
        "identical": found is None,
        "difference": difference,
        "record": record,
        "notes": notes,
    }


def _play(cell: Cell, prices: PriceBook, folder: Path, order: Sequence[int]) -> str:
    """Play into `folder`; what stopped it, empty where nothing did."""
    limits, observer = Limits(), Quiet()
    with ExitStack() as stack:
        store = stack.enter_context(Store(folder))
        gateway = gateway_of(cell, folder, limits, prices)
        stack.callback(gateway.close)
        stack.enter_context(interruptible())
        try:
            Stream(cell, store, gateway, limits, observer).play(order)
        except ReplayMiss as error:
            return error.message
        except UserError:
            raise
        except Exception:
            if observer.failure:
                return f"the environment failed: {observer.failure}"
            raise
    return ""


def _parting(view: RunView, folder: Path, order: Sequence[int]) -> str:
    """The first step at which the replayed world parted from the recorded one; empty where none did."""
    rank = {position: number for number, position in enumerate(order)}
    names = {row.position: row.task_id for row in view.tasks()}
    kept, played = (dict(_steps(path)) for path in (view.directory, folder))
    for key in sorted(played.keys() & kept.keys(), key=lambda key: (rank[key[0]], key[1])):
        then, now = kept[key], played[key]
        for part in ("action", "observation", "reward", "done"):
            if then[part] != now[part] and not holds_mask(str(then[part])):
                where = f"task {names[key[0]]}, step {key[1]}: the {part}"
                return f" The first step that differs is {where} was {shortened(then[part])}, is {shortened(now[part])}."
    return ""


def _steps(directory: Path) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Position, number and event of every step of the last attempts."""
    found: dict[int, dict[int, dict[str, Any]]] = {}
    for event in read_events(directory / EVENTS):
        if event["event"] == "attempt_start":
            found[event["position"]] = {}
        elif event["event"] == "step":
            found.setdefault(event["position"], {})[event["step"]] = event
    for position, steps in found.items():
        yield from (((position, number), event) for number, event in steps.items())


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="memarena-replay-") as folder:
        yield Path(folder) / "run"
