"""The pool: retrieval index, compare-and-swap, gates, safety; what is in it and what never is."""

from __future__ import annotations

import math
import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigError
from methods.sepm.conditions import Condition
from methods.sepm.procedure import ConditionalWarning, Procedure, Step, from_plain, render, render_all
from methods.sepm.promotion import Thresholds, Trial, claimed_utility, judge, net_benefit
from methods.sepm.retrieval import compatible, rank
from methods.sepm.safety import assess, assess_delete
from methods.sepm.store import PoolStore, Promotion
from tests.methods.sepm.sepm_support import candidate, pool, procedure

WORDS = ["clean", "mug", "heat", "egg", "code", "latest", "cabinet", "routine", "look", "lamp"]
FACTS = ["family=clean", "room=kitchen", "Object=Mug"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
procedures = st.builds(
    lambda title, step, conditions, exclusions: Procedure(
        title, family="clean", steps=(Step("s1", step),), conditions=tuple(conditions), exclusions=tuple(exclusions)
    ),
    texts,
    texts,
    st.lists(st.sampled_from([*FACTS, "other"]), max_size=2),
    st.lists(st.sampled_from([FACTS[0], "other"]), max_size=1),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["c1", "c2", "c3", "c4", "c10"]), procedures, st.booleans()), max_size=12),
    texts,
    st.sets(st.sampled_from(FACTS)),
    st.integers(1, 5),
)
def test_the_index_ranks_as_the_plain_formula_r8_r9_r29(
    history: list[tuple[str, Procedure, bool]], query: str, facts: set[str], k: int
) -> None:
    """SEPM-R8, SEPM-R9: after any history of commits and retirements, in memory and reopened; superseded or retired revisions and
    candidates are never retrieved (SEPM-R29, SEPM-R31)."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    store = pool(db)
    for sop, content, retire in history:
        head = store.head(sop)
        if head is None or head[1]:
            version = store.commit_version(sop, head[0] if head else None, content, "create", 1)
            if retire and version is not None:
                store.retire(sop, version)
    store.add_candidate(candidate(99, procedure(query)))
    active = [(sop, version, store.get(sop, version)) for sop, version in store.active()]
    kept = [(s, v, p.document()) for s, v, p in active if compatible(p.conditions, p.exclusions, facts)]
    wanted = rank(query, kept, k)
    again = pool(db)
    for index in (store.index, again.index):
        found = index.search(query, facts, k)
        assert [(h.sop_id, h.version) for h in found] == [(h.sop_id, h.version) for h in wanted]
        assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-9)


def test_conditions_and_exclusions_ignore_case_r8() -> None:
    """SEPM-R8."""
    store = pool()
    store.commit_version("c1", None, procedure(conditions=("Family=CLEAN",)), "create", 1)
    store.commit_version("c2", None, procedure(exclusions=("room=KITCHEN",)), "create", 1)
    assert [h.sop_id for h in store.search("mug", {"family=clean", "room=kitchen"}, 5)] == ["c1"]
    assert [h.sop_id for h in store.search("mug", {"room=attic"}, 5)] == ["c2"]


def test_equal_scores_are_ordered_by_id_and_k_bounds_them_r9() -> None:
    """SEPM-R9: deterministic ties; K = 5 by default."""
    store = pool()
    for sop in ("c3", "c1", "c2", "c9", "c8", "c7"):
        store.commit_version(sop, None, procedure(), "create", 1)
    assert [h.sop_id for h in store.search("mug", (), 5)] == ["c1", "c2", "c3", "c7", "c8"]


def test_indexed_fields_r13() -> None:
    """SEPM-R13: everything but exclusions is in the document."""
    content = Procedure(
        "ttt", "ddd", "fff", ("aaa",), ("ggg",), ("ccc",), ("xxx",), (Step("s1", "iii"),), (), (ConditionalWarning("www", "rrr"),)
    )
    assert content.document().split() == ["ttt", "ddd", "fff", "aaa", "ggg", "ccc", "www", "rrr", "iii"]


class TestVersions:
    def test_a_failed_comparison_changes_nothing_r31(self) -> None:
        """SEPM-R31; superseded revisions stay readable, retrieval uses the head."""
        store = pool()
        assert store.commit_version("c1", None, procedure("one"), "create", 1, Promotion("c1", 0.96, 0.1)) == 1
        assert store.commit_version("c1", 1, procedure("two"), "update", 2) == 2
        assert store.commit_version("c1", 1, procedure("three"), "update", 3) is None
        assert store.commit_version("c1", None, procedure("four"), "create", 3) is None
        assert store.head("c1") == (2, True)
        assert (store.get("c1", 1).title, store.get("c1", 2).title) == ("one", "two")
        assert [h.version for h in store.search("one two three", (), 5)] == [2]
        with pytest.raises(KeyError):
            store.get("c1", 3)

    def test_of_two_concurrent_writers_one_wins_and_nothing_is_lost_r31(self, tmp_path: Path) -> None:
        """SEPM-R31 on two connections to one file: both construct their update on version 1."""
        path = tmp_path / "pool.sqlite"
        first = PoolStore(sqlite3.connect(path, isolation_level=None))
        first.open()
        first.commit_version("c1", None, procedure("one"), "create", 1)
        second = PoolStore(sqlite3.connect(path, isolation_level=None))
        second.open()
        base = (first.head("c1") or (0,))[0], (second.head("c1") or (0,))[0]
        assert base == (1, 1)
        assert first.commit_version("c1", base[0], procedure("first"), "update", 2) == 2
        assert second.commit_version("c1", base[1], procedure("second"), "update", 2) is None
        assert second.commit_version("c1", 2, procedure("second"), "update", 2) == 3
        assert [second.get("c1", v).title for v in (1, 2, 3)] == ["one", "first", "second"]

    def test_threads_that_race_for_one_head_r31(self, tmp_path: Path) -> None:
        """SEPM-R31 under real concurrency: in each of 20 rounds both start from the same head, and exactly one commits."""
        path, rounds = tmp_path / "pool.sqlite", 20
        setup = sqlite3.connect(path, isolation_level=None)
        setup.execute("PRAGMA journal_mode = WAL")
        pool(setup).commit_version("c1", None, procedure("start"), "create", 0)
        barrier, won = threading.Barrier(2), [[], []]  # type: ignore[var-annotated]

        def writer(who: int) -> None:
            db = sqlite3.connect(path, isolation_level=None, timeout=30)
            store = pool(db)
            for number in range(rounds):
                barrier.wait(30)
                base = (store.head("c1") or (0, False))[0]
                barrier.wait(30)
                db.execute("BEGIN IMMEDIATE")
                won[who].append(store.commit_version("c1", base, procedure(f"{who} in {number}"), "update", number))
                db.execute("COMMIT")
            db.close()

        threads = [threading.Thread(target=writer, args=(who,)) for who in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        last = pool(setup)
        for number in range(rounds):
            (winner,) = [who for who in (0, 1) if won[who][number] is not None]
            assert won[winner][number] == number + 2
            assert last.get("c1", number + 2).title == f"{winner} in {number}"
        assert last.head("c1") == (rounds + 1, True) and len(last.search("in", (), 5)) == 1

    def test_revisions_trials_and_records_cannot_be_changed_r2_r31(self) -> None:
        """SEPM-R2, SEPM-R31: the database itself refuses."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        pool(db).commit_version("c1", None, procedure(), "create", 1)
        for statement in ("UPDATE sepm_version SET kind = 'x'", "DELETE FROM sepm_version"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(statement)

    def test_a_retired_procedure_is_not_retrieved_and_keeps_its_history(self) -> None:
        store = pool()
        store.commit_version("c1", None, procedure("one"), "create", 1)
        assert not store.retire("c1", 7) and store.retire("c1", 1)
        assert store.search("one", (), 5) == [] and store.get("c1", 1).title == "one"
        assert store.commit_version("c1", 1, procedure("two"), "update", 2) is None


def trial(success: bool = True, candidate_reward: float = 1.0, baseline: float = 0.0, cost: float = 0.0, **other: bool) -> Trial:
    flags = {"state_verified": True, "causal_supported": True, **other}
    return Trial("t", success, candidate_reward, baseline, cost, **flags)


class TestGates:
    def verdict(self, *trials: Trial, safe: bool = True, state: bool = True, causal: float = 1.0, at: Thresholds | None = None):  # type: ignore[no-untyped-def]
        return judge(trials, safe=safe, state_verified=state, causal_confidence=causal, at=at or Thresholds())

    def test_net_benefit_is_over_all_trials_r27(self) -> None:
        """SEPM-R27: failed trials count, without trials it is −∞."""
        trials = [trial(cost=0.2), trial(success=False, candidate_reward=0.0, baseline=0.5)]
        assert net_benefit(trials) == pytest.approx((0.8 - 0.5) / 2)
        assert net_benefit([]) == -math.inf
        assert not self.verdict().accepted

    def test_each_gate_refuses_alone_r28(self) -> None:
        """SEPM-R28: five gates; their defaults are inclusive at 0.65 and 0."""
        assert self.verdict(trial()).accepted
        assert self.verdict(trial(), safe=False).failed == ("safety",)
        assert self.verdict(trial(), state=False).failed == ("state",)
        assert self.verdict(trial(), causal=0.6499).failed == ("causal",)
        assert self.verdict(trial(), causal=0.65).accepted
        assert self.verdict(trial(causal_supported=False)).failed == ("reproduction",)
        assert self.verdict(trial(baseline=0.5, cost=0.6)).failed == ("benefit",)
        assert self.verdict(trial(baseline=0.5, cost=0.5)).accepted
        assert self.verdict(trial(), at=Thresholds(reproductions=2)).failed == ("reproduction",)

    def test_claimed_utility_never_replaces_a_trial_r26(self) -> None:
        """SEPM-R26."""
        assert claimed_utility(1.0, 0.2) == pytest.approx(0.8)
        assert claimed_utility(1.0, 1.0) >= 0 > claimed_utility(0.5, 0.6)
        assert self.verdict().failed == ("reproduction", "benefit")


def one(text: str, **flags: bool) -> Procedure:
    return Procedure("p", steps=(Step("s1", text, **flags),))


class TestSafety:
    @pytest.mark.parametrize(
        ("text", "violated"),
        [
            ("display the repayment dropdown", False),
            ("pay the bill", True),
            ("drop the table", True),
            ("delete it", True),
            ("transfer", True),
        ],
    )
    def test_words_are_matched_as_words_r28(self, text: str, violated: bool) -> None:
        """SEPM-R28 with word boundaries: `pay` is not in "display", `drop` not in "dropdown"."""
        report = assess(one(text))
        assert bool(report.violations) is violated
        assert report.allowed() is not violated

    def test_a_confirmation_allows_what_cannot_be_undone_and_risk_adds_up_r28(self) -> None:
        """SEPM-R28: the risk must lie strictly below 0.50."""
        assert assess(one("pay the bill", requires_confirmation=True)).risk == pytest.approx(0.15)
        many = Procedure("p", steps=tuple(Step(f"s{i}", f"remove item {i}") for i in range(4)))
        assert assess(many).risk == pytest.approx(0.60) and not assess(many).allowed()
        assert not assess(one("run the migration")).allowed()
        assert assess(Procedure("p", steps=(Step("s1", "make a backup"), Step("s2", "run the migration")))).allowed()

    def test_protected_steps_survive_every_update_r33(self) -> None:
        """SEPM-R33: with their protection and preconditions; context changes need a variant."""
        ready = (Condition("mug", "clean", True),)
        base = Procedure("p", steps=(Step("s1", "check the seal", ready, (), True, True), Step("s2", "go")))
        assert assess(base, base).allowed()
        for changed in (
            Procedure("p", steps=(Step("s2", "go"),)),
            Procedure("p", steps=(Step("s1", "check it", ready, (), True, True),)),
            Procedure("p", steps=(Step("s1", "check the seal", ready),)),
            Procedure("p", steps=(Step("s1", "check the seal", (), (), True, True),)),
        ):
            assert not assess(changed, base).allowed()
        narrowed = Procedure("p", steps=base.steps, conditions=("room=kitchen",))
        assert not assess(narrowed, base).allowed() and assess(narrowed, base, specialises=True).allowed()
        assert not assess_delete(base).allowed() and assess_delete(one("go")).allowed()


def test_a_procedure_reads_back_as_it_was_written_and_is_rendered_with_everything_it_says() -> None:
    content = Procedure(
        "p", "about", "f", ("when",), ("tag",), ("room=x",), ("no=y",),
        (Step("s1", "take it", (Condition("a", "b", 1),), (), True, False), Step("s2", "put it")), (("s1", "s2"),),
        (ConditionalWarning("slow down", "wet", ("1:2",), "sig"),), "c1", "sensitive",
    )  # fmt: skip
    assert from_plain(content.plain()) == content
    text = render(content, "c2 v1", note="provisional")
    for part in (
        "[c2 v1] (provisional)",
        "room=x",
        "1. take it [s1]",
        "s1 -> s2",
        "Confirm s1",
        "Before s1: a.b=1",
        "slow down (when: wet)",
    ):
        assert part in text
    assert len(render_all([(content, "a", ""), (content, "b", "")], 200)) == 1
    assert len(render_all([(content, "a", ""), (content, "b", "")], 2000)) == 2


def test_a_pool_of_an_earlier_version_is_refused() -> None:
    """One clear error, not a missing column in the middle of a task."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE sepm_version (sop_id TEXT, version INTEGER, procedure TEXT)")
    with pytest.raises(ConfigError, match="made by an earlier version"):
        pool(db)
