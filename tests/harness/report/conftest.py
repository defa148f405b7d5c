"""`write_run` makes a run directory below `tmp_path / "runs"`; `paper_runs` holds runs with the paper's counts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from report_runs import LEDGER, manifest, play, play_counts
from report_tables import SMALL

from harness.models.ledger import LedgerRow
from harness.report.reported import Reported, load
from harness.store.database import Store
from harness.store.identity import digest


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


@pytest.fixture(scope="session")
def paper_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fabricated runs with the counts that the SEPM paper's tables state: what the tables must give back digit by digit."""
    root = tmp_path_factory.mktemp("paper") / "runs"
    tokens = {number.method: float(number.value) * 1e6 / 134 for number in load("sepm_tokens.csv") if number.metric == "tokens"}
    for file in ("sepm_table1.csv", "sepm_components.csv", "sepm_textual.csv", "sepm_table2.csv"):
        for number in load(file):
            if number.metric == "score" and not (file != "sepm_table1.csv" and _already(number)):
                spent = round(tokens[number.method]) if number.host == "autogen" and file == "sepm_table1.csv" else 100
                _write_counts(root, number, spent)
    return root


def _already(number: Reported) -> bool:
    """The rows that repeat Table 1."""
    return number.variant in ("none", "full") or (number.variant == "" and number.model == "gpt-5-mini")


def _write_counts(root: Path, number: Reported, tokens: int) -> None:
    assert number.k is not None and number.n is not None
    method = {"": number.method, "text": "sepm_textual"}.get(number.variant, f"sepm_{number.variant}")
    name = f"{number.env}-{number.host}-{method}-{number.model}"
    written = manifest(name, number.n)
    labels = {"host": number.host, "method": method, "env": number.env, "models": number.model, "models_label": number.model}
    written["labels"].update(labels)
    switches: dict[str, Any] = {"name": number.method}
    if number.method == "sepm":
        whole = number.variant in ("", "text")
        switches |= {"procedural": whole or "memory" in number.variant, "alignment": whole or "alignment" in number.variant}
        switches["graph"] = "text" if number.variant == "text" else "explicit"
    written["cell"] |= {"host": {"name": number.host}, "method": switches, "env": {"name": number.env}}
    written["cell"]["models"] = number.model
    written["models"] |= {"keys": {"actor": "a"}, "endpoints": {"a": {"model": f"vendor/{number.model}"}}}
    written["identity"] = digest(written["cell"])
    directory = root / name
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps(written))
    scores = [1.0] * number.k + [0.0] * (number.n - number.k)
    random.Random(number.env).shuffle(scores)  # the same order for all, so that the better method solves what the other does
    with Store(directory) as store:
        store.db.execute("PRAGMA synchronous = OFF")
        play_counts(store, scores, tokens)
