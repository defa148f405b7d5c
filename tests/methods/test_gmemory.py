"""method=gmemory: METHODS.md 3.4, GMEM-R1..R6, and the public code's bugs as switches."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from harness.contracts import Call, Guidance, Member, MemoryServices, Outcome, StepResult, Task, Trajectory, Turn
from methods.gmemory.graphs import sparsified, without_numbers
from methods.gmemory.insights import Insights
from methods.gmemory.method import GMemory
from methods.gmemory.operations import Change, Operation, credit, merge_cap, parse_operations, resolve
from tests.support.fakes import FakeModels

WON, LOST = Outcome(1.0, True, "completed", "You won."), Outcome(0.0, False, "failed", "You lost.")
SOLVER = Member("solver", "solver")
RULES = ("Look first, because it helps.", "Open doors, because things hide.", "Be quick, because steps end.")


def task(number: int, key: str) -> Task:
    return Task(f"t{number}", number, f"goal of {key}", key, "family")


def episode(*steps: tuple[str, float], start: str = "A room.") -> Trajectory:
    return Trajectory(
        start, tuple(Turn(i, "solver", act, act, StepResult(f"saw {act}", reward)) for i, (act, reward) in enumerate(steps, 1))
    )


def answers(call: Call) -> str:
    return {"rate": "Score: 5", "keysteps": "1. act", "mistake": "It gave up."}.get(call.role.rpartition(".")[2], "")


def memory(models: FakeModels | None = None, db: sqlite3.Connection | None = None, **config: Any) -> GMemory:
    services = MemoryServices(db or sqlite3.connect(":memory:", isolation_level=None), models or FakeModels(answers), 0)
    made = GMemory(GMemory.Config(**{"embedder": "hash256", **config}), services)
    made.open()
    return made


def play(method: GMemory, number: int, key: str, outcome: Outcome = WON, *steps: tuple[str, float]) -> Guidance:
    guidance = method.on_task_start(task(number, key), frozenset(), (SOLVER,))
    trajectory = episode(*(steps or ((f"do {key}", 0.0),)))
    for turn in trajectory.turns:
        method.review(SOLVER, turn.step - 1, turn.raw)
        method.after_action(turn)
    method.on_task_end(task(number, key), trajectory, outcome)
    return guidance


def rows(method: GMemory, sql: str) -> list[tuple[Any, ...]]:
    return method.services.db.execute(sql).fetchall()


class TestOperations:
    def test_lines_are_parsed_up_to_four(self) -> None:
        text = "Here:\nADD: A rule, because so.\nEDIT 2: Better, because so.\n- REMOVE 1: Old, because.\nAGREE 3: Yes, because.\nADD: Fifth."
        assert [(o.kind, o.number) for o in parse_operations(text)] == [("ADD", None), ("EDIT", 2), ("REMOVE", 1), ("AGREE", 3)]

    @pytest.mark.parametrize(
        "line",
        [
            "ADD: no period",
            "ADD: A rule. ADD: another.",
            "ADD A rule.",
            "ADDITION: x.",
            "add: x.",
            "EDIT 1: do AGREE 2.",
            "ADD: ",
        ],
    )
    def test_lines_that_are_none(self, line: str) -> None:
        assert parse_operations(line) == []

    def resolved(
        self, *operations: Operation, rules: tuple[str, ...] = RULES, agree_missing: str = "ignore", max_rules: int = 10
    ) -> list[Change]:
        return resolve(operations, rules, max_rules=max_rules, agree_missing=agree_missing)

    def test_add_edit_remove_agree(self) -> None:
        assert self.resolved(Operation("ADD", None, "New, because new.")) == [Change(None, "New, because new.", 2, "ADD")]
        assert self.resolved(Operation("EDIT", 2, "Open all, because new.")) == [Change(1, "Open all, because new.", 1, "EDIT")]
        assert self.resolved(Operation("REMOVE", 3, "gone.")) == [Change(2, None, -1, "REMOVE")]
        assert self.resolved(Operation("AGREE", 1, "yes.")) == [Change(0, None, 1, "AGREE")]

    def test_a_removal_weighs_three_when_the_list_is_long(self) -> None:
        rules = tuple(f"Rule {n}, because {n}." for n in range(10))
        assert self.resolved(Operation("REMOVE", 3, "gone."), rules=rules)[0].credit == -3
        assert self.resolved(Operation("REMOVE", 3, "gone."), rules=rules[:9])[0].credit == -1

    def test_duplicates_change_nothing_or_agree(self) -> None:
        assert self.resolved(Operation("ADD", None, "look first.")) == []
        assert self.resolved(Operation("ADD", None, "Always: Look first, because it helps.")) == []
        assert self.resolved(Operation("EDIT", 2, "Be quick, because steps end.")) == [Change(2, None, 1, "AGREE")]

    def test_numbers_that_lead_nowhere_are_ignored(self) -> None:
        for kind in ("EDIT", "REMOVE", "AGREE"):
            for number in (0, 4, None):
                assert self.resolved(Operation(kind, number, "unknown words.")) == []  # type: ignore[arg-type]

    def test_agreeing_with_a_rule_that_is_not_there_hits_the_last_one_only_where_that_bug_is_asked_for(self) -> None:
        """P-9."""
        lost = Operation("AGREE", 9, "unknown words.")
        assert self.resolved(lost) == []
        assert self.resolved(lost, agree_missing="last") == [Change(2, None, 1, "AGREE")]
        assert self.resolved(lost, agree_missing="last", rules=()) == []

    @pytest.mark.parametrize(
        ("count", "third", "published"), [(1, 1, 0), (3, 1, 0), (4, 2, 0), (8, 3, 0), (9, 3, 1), (10, 4, 1), (20, 7, 2)]
    )
    def test_the_merge_cap(self, count: int, third: int, published: int) -> None:
        """P-8: the published one divides twice."""
        assert (merge_cap(count, "third"), merge_cap(count, "published")) == (third, published)

    def test_backward_credit(self) -> None:
        assert (credit(True), credit(False)) == (1, -2)


class TestInsights:
    def insights(self) -> Insights:
        made = Insights(sqlite3.connect(":memory:", isolation_level=None))
        made.open()
        return made

    def test_rules_are_related_by_at_least_half_of_the_group(self) -> None:
        made = self.insights()
        made.add("one", ["a"])
        made.add("two", ["a", "b"])
        assert [i.rule for i in made.related(["a", "b", "c", "d"], 2)] == ["two"]
        assert [i.rule for i in made.related(["a"], 0.5)] == ["one", "two"]

    def test_rules_are_ranked_by_the_tasks_that_speak_for_them(self) -> None:
        made = self.insights()
        made.add("none", ["z"])
        made.add("one", ["a"])
        made.add("two", ["a", "b"])
        made.add("high", ["a"], 9)
        assert [i.rule for i in made.ranked(["a", "b"], 5)] == ["two", "high", "one"]
        assert [i.rule for i in made.ranked(["a", "b", "b"], 1)] == ["two"]

    def test_a_rule_without_score_is_dropped_and_its_number_never_used_again(self) -> None:
        made = self.insights()
        first = made.add("one", ["a"])
        made.credit([first], -2)
        assert made.all() == [] and made.related(["a"], 1) == []
        assert made.add("two", ["a"]) == first + 1

    def test_changes_move_scores_and_supporters(self) -> None:
        made = self.insights()
        made.add("one", ["a"])
        made.add("two", ["a"])
        shown = made.all()
        made.apply([Change(0, "uno", 1, "EDIT"), Change(1, None, -3, "REMOVE"), Change(None, "three", 2, "ADD")], shown, ["b"])
        assert [(i.rule, i.score) for i in made.all()] == [("uno", 3), ("three", 2)]
        assert [i.rule for i in made.related(["b"], 1)] == ["uno", "three"]

    def test_a_new_rule_that_exists_word_for_word_is_an_agreement(self) -> None:
        made = self.insights()
        made.add("one", ["a"])
        made.apply([Change(None, "one", 2, "ADD")], [], ["b"])
        assert [(i.rule, i.score) for i in made.all()] == [("one", 3)]


class TestGraphs:
    def test_steps_that_led_nowhere_are_left_out(self) -> None:
        text = sparsified(episode(("think: hm", -1.0), ("go", 0.0), ("jump", -1.0), ("win", 1.0))).text()
        assert text == "A room.\n> go\nsaw go\n> win\nsaw win"

    def test_numbers_are_removed_with_their_blank(self) -> None:
        assert without_numbers("go to mug 12, on desk 1.") == "go to mug, on desk."

    def test_a_state_is_the_graph_of_its_messages(self) -> None:
        method = memory()
        method.on_task_start(task(0, "a"), frozenset(), (SOLVER,))
        for agent in ("node_1", "node_2", "node_1"):
            method.review(Member(agent, "solver"), 0, f"{agent} says")
        turn = Turn(1, "node_1", "go", "go", StepResult("ok", 0.0), ("node_2", "node_1"))
        method.after_action(turn)
        method.after_action(Turn(2, "decision", "win", "win", StepResult("ok", 1.0)))
        method.on_task_end(task(0, "a"), Trajectory("s", (turn,)), WON)
        (first, second) = rows(method, "SELECT messages, edges FROM memory_gmemory_state ORDER BY step")
        assert [node for node, _ in json.loads(first[0])] == ["node_1-0", "node_2-0", "node_1-1"]
        assert json.loads(first[1]) == [["node_2-0", "node_1-1"]]
        assert json.loads(second[0]) == [["decision-0", "win"]] and json.loads(second[1]) == []

    def test_states_that_changed_nothing_are_not_kept(self) -> None:
        method = memory()
        play(method, 0, "a", WON, ("think: hm", -1.0), ("win", 1.0))
        assert rows(method, "SELECT task, step, action FROM memory_gmemory_state") == [(1, 2, "win")]

    def test_tasks_are_linked_from_a_cosine_of_085_on(self) -> None:
        """R1. Keys of n words that share all but one have the cosine (n - 1) / n here."""
        method = memory()
        words = [f"w{n}" for n in range(20)]
        play(method, 0, " ".join(words[:7]))
        play(method, 1, " ".join([*words[:6], "other"]))  # 6/7 = 0.857
        play(method, 2, "far away things entirely")
        assert rows(method, "SELECT older, newer FROM memory_gmemory_edge") == [(1, 2)]


class TestRetrieval:
    def test_two_candidates_are_rated_and_one_is_shown_with_key_steps(self) -> None:
        models = FakeModels(
            lambda call: (
                "Score: 9" if "> do clean b" in call.messages[1]["content"] and call.role.endswith("rate") else answers(call)
            )
        )
        method = memory(models)
        for number, key in enumerate(("clean a", "clean b", "heat c")):
            play(method, number, key)
        before = len(models.calls)
        (card,) = play(method, 3, "clean x").cards
        assert models.roles()[before : before + 3] == ["memory.gmemory.rate"] * 2 + ["memory.gmemory.keysteps"]
        assert "> do clean b" in card.trajectory and card.key_steps == "1. act"

    def test_failures_are_stored_and_never_shown(self) -> None:
        """R6."""
        method = memory()
        play(method, 0, "clean a", LOST, ("break it", 0.0))
        assert play(method, 1, "clean a").cards == ()
        assert rows(method, "SELECT success, fail_reason, key_steps FROM memory_trajectory WHERE id = 1") == [
            (0, "It gave up.", "1. act")
        ]

    @pytest.mark.parametrize(("fill", "shown"), [("append", {1, 2}), ("replace", {2, 3})])
    def test_what_the_query_graph_found_is_filled_up_and_not_replaced(self, fill: str, shown: set[int]) -> None:
        """P-7: the published code puts the plain nearest neighbours in the place of what the hops found."""
        models = FakeModels(answers)
        method = memory(models, fill=fill)
        words = [f"w{n}" for n in range(9)]
        play(method, 0, " ".join(words[:8]), LOST, ("step 0", 0.0))  # the seed, a failure
        play(method, 1, " ".join([*words[:7], "x"]), WON, ("step 1", 0.0))  # linked with it
        for number in (2, 3):  # nearer to the task, but linked with nothing
            play(method, number, " ".join(words[1:9]), WON, (f"step {number}", 0.0))
            method.services.db.execute("DELETE FROM memory_gmemory_edge WHERE newer > 2")
        before = len(models.calls)
        method.on_task_start(task(9, " ".join([*words[:8], "w8"])), frozenset(), (SOLVER,))
        rated = {int(call.messages[1]["content"].partition("> step ")[2][0]) for call in models.calls[before:]}
        assert rated == shown

    def test_a_threshold_keeps_far_successes_away(self) -> None:
        method = memory(threshold=0.5)
        play(method, 0, "completely different words")
        assert play(method, 1, "clean a mug").cards == ()

    def test_the_description_holds_no_feedback_unless_asked_for(self) -> None:
        """P-6."""
        plain, published = memory(), memory(description_feedback=True)
        for method in (plain, published):
            play(method, 0, "clean a")
        assert play(plain, 1, "clean a").cards[0].task == "goal of clean a"
        assert play(published, 1, "clean a").cards[0].task == "goal of clean a\nYou won."

    def test_nothing_is_read_during_a_task(self) -> None:
        """R5: the hooks between start and end ask neither database nor model."""
        models = FakeModels(answers)
        method = memory(models)
        play(method, 0, "clean a")
        method.on_task_start(task(1, "clean a"), frozenset(), (SOLVER,))
        seen: list[str] = []
        method.services.db.set_trace_callback(seen.append)
        before = len(models.calls)
        assert method.before_action(SOLVER, 0) == "" and method.review(SOLVER, 0, "go").text == "go"
        method.after_action(Turn(1, "solver", "go", "go", StepResult("ok")))
        assert method.episode(SOLVER, episode(("go", 0.0))) == episode(("go", 0.0)).text()
        assert seen == [] and len(models.calls) == before

    def test_insights_are_shown_to_all_or_projected_to_roles(self) -> None:
        def answer(call: Call) -> str:
            return "1. For you: look.\n2. For you: open." if call.role.endswith("project") else answers(call)

        for projector, expected in ((False, {"*": RULES[:2]}), (True, {"solver": ("For you: look.", "For you: open.")})):
            models = FakeModels(answer)
            method = memory(models, projector=projector, insights_topk=2)
            for rule in RULES:
                method.insights.add(rule, ["clean a"])
            guidance = method.on_task_start(task(0, "clean a"), frozenset(), (SOLVER, Member("ranker", "ranker", acts=False)))
            assert guidance.insights == expected
            assert models.roles() == ["memory.gmemory.project"] * projector


class TestLearning:
    def asking(self, *operations: str) -> tuple[FakeModels, Callable[[], list[Call]]]:
        lines = "\n".join(operations)
        models = FakeModels(lambda call: lines if call.role.endswith(("insights", "contrast")) else answers(call))
        return models, lambda: [call for call in models.calls if call.role.endswith(("insights", "contrast"))]

    def test_insights_are_learnt_at_every_fifth_task_from_five_groups(self) -> None:
        models, asked = self.asking("ADD: Look, because it helps.")
        method = memory(models)
        for number in range(11):
            play(method, number, f"clean {number}")
            assert len(asked()) == 5 * ((number + 1) // 5)

    def test_a_group_with_a_failure_is_contrasted(self) -> None:
        models, asked = self.asking()
        method = memory(models)
        for number in range(5):
            play(method, number, f"clean {number}", LOST if number == 2 else WON)
        roles = {call.role.rpartition(".")[2] for call in asked()}
        assert roles == {"contrast", "insights"} and len(asked()) == 10
        text = next(call for call in asked() if call.role.endswith("contrast")).messages[1]["content"]
        assert "Why it failed: It gave up." in text and "Rules so far:\n(none)" in text

    def test_the_groups_depend_on_the_seed_and_on_nothing_else(self) -> None:
        """R2, P-11: whatever else draws from the global generator."""
        import random

        asked = []
        for _ in range(2):
            random.random()
            models, calls = self.asking()
            method = memory(models)
            for number in range(5):
                play(method, number, f"clean {number}")
            asked.append([call.messages for call in calls()])
        assert asked[0] == asked[1] and len({messages[1]["content"] for messages in asked[0]}) > 1

    def test_a_full_list_discourages_new_rules(self) -> None:
        models, asked = self.asking()
        method = memory(models, max_rules=2, start=1, every=1)
        for rule in RULES:
            method.insights.add(rule, ["clean a"])
        play(method, 4, "clean a")
        assert all("The list is full" in call.messages[1]["content"] for call in asked())

    def test_merging_replaces_all_rules_by_those_of_their_clusters(self) -> None:
        models = FakeModels(
            lambda call: "1. Merged, because.\n2. Beyond the cap." if call.role.endswith("merge") else answers(call)
        )
        method = memory(models, merge_every=6, every=100)
        for rule in RULES:
            method.insights.add(rule, ["clean a mug"])
        for number in range(6):
            play(method, number, "clean a mug" if number % 2 else "heat some egg")
        (merged,) = method.insights.all()
        # three rules merge into one; the clusters without rules cost no call
        assert (merged.rule, [r for r in models.roles() if r.endswith("merge")]) == ("Merged, because.", ["memory.gmemory.merge"])
        assert rows(method, "SELECT DISTINCT key FROM memory_gmemory_link") == [("clean a mug",)]

    def test_rules_are_merged_in_batches_of_ten_and_an_unreadable_answer_loses_none(self) -> None:
        models = FakeModels(answers)
        method = memory(models, merge_every=3, every=100)
        for number in range(12):
            method.insights.add(f"Rule {number}, because.", ["a"])
        for number in range(3):
            play(method, number, "a")
        assert [r for r in models.roles() if r.endswith("merge")] == ["memory.gmemory.merge"] * 2
        assert len(method.insights.all()) == 12

    def test_backward_credits_what_was_shown(self) -> None:
        method = memory()
        shown, other = method.insights.add(RULES[0], ["clean a"]), method.insights.add(RULES[1], ["z"])
        play(method, 0, "clean a", WON)
        assert {i.id: i.score for i in method.insights.all()} == {shown: 3, other: 2}
        play(method, 1, "clean a", LOST)
        assert {i.id: i.score for i in method.insights.all()} == {shown: 1, other: 2}
        play(method, 2, "clean a", LOST)
        assert {i.id for i in method.insights.all()} == {other}

    def test_backward_can_be_switched_off(self) -> None:
        """P-10: as under the public DyLAN host."""
        method = memory(backward=False)
        method.insights.add(RULES[0], ["clean a"])
        play(method, 0, "clean a", LOST)
        assert method.insights.all()[0].score == 2


class TestSwitches:
    @pytest.mark.parametrize(
        "bad",
        [{"fill": "none"}, {"merge_cap": "half"}, {"agree_missing": "first"}, {"hop": -1}, {"every": 0}, {"embedder": "glove"}],
    )
    def test_values_that_make_no_sense_are_refused(self, bad: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            GMemory.Config(**bad)

    def test_the_defaults_are_the_sound_ones(self) -> None:
        config = GMemory.Config()
        assert (config.fill, config.merge_cap, config.agree_missing, config.backward) == ("append", "third", "ignore", True)


def test_calls_belong_to_the_memory_key_with_the_right_phase() -> None:
    """R4."""
    models = FakeModels(answers)
    method = memory(models)
    play(method, 0, "clean a")
    play(method, 1, "clean a", LOST)
    assert {call.key for call in models.calls} == {"memory"}
    assert {(call.role.rpartition(".")[2], call.phase) for call in models.calls} == {
        ("rate", "retrieve"),
        ("keysteps", "write"),
        ("mistake", "write"),
    }
    assert {call.temperature for call in models.calls if call.role.endswith("keysteps")} == {0.1}
