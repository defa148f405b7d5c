"""method=generative_full: the memory stream of METHODS.md 3.2, the variant."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import numpy as np
import pytest

from harness.contracts import Call, Guidance, MemoryServices, Outcome, Task
from methods.generative_full.method import GenerativeFull
from methods.generative_full.scoring import Weights, min_max, parse_importances, parse_insight, recency, score
from methods.text.lists import list_items, one_line
from tests.support.fakes import FakeModels, trajectory

WON, LOST = Outcome(1.0, True, "completed", "You won."), Outcome(0.0, False, "failed", "You lost.")


def task(number: int, key: str) -> Task:
    return Task(f"t{number}", number, f"goal {key}", key, "family")


def answers(rating: int) -> FakeModels:
    def answer(call: Call) -> str:
        purpose = call.role.rpartition(".")[2]
        lines = call.messages[1]["content"].splitlines()
        count = len([line for line in lines if line.partition(". ")[0].isdigit()])
        return {
            "importance": "\n".join(f"{n}: {rating}" for n in range(1, count + 1)),
            "questions": "1. What helps?\n2. What hurts?\n3. Where are things?\n4. Too many?",
            "reflect": "1. Looking helps (because of 1, 2)\n2. Haste hurts (because of 1)",
        }[purpose]

    return FakeModels(answer)


def memory(models: FakeModels, **config: Any) -> GenerativeFull:
    db = sqlite3.connect(":memory:", isolation_level=None)
    made = GenerativeFull(GenerativeFull.Config(**{"embedder": "hash256", **config}), MemoryServices(db, models, 0))
    made.open()
    return made


def play(method: GenerativeFull, number: int, key: str, outcome: Outcome = WON, steps: int = 2) -> Guidance:
    guidance = method.on_task_start(task(number, key), frozenset(), ())
    method.on_task_end(task(number, key), trajectory(*((f"do {key}", "ok") for _ in range(steps))), outcome)
    return guidance


def records(method: GenerativeFull) -> list[tuple[Any, ...]]:
    sql = "SELECT kind, text, created, last_access, importance, shown, evidence FROM memory_record ORDER BY id"
    return method.services.db.execute(sql).fetchall()


class TestScoring:
    def test_recency_decays_by_0995_a_task(self) -> None:
        """The newest has the largest value: the public code inverts this."""
        values = recency(10, np.array([10.0, 9.0, 0.0]))
        assert values == pytest.approx([1.0, 0.995, 0.995**10]) and values[0] > values[1] > values[2]

    def test_components_are_scaled_over_the_candidates(self) -> None:
        assert min_max(np.array([2.0, 4.0, 3.0])) == pytest.approx([0, 1, 0.5])
        assert min_max(np.array([7.0, 7.0])) == pytest.approx([0.5, 0.5])

    def test_the_score_is_the_weighted_sum(self) -> None:
        access, importance, relevance = np.array([1.0, 2.0]), np.array([10.0, 1.0]), np.array([0.2, 0.4])
        assert score(2, access, importance, relevance, Weights()) == pytest.approx([1, 2])
        assert score(2, access, importance, relevance, Weights(0, 3, 1)) == pytest.approx([3, 1])

    @pytest.mark.parametrize(
        ("text", "count", "expected"),
        [
            ("1: 3\n2: 11\n3: 0", 3, [3, 10, 1]), ("2: 5", 3, [1, 5, 1]), ("[4, 5]", 2, [4, 5]), ("[4, 5]", 3, [1, 1, 1]),
            ("I say 7", 1, [7]), ("", 2, [1, 1]), ("Score: 8", 1, [8]),
        ],
    )  # fmt: skip
    def test_importances_are_read_and_clamped(self, text: str, count: int, expected: list[int]) -> None:
        assert parse_importances(text, count) == expected

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            ("A (because of 1, 3)", ("A", [11, 13])),
            ("A (2)", ("A", [12])),
            ("A", ("A", [])),
            ("A (because of 9)", ("A", [])),
            ("A (for once)", ("A (for once)", [])),
        ],
    )
    def test_evidence_is_cited_by_place(self, item: str, expected: tuple[str, list[int]]) -> None:
        assert parse_insight(item, (11, 12, 13)) == expected

    def test_lists_and_lines(self) -> None:
        assert list_items("x\n1. a\n2) b\n- c\n- c", 9) == ["a", "b", "c"] and list_items("1. a\n2. b", 1) == ["a"]
        assert one_line("A b.\nC d!  E? F.", 2) == "A b. C d!"


class TestStream:
    def test_a_task_leaves_an_observation_a_step_and_a_summary_rated_in_one_call(self) -> None:
        models = answers(4)
        method = memory(models)
        play(method, 0, "clean")
        assert models.roles() == ["memory.generative_full.importance"]
        assert [(row[0], row[4]) for row in records(method)] == [("observation", 4), ("observation", 4), ("summary", 4)]
        assert records(method)[0][1] == "In 'goal clean': do clean -> ok"

    def test_what_is_retrieved_counts_as_used_now(self) -> None:
        method = memory(answers(4), candidates=1)
        play(method, 0, "clean")
        play(method, 1, "clean")
        # created at task 1, the best record used again at task 2
        assert sorted(row[3] for row in records(method)[:3]) == [1, 1, 2]

    def test_the_context_budget_is_kept(self) -> None:
        method = memory(answers(4), context_budget=100)
        play(method, 0, "clean")
        brief = play(method, 1, "clean").brief
        assert 0 < len(brief) <= 100 and brief.startswith("What the team remembers:\n- ")

    def test_records_of_failed_tasks_are_kept_and_not_shown_unless_asked_for(self) -> None:
        for show, expected in ((False, False), (True, True)):
            method = memory(answers(4), show_failed=show)
            play(method, 0, "clean", LOST)
            assert ("do clean" in play(method, 1, "clean").brief) is expected
            assert len(records(method)) == 6

    def test_the_first_task_is_shown_nothing(self) -> None:
        assert play(memory(answers(4)), 0, "clean").brief == ""


class TestReflection:
    def test_it_is_due_at_150_of_importance(self) -> None:
        models = answers(10)
        method = memory(models)
        due = []
        for number in range(11):
            play(method, number, f"clean {number}", steps=2)  # 30 a task
            due.append("memory.generative_full.questions" in models.roles())
            models.calls.clear()
        # 150 after the fifth task; the reflection's own 2 insights count (20), so 20 + 5 × 30 = 170 after the tenth
        assert [n for n, yes in enumerate(due, 1) if yes] == [5, 10]

    def test_149_is_not_enough(self) -> None:
        models = answers(10)
        method = memory(models, reflect_at=150)
        for number in range(4):
            play(method, number, "clean", steps=2)
        assert method.stream.unreflected() == 120 and "memory.generative_full.questions" not in models.roles()

    def test_three_questions_insights_with_evidence_rated_too(self) -> None:
        models = answers(10)
        method = memory(models, reflect_at=30)
        play(method, 0, "clean")
        assert [role.rpartition(".")[2] for role in models.roles()] == [
            "importance",
            "questions",
            "reflect",
            "reflect",
            "reflect",
            "importance",
        ]
        found = [row for row in records(method) if row[0] == "reflection"]
        assert [row[1] for row in found] == ["Looking helps", "Haste hurts"]  # the same from three questions: stored once
        assert len(json.loads(found[0][6])) == 2 and {row[4] for row in found} == {10}
        assert method.stream.unreflected() == 0

    def test_reflections_build_on_failures_and_are_shown(self) -> None:
        method = memory(answers(10), reflect_at=30)
        play(method, 0, "clean", LOST)
        assert play(method, 1, "clean").brief == "What the team remembers:\n- Looking helps\n- Haste hurts"

    def test_an_answer_that_cannot_be_read_ends_the_reflection(self) -> None:
        models = FakeModels(lambda call: "1: 10\n2: 10\n3: 10" if call.role.endswith("importance") else "none")
        method = memory(models, reflect_at=30)
        play(method, 0, "clean")
        assert len(models.calls) == 2 and method.stream.unreflected() == 0
