"""How a stream shows itself while it plays: a bar on a terminal, a line a task elsewhere, or nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import IO, Any

from harness.contracts import Task
from harness.store.database import Store
from harness.store.schema import TaskRow


def _tokens(count: int) -> str:
    return f"{count / 1e6:.2f}M" if count >= 1_000_000 else f"{count / 1e3:.1f}k" if count >= 1000 else str(count)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _terminal(out: IO[str]) -> bool:
    """Whether a bar has a place to be drawn: a terminal, and not one of no width (as under `script` or some CI)."""
    return out.isatty() and os.get_terminal_size(out.fileno()).columns > 0


class Progress:
    """Implements `harness.stream.Observer`. `mode` is auto, bar, lines or off; `total` the number of tasks."""

    def __init__(self, mode: str, name: str, total: int, done: int, score_sum: float, out: IO[str] | None = None) -> None:
        self.out = out or sys.stderr  # None where the caller closed it
        self.name, self.total, self.done, self.score_sum = name, total, done, score_sum
        if self.out is None:
            mode = "off"
        self.mode = mode if mode != "auto" else "bar" if _terminal(self.out) else "lines"
        self._bar: Any = None
        if self.mode == "bar":
            from tqdm import tqdm

            # what matters stands first: a narrow terminal cuts off the end
            form = "{n_fmt}/{total_fmt} {bar:8} {elapsed}<{remaining}{postfix} {desc}"
            self._bar = tqdm(total=total, initial=done, desc=name, file=self.out, dynamic_ncols=True, bar_format=form)

    def task_done(self, row: TaskRow, store: Store) -> None:
        """A display that cannot be written to (a full or closed stderr) is given up; the stream goes on."""
        try:
            self._show(row, store)
        except (OSError, ValueError):
            self.mode, self._bar = "off", None

    def _show(self, row: TaskRow, store: Store) -> None:
        self.done += 1
        self.score_sum += row.score
        spent = store.spent()
        tokens = spent.input_tokens + spent.output_tokens
        cost = store.db.execute(
            "SELECT CASE WHEN sum(ok AND cost_usd IS NULL) = 0 THEN sum(cost_usd) END FROM ledger"
        ).fetchone()[0]
        parts = {"score": f"{self.score_sum / self.done:.3f}", "tokens": _tokens(tokens)}
        if cost:
            parts["cost"] = f"${cost:.2f}"
        if self._bar is not None:
            self._bar.set_postfix({**parts, "last": _short(row.task_id, 28)}, refresh=False)
            self._bar.update(1)
        elif self.mode == "lines":
            verdict = f"agent failure ({row.error})" if row.kind == "agent_failure" else f"score {row.score:g}"
            summary = " ".join(f"{key} {value}" for key, value in parts.items())
            self._line(
                f"{row.position + 1}/{self.total} {_short(row.task_id, 48)}: {verdict}, {row.steps} steps | so far {summary}"
            )

    def note(self, text: str) -> None:
        """Something to know before the first task."""
        if self.mode != "off":
            with contextlib.suppress(OSError, ValueError):
                self._line(text)

    def task_failed(self, position: int, task: Task, error: str) -> None:
        if self.mode != "off":
            with contextlib.suppress(OSError, ValueError):
                self._line(f"{position + 1}/{self.total} {task.task_id}: infrastructure failure, not counted: {error}")

    def finish(self, directory: Path) -> None:
        """Where the result is, once all tasks have been tried."""
        if self.mode != "off":
            mean = f"score {self.score_sum / self.done:.3f} over {self.done} tasks; " if self.done else ""
            with contextlib.suppress(OSError, ValueError):
                print(f"{self.name}: {mean}memarena show {directory}", file=self.out, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError, ValueError):
                self._bar.close()

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.write(text, file=self.out)
        else:
            print(f"{self.name}: {text}", file=self.out, flush=True)
