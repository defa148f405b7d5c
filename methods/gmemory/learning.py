"""How G-Memory's insights come about: from groups of similar tasks every few tasks, merged by clusters now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from harness.contracts import Call, MemoryServices
from harness.seeds import rng
from methods.gmemory import prompts
from methods.gmemory.finch import cluster
from methods.gmemory.insights import Insights
from methods.gmemory.operations import merge_cap, parse_operations, resolve
from methods.text.lists import list_items
from methods.trajectories import Record, TrajectoryStore

SUCCESSES, FAILURES, CHUNK, BATCH = 3, 1, 5, 10


@dataclass(frozen=True)
class Schedule:
    """When and how insights are learnt; see the method's configuration for the fields' meaning."""

    start: int
    every: int
    points: int
    merge_every: int
    max_rules: int
    merge_cap: str
    agree_missing: str


class Learner:
    """Works on the insights of one stream, each time a task has been stored."""

    def __init__(self, services: MemoryServices, store: TrajectoryStore, insights: Insights, schedule: Schedule) -> None:
        self._services, self._store, self._insights, self._schedule = services, store, insights, schedule

    def task_stored(self) -> None:
        """Do what is due at the present number of stored tasks."""
        count, schedule = len(self._store), self._schedule
        if count >= schedule.start and count % schedule.every == 0:
            for point in range(schedule.points):
                self._learn_from_a_group(count, point)
        if count % schedule.merge_every == 0:
            self._merge()

    # --- fine-tuning ----------------------------------------------------------------------------------------------------
    def _learn_from_a_group(self, count: int, point: int) -> None:
        """A random stored task, its nearest successes and failure: what do they teach?"""
        place = rng(self._services.seed, "method", "gmemory", "finetune", count, point).randint(1, count)
        group = self._group(int(self._store.vectors.ids[place - 1]))
        keys = [record.key for record in group]
        successes = [record for record in group if record.success]
        failures = [record for record in group if not record.success]
        if successes and failures:
            self._ask(keys, partial(prompts.contrast, success=successes[0], failure=failures[0]))
        for start in range(0, len(successes), CHUNK):
            self._ask(keys, partial(prompts.common, successes=successes[start : start + CHUNK]))

    def _group(self, picked: int) -> list[Record]:
        """The picked task first, then its neighbours by similarity."""
        vector = self._store.vectors.vector(picked)
        near = self._store.neighbours(vector, SUCCESSES + 1, success=True)
        far = self._store.neighbours(vector, FAILURES + 1, success=False)
        kept = [n for n in near if n.id != picked][:SUCCESSES] + [n for n in far if n.id != picked][:FAILURES]
        return [self._store.record(picked, 1.0), *self._store.records(kept)]

    def _ask(self, keys: Sequence[str], make: Callable[..., Call]) -> None:
        """One call about the rules that concern the group (`make(rules, full=…)`), and what it changes in them."""
        shown = self._insights.related(keys, len(set(keys)) / 2)
        rules = [insight.rule for insight in shown]
        call = make(rules, full=len(rules) > self._schedule.max_rules)
        operations = parse_operations(self._services.models.complete(call).text)
        changes = resolve(operations, rules, max_rules=self._schedule.max_rules, agree_missing=self._schedule.agree_missing)
        self._insights.apply(changes, shown, sorted(set(keys)))

    # --- merging --------------------------------------------------------------------------------------------------------
    def _merge(self) -> None:
        """Replace all rules by what their clusters of tasks merge into. A batch whose answer holds no rule stays as it is."""
        if not self._insights.all():
            return
        labels, all_keys = cluster(self._store.vectors.matrix()), self._store.all_keys()
        merged: dict[str, set[str]] = {}  # the same rule from two clusters is one rule
        for label in range(int(labels.max()) + 1):
            keys = sorted({all_keys[place] for place in np.flatnonzero(labels == label)})
            rules = [insight.rule for insight in self._insights.related(keys, 1)]
            for start in range(0, len(rules), BATCH):
                for rule in self._merged(rules[start : start + BATCH]):
                    merged.setdefault(rule, set()).update(keys)
        self._insights.clear()
        for rule, supporters in merged.items():
            self._insights.add(rule, sorted(supporters))

    def _merged(self, rules: Sequence[str]) -> Sequence[str]:
        most = merge_cap(len(rules), self._schedule.merge_cap)
        answer = self._services.models.complete(prompts.merge(rules, most)).text
        found = list_items(answer, most)
        return found if found or self._schedule.merge_cap == "published" else rules
