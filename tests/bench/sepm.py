"""SEPM's own machinery: retrieval and opening by size of the pool, what a step and a commit cost. Called by `tests.bench`.

The ranking of the index is compared with the plain formula; a difference ends the bench.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from harness.contracts import Evidence, Member, MemoryServices, StepResult, Task, Turn
from methods.sepm.config import SepmConfig
from methods.sepm.divergence import PlanView, plan_divergence, state_conflicts
from methods.sepm.evidence import resolve
from methods.sepm.memory import Sepm
from methods.sepm.procedure import Procedure, Step
from methods.sepm.retrieval import compatible, rank
from methods.sepm.store import PoolStore
from tests.support.fakes import FakeModels

SIZES = (1_000, 10_000, 100_000)
VERBS = ("clean", "heat", "cool", "find", "take", "open", "move", "check", "sort", "send", "book", "cancel")
FAMILIES = tuple(f"family{i}" for i in range(40))
QUERIES = 200


def words(draw: random.Random, number: int) -> str:
    """Words by a skewed law, as in real text: a few are everywhere, most are rare."""
    return " ".join(f"word{int(draw.paretovariate(0.7)) % 20_000}" for _ in range(number))


def procedure(draw: random.Random) -> Procedure:
    family = draw.choice(FAMILIES)
    steps = tuple(Step(f"s{i}", f"{draw.choice(VERBS)} {words(draw, 4)}") for i in range(5))
    return Procedure(words(draw, 5), family=family, steps=steps, conditions=(f"family={family}",) if draw.random() < 0.5 else ())


def median_and_p95(seconds: list[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2] * 1000, ordered[int(len(ordered) * 0.95)] * 1000


def retrieval(size: int, scratch: Path) -> None:
    draw = random.Random(size)
    path = scratch / f"{size}.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    store = PoolStore(db)
    store.open()
    db.execute("BEGIN IMMEDIATE")
    contents = {f"c{i}": procedure(draw) for i in range(size)}
    start = time.perf_counter()
    for sop_id, content in contents.items():
        store.commit_version(sop_id, None, content, "create", 1)
    commit = (time.perf_counter() - start) / size * 1000
    db.execute("COMMIT")
    db.close()
    again = PoolStore(sqlite3.connect(path, isolation_level=None))
    start = time.perf_counter()
    again.open()
    opened = time.perf_counter() - start
    times = []
    asked = [(f"{draw.choice(VERBS)} {words(draw, 8)}", {f"family={draw.choice(FAMILIES)}"}) for _ in range(QUERIES)]
    for query, facts in asked:
        start = time.perf_counter()
        again.search(query, facts, 5)
        times.append(time.perf_counter() - start)
    for query, facts in asked[: max(1, 2_000 // (size // 100))]:
        kept = [(sop, 1, c.document()) for sop, c in contents.items() if compatible(c.conditions, c.exclusions, facts)]
        plain, found = rank(query, kept, 5), again.search(query, facts, 5)
        assert [hit.sop_id for hit in found] == [hit.sop_id for hit in plain], (query, found, plain)
    median, p95 = median_and_p95(times)
    print(f"  {size:>8} {median:9.2f} {p95:9.2f} {opened:9.2f} {commit:11.3f} {path.stat().st_size / 2**20:9.1f}", flush=True)


def steps() -> None:
    """One step of a task in which every step brings evidence; and its parts."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    method = Sepm(SepmConfig(), MemoryServices(db, FakeModels(lambda call: ""), 0))
    method.open()
    agent = Member("A", "A")
    method.on_task_start(Task("t", 0, "clean a mug", "clean-mug", "clean"), frozenset({"family=clean"}), [agent])
    times = []
    for number in range(1, 501):
        evidence = tuple(Evidence((f"thing {k}", "location"), number, 4, "env", (number, k)) for k in range(3))
        start = time.perf_counter()
        method.before_action(agent, number)
        method.review(agent, number, '{"node": "n1", "goal": "clean a mug"}\ngo')
        method.after_action(Turn(number, "A", "go", "go", StepResult("ok", evidence=evidence)))
        times.append(time.perf_counter() - start)
    print(
        f"\nA step (note, review, record, resolve, align): median {median_and_p95(times)[0]:.3f} ms, p95 {median_and_p95(times)[1]:.3f} ms"
    )
    items = [Evidence(("mug", "location"), k % 7, 4 - k % 3, f"s{k % 4}", (k, 0)) for k in range(30)]
    plans = [
        PlanView({f"n{i}": f"do {i + j}" for i in range(20)}, frozenset((f"n{i}", f"n{i + 1}") for i in range(19)))
        for j in (0, 1)
    ]
    for name, work in (
        ("resolve a key with 30 items", lambda: resolve(items)),
        ("plan divergence, 20 nodes", lambda: plan_divergence(*plans)),
        ("state conflicts, 30 items", lambda: state_conflicts({("mug", "location"): items}, [("mug", "location")])),
    ):
        start = time.perf_counter()
        for _ in range(500):
            work()
        print(f"  {name:30} {(time.perf_counter() - start) / 500 * 1e6:8.0f} µs")


def main(sizes: tuple[int, ...] = SIZES) -> None:
    print("SEPM's pool (200 queries of 9 terms; the ranking equals the plain formula's)")
    print(f"  {'size':>8} {'median ms':>9} {'p95 ms':>9} {'open s':>9} {'commit ms':>11} {'MiB disk':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            retrieval(size, Path(scratch))
    steps()


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
