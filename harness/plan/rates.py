"""What one task of a cell takes: measured by runs that are there, or reported by a paper. Nothing is made up in between.

The sources, best first: the cell's own run as far as it has come; runs of the same host, method and environment with the same
model set (of the same settings, if there are some); another host or method in the same environment, scaled by the tokens that a
paper reports for both; a reported token total; the same host and method with another model, whose time and cache say nothing
here; another host or method unscaled, which is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from harness.config import StreamConfig
from harness.errors import UserError
from harness.models.ledger import IN_PROCESS
from harness.report import reported
from harness.report.measure import Run
from harness.report.reported import Reported
from harness.store.view import find_runs


@dataclass(frozen=True)
class Use:
    """Model calls and their tokens per task; `cached` is part of `input` (TOK-R3)."""

    calls: float = 0.0
    input: float = 0.0
    cached: float = 0.0
    output: float = 0.0

    def times(self, factor: float) -> Use:
        return Use(self.calls * factor, self.input * factor, self.cached * factor, self.output * factor)


@dataclass(frozen=True)
class Rate:
    """Per task. `by_key` is None where only a total is known; `calls` and `seconds` are None where they are not known."""

    tokens: float
    by_key: Mapping[str, Use] | None
    calls: float | None
    seconds: float | None
    source: str

    def times(self, factor: float, source: str) -> Rate:
        keys = None if self.by_key is None else {key: use.times(factor) for key, use in self.by_key.items()}
        calls, seconds = (None if value is None else value * factor for value in (self.calls, self.seconds))
        return Rate(self.tokens * factor, keys, calls, seconds, source)

    def of_another_model(self) -> Rate:
        """What is left of a rate for another model: neither its time nor what its provider found in a cache."""
        keys = None if self.by_key is None else {key: replace(use, cached=0.0) for key, use in self.by_key.items()}
        return Rate(self.tokens, keys, self.calls, None, self.source)


@dataclass(frozen=True)
class Measured:
    """A run as a source: what it was, and its sums over `n` tasks with a result."""

    run: Run
    n: int
    by_key: Mapping[str, Use]
    seconds: float | None

    @property
    def place(self) -> tuple[str, str, str]:
        labels = self.run.labels
        return labels["host"], labels["method"], str(self.run.at("cell.env.name") or labels["env"])


class Sources:
    """Everything that is known: runs below `roots`, and the papers' token totals."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = list(dict.fromkeys(root.resolve() for root in roots))

    def rate(self, config: StreamConfig, identity: str | None) -> Rate | None:
        """What a task of this cell takes; None where nothing tells."""
        for find in (self._own, self._same_models, self._scaled, self._reported, self._other_models, self._unscaled):
            if (found := find(config, identity)) is not None:
                return found
        return None

    # --- measured ---------------------------------------------------------------------------------------------------------
    def _own(self, config: StreamConfig, identity: str | None) -> Rate | None:
        runs = [one for one in self._usable(config) if identity is not None and one.run.manifest["identity"] == identity]
        return _mean(runs, "measured on {n} tasks of this cell")

    def _same_models(self, config: StreamConfig, _: str | None) -> Rate | None:
        runs = [one for one in self._usable(config) if one.place == _place(config)]
        same = [one for one in runs if one.run.labels["variant"] == config.variant]
        return _mean(same, "measured on {n} tasks of {runs}") or _mean(
            runs, "measured on {n} tasks of {runs}, whose settings are others"
        )

    def _other_models(self, config: StreamConfig, _: str | None) -> Rate | None:
        runs = [one for one in self._models_too(config) if one.place == _place(config)]
        same = [one for one in runs if one.run.labels["variant"] == config.variant]
        found = _mean(same, "measured on {n} tasks with {models}") or _mean(
            runs, "measured on {n} tasks with {models}, whose settings are others"
        )
        return None if found is None else found.of_another_model()

    def _scaled(self, config: StreamConfig, _: str | None) -> Rate | None:
        here = self._paper_tokens(_place(config))
        for one in self._neighbours(config):
            there = self._paper_tokens(one.place)
            if here is None or there is None:
                continue
            host, method, _env = one.place
            how = f"measured on {{n}} tasks of {host}/{method}, scaled by reported tokens ({here.value}/{there.value})"
            found = _mean([one], how)
            return None if found is None else found.times(here.number / there.number, found.source)
        return None

    def _unscaled(self, config: StreamConfig, _: str | None) -> Rate | None:
        for one in self._neighbours(config):
            host, method, _env = one.place
            return _mean([one], f"measured on {{n}} tasks of {host}/{method}, not scaled")
        return None

    def _neighbours(self, config: StreamConfig) -> list[Measured]:
        """Runs of other hosts or methods in the environment, with the same models; the nearest and largest first."""
        host, method, env = _place(config)
        runs = [one for one in self._usable(config) if one.place[2] == env]
        return sorted(runs, key=lambda one: (one.place[1] != method, one.place[0] != host, -one.n, one.run.name))

    def _usable(self, config: StreamConfig) -> Iterator[Measured]:
        return (one for one in self._runs if one.run.labels["models"] == config.choices["models"])

    def _models_too(self, config: StreamConfig) -> Iterator[Measured]:
        """Runs with other model sets, as far as a model answered: a script's episodes are as short as it likes."""
        return (one for one in self._runs if one.run.scripted is False and one.run.labels["models"] != config.choices["models"])

    @cached_property
    def _runs(self) -> list[Measured]:
        return [found for root in self._roots if root.is_dir() for found in _read(root)]

    # --- reported ---------------------------------------------------------------------------------------------------------
    def _reported(self, config: StreamConfig, _: str | None) -> Rate | None:
        found = self._paper_tokens(_place(config))
        tasks = self.reported_tasks(_place(config)[2])
        if found is None or not tasks:
            return None
        source = f"reported by {found.paper} ({found.source}) for {found.model}: {found.value} M tokens over {tasks} tasks"
        return Rate(found.number * 1e6 / tasks, None, None, None, source)

    def reported_tasks(self, env: str) -> int | None:
        """How many tasks the papers' scores in `env` are a share of, where they agree."""
        found = {number.n for number in self._numbers if number.env == env and number.metric == "score" and number.n}
        return found.pop() if len(found) == 1 else None

    def _paper_tokens(self, place: tuple[str, str, str]) -> Reported | None:
        for number in self._numbers:
            fits = number.metric == "tokens" and number.unit == "million tokens" and not number.variant
            if fits and (number.host, number.method, number.env) == place:
                return number
        return None

    @cached_property
    def _numbers(self) -> Sequence[Reported]:
        return [number for name in reported.files() for number in reported.load(name)]


def _place(config: StreamConfig) -> tuple[str, str, str]:
    return config.choices["host"], config.choices["method"], str(config.env.name)


def _read(root: Path) -> Iterator[Measured]:
    """The runs below `root` that measured something. A damaged one is no source; `memarena list` names it."""
    for view in find_runs(root):
        try:
            run = Run(view)
            tasks = run.tasks
            rows = view.usage("key", "endpoint")
            seconds = view.seconds()
        except UserError:
            continue
        if not tasks or run.at("run_options.replay") == "replay" or run.at("rescored") is not None:
            continue
        sums: dict[str, Use] = {}
        for row in rows:
            key, endpoint = row.group
            if endpoint != IN_PROCESS:
                before = sums.get(key, Use())
                sums[key] = Use(
                    before.calls + row.calls,
                    before.input + row.input_tokens,
                    before.cached + row.cached_input_tokens,
                    before.output + row.output_tokens,
                )
        yield Measured(run, len(tasks), sums, seconds)


def _mean(runs: Sequence[Measured], source: str) -> Rate | None:
    """The mean over all tasks of `runs`; None without a run."""
    n = sum(one.n for one in runs)
    if not n:
        return None
    keys = sorted({key for one in runs for key in one.by_key})
    by_key = {key: _sum(one.by_key[key] for one in runs if key in one.by_key).times(1 / n) for key in keys}
    times = [one.seconds for one in runs]
    known = [seconds for seconds in times if seconds is not None]
    seconds = math.fsum(known) / n if len(known) == len(times) else None
    names = sorted({one.run.name for one in runs})
    models = sorted({one.run.labels["models"] for one in runs})
    text = source.format(n=n, runs=names[0] if len(names) == 1 else f"{len(names)} runs", models=", ".join(models))
    total = _sum(by_key.values())
    return Rate(total.input + total.output, by_key, total.calls, seconds, text)


def _sum(uses: Iterable[Use]) -> Use:
    held = list(uses)
    return Use(*(math.fsum(getattr(use, item.name) for use in held) for item in fields(Use)))
