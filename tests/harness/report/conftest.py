"""`write_run` makes a run directory below `tmp_path / "runs"`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from report_runs import LEDGER, manifest, play
from report_tables import SMALL

from harness.models.ledger import LedgerRow
from harness.store.database import Store


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """write_run(name, scores, calls=…, planned=…, **manifest changes) → the run's directory."""

    def write(
        name: str, scores: Iterable[float], calls: Sequence[LedgerRow] = (LEDGER,), planned: int | None = None, **changes: Any
    ) -> Path:
        held = list(scores)
        directory = tmp_path / "runs" / name
        directory.mkdir(parents=True)
        written = manifest(name, len(held) if planned is None else planned, **changes)
        (directory / "manifest.json").write_text(json.dumps(written))
        with Store(directory) as store:
            store.db.execute("PRAGMA synchronous = OFF")
            for position, score in enumerate(held):
                play(store, position, score, calls)
        return directory

    return write


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)
