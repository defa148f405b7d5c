"""Plays one stream: the tasks of a cell strictly one after another, each in one transaction (RUN-R1, exactly once).

A process killed at any instant loses at most the task in flight; the next one continues at the first task without a
result. What an exception means for a task is decided by the table in `harness.errors`, nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from harness.cell import Cell
from harness.contracts import (
    Call,
    Environment,
    Guidance,
    Idle,
    LocalEmbedder,
    Memory,
    Models,
    Outcome,
    Phase,
    Reply,
    Task,
    TaskInfo,
    Trajectory,
)
from harness.errors import LedgerMismatch, MemArenaError, classify
from harness.limits import Limits, Spent
from harness.models.gateway import Gateway
from harness.rehearsal import Stage
from harness.seeds import case_seed
from harness.session import RecordedSession, TaskMemory, hand_over
from harness.store.database import Store, storage_error
from harness.store.schema import TaskRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Observer(Protocol):
    """Is told how the stream goes; a progress display implements it."""

    def task_done(self, row: TaskRow, store: Store) -> None: ...

    def task_failed(self, position: int, task: Task, error: str) -> None: ...


class CurrentModels:
    """What a memory holds as its models: always those of the task in play."""

    def __init__(self) -> None:
        self.task: Models | None = None

    def complete(self, call: Call) -> Reply:
        return self._now().complete(call)

    def complete_many(self, calls: Sequence[Call]) -> list[Reply]:
        return self._now().complete_many(calls)

    def embed(
        self, role: str, texts: Sequence[str], *, phase: Phase, agent: str | None = None, local: LocalEmbedder | None = None
    ) -> NDArray[np.float64]:
        return self._now().embed(role, texts, phase=phase, agent=agent, local=local)

    def _now(self) -> Models:
        if self.task is None:
            raise MemArenaError("A memory called a model outside of a task.", "Calls belong into the four hooks.")
        return self.task


@dataclass
class StreamResult:
    """How a call of `play` ended: tasks played now, tasks that had a result before, tasks left without one."""

    played: int
    skipped: int
    infra_failures: int


class Stream:
    """One stream over an open store. `play` may be called again after an error; it continues."""

    def __init__(self, cell: Cell, store: Store, gateway: Gateway, limits: Limits, observer: Observer) -> None:
        self.cell, self.store, self.gateway, self.limits, self.observer = cell, store, gateway, limits, observer
        self._models = CurrentModels()
        self._memory: Memory | None = None
        self._stage: Stage | None = None

    def play(self, positions: Sequence[int] | None = None) -> StreamResult:
        """Play every task that has no result yet, in their order or, as a replay does, just `positions` in the order given.

        Raises what stops the stream; what was committed stays.
        """
        self.store.recover()
        finished = set(self.store.finished_positions())
        before = self.store.spent()
        used = Spent(
            before.answered, before.input_tokens + before.output_tokens, before.cost_usd or 0.0, before.seconds, before.steps
        )
        run = self.cell.config.run
        result = StreamResult(0, len(finished), 0)
        in_a_row = 0
        with self.limits.scope("stream", run.limits.stream, used=used):
            for position in range(len(self.cell.tasks)) if positions is None else positions:
                if position in finished:
                    continue
                task = self.cell.tasks[position]
                failure = self._with_retries(position, task, late=any(done > position for done in finished))
                if failure is None:
                    finished.add(position)
                    result.played, in_a_row = result.played + 1, 0
                    continue
                result.infra_failures, in_a_row = result.infra_failures + 1, in_a_row + 1
                self.observer.task_failed(position, task, str(failure))
                if in_a_row >= run.max_infra_failures:
                    raise MemArenaError(
                        f"{in_a_row} tasks in a row failed for reasons of infrastructure, the last with: {failure}",
                        "Mend that; the same command continues.",
                    ) from failure
        return result

    def _with_retries(self, position: int, task: Task, late: bool) -> BaseException | None:
        """Play until there is a result; the error, if infrastructure failed every time."""
        retries = self.cell.config.run.infra_retries
        while True:
            try:
                row = self._attempt(position, task, late)
            except Exception as error:
                rule = classify(error)
                if rule.verdict != "infra_failure":
                    raise
                if not rule.retry or retries == 0:
                    return error
                retries -= 1
            else:
                self.observer.task_done(row, self.store)
                return None

    def _attempt(self, position: int, task: Task, late: bool) -> TaskRow:
        """One transaction: commits a result, or leaves nothing but the record of what the attempt cost."""
        memory = self._memory = self._memory or self._new_memory()
        self.store.begin(position, task)
        wall, cpu = time.perf_counter(), time.process_time()
        before = self.gateway.counters.totals()
        try:
            row = self._play_task(position, task, memory, late)
            self._reconcile(before)
            self.store.commit(row, time.perf_counter() - wall, time.process_time() - cpu)
        except BaseException as error:
            # the memory's object may know of what the database has just forgotten
            self._memory = None
            better = storage_error(error) or error
            infra = classify(better).verdict == "infra_failure"
            self.store.abandon("infra_failure" if infra else "stopped", f"{type(error).__name__}: {error}")
            if better is not error:
                raise better from error
            raise
        return row

    def _new_memory(self) -> Memory:
        memory = self.cell.memory(self.store.db, self._models, self._rehearse, self._note)
        memory.open()
        return memory

    def _rehearse(self, guidance: Guidance) -> tuple[Trajectory, Outcome]:
        if self._stage is None:
            raise MemArenaError("A memory asked for a rehearsal outside of a task.", "It belongs into on_task_end.")
        return self._stage.rehearse(guidance)

    def _play_task(self, position: int, task: Task, memory: Memory, late: bool) -> TaskRow:
        cell, seed = self.cell, case_seed(self.cell.config.run.seed, task.index)
        environment, host = cell.environment, cell.host
        with environment.open(task, seed) as inner, self.limits.scope("task", cell.config.run.limits.task):
            log = partial(self.store.log, position)
            session = RecordedSession(task, inner, memory, self.limits, log, environment.max_steps)
            stage = self._stage = Stage(cell, self.limits, log, task, seed, session)
            info = TaskInfo(
                task,
                seed,
                oracle=partial(_solution, environment, task),
                choices=lambda: stage.session.choices,
                guide=lambda: stage.session.oracle_action(),
            )
            with self.gateway.task(info, position=position, sink=self.store, step=lambda: stage.session.steps) as models:
                self._models.task = stage.models = models
                hand_over(inner, models)
                try:
                    error = _tolerate(lambda: self._work(task, session, memory, host, models))
                    outcome = inner.outcome()
                    if error is not None:
                        outcome = replace(outcome, score=0.0, success=False, status="failed", feedback=error)
                    late_error = _tolerate(lambda: memory.on_task_end(task, session.trajectory(), outcome))
                finally:
                    self._models.task = self._stage = None
        return TaskRow(
            position=position,
            task_index=task.index,
            task_id=task.task_id,
            family=task.family,
            task_group=task.group,
            seed=seed,
            kind="scored" if error is None else "agent_failure",
            score=outcome.score,
            success=outcome.success,
            status=outcome.status,
            steps=session.steps,
            feedback=outcome.feedback,
            metrics=dict(outcome.metrics),
            error=error or (f"after grading: {late_error}" if late_error else None),
            late=late,
        )

    def _work(self, task: Task, session: RecordedSession, memory: Memory, host: Any, models: Models) -> None:
        guidance = memory.on_task_start(task, session.facts, host.team(task))
        self.store.events.append(
            "task_start",
            {
                "task_id": task.task_id,
                "goal": task.goal,
                "observation": session.observation,
                "guidance": [card.task for card in guidance.cards],
                "memory": {
                    "cards": [asdict(card) for card in guidance.cards],
                    "insights": {role: list(rules) for role, rules in guidance.insights.items()},
                    "procedures": list(guidance.procedures),
                    "brief": guidance.brief,
                },
            },
        )
        host.play(session, TaskMemory(memory, guidance), models)

    def _note(self, kind: str, content: Mapping[str, Any]) -> None:
        self.store.events.append("memory_note", {"kind": kind, **content})

    def _reconcile(self, before: Mapping[str, Any]) -> None:
        """TOK-R7: the attempt's ledger rows sum up to what the gateway counted while it ran."""
        now, spending = self.gateway.counters.totals(), self.store.spending()
        counted = [0, 0, 0]
        for name, totals in now.items():
            part = totals - before[name] if name in before else totals
            counted = [counted[0] + part.attempts, counted[1] + part.input, counted[2] + part.output]
        ledger = [spending.calls, spending.input_tokens, spending.output_tokens]
        if counted != ledger:
            raise LedgerMismatch(
                f"The ledger holds {ledger} (calls, input, output tokens), the gateway counted {counted}.",
                "This is a bug of MemArena; the task was not committed. Please report it with events.jsonl.",
            )


def _solution(environment: Environment, task: Task) -> Sequence[str] | None:
    """What a test double plays: the oracle's actions, or those of doing nothing where one task has no oracle."""
    solution = environment.oracle(task)
    return environment.idle(task) if solution is None and isinstance(environment, Idle) else solution


def _tolerate(work: Callable[[], None]) -> str | None:
    """Do `work`; the message of an error that the table calls an agent failure, any other error goes on."""
    try:
        work()
    except Exception as error:
        if classify(error).verdict != "agent_failure":
            raise
        return str(error)
    return None
