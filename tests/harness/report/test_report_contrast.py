"""`memarena compare`, `memarena stability` and `memarena check-reported`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from report_runs import LEDGER, manifest, play

from harness.cli import main
from harness.errors import UserError
from harness.report import checking
from harness.report.contrast import contrast
from harness.report.contrast_text import render, render_sequential
from harness.report.stability import render as render_stability
from harness.report.stability import stability
from harness.store.database import Store
from harness.store.view import RunView

Write = Callable[..., Path]
FIRST = [1.0] * 12 + [0.0] * 2 + [1.0] * 4 + [0.0] * 2
SECOND = [0.0] * 12 + [1.0] * 2 + [1.0] * 4 + [0.0] * 2


@pytest.fixture
def two(write_run: Write) -> tuple[RunView, RunView]:
    """Twelve tasks that only the first solves, two that only the second does, four that both do."""
    return RunView(write_run("sepm", FIRST, labels__method="sepm", cell__method={"k": 5})), RunView(write_run("none", SECOND))


# --- compare ----------------------------------------------------------------------------------------------------------
def test_two_methods_on_the_same_tasks(two: tuple[RunView, RunView]) -> None:
    found = contrast([two[0]], [two[1]], detect=0.3)
    assert (found["pairs"], found["kind"], found["differs_in"]) == (20, "binary", [])
    assert found["difference"]["mean"] == 0.5
    assert found["tests"]["mcnemar"] == {"only_first": 12, "only_second": 2, "p": pytest.approx(2 * (1 + 14 + 91) / 2**14)}
    assert found["effect"]["odds_ratio"]["value"] == pytest.approx(6.0)
    assert found["effect"]["cohens_h"] == pytest.approx(2 * (math.asin(math.sqrt(0.8)) - math.asin(math.sqrt(0.3))))
    assert found["tasks_needed"] == {"alpha": 0.05, "power": 0.8, "observed": 22, "detect": 0.3, "for_detect": 64}
    assert found["tokens"]["relative"] == 0
    json.dumps(found, allow_nan=False)


def test_the_text_says_all_of_it(two: tuple[RunView, RunView]) -> None:
    text = render(contrast([two[0]], [two[1]], detect=0.3))
    for line in (
        "A  sepm  20/20      0    80.00  [58.40, 91.93]",
        "B  none  20/20      0    30.00  [14.55, 51.90]",
        "Pairs             20 tasks with a result on both sides; without a partner: 0 of A, 0 of B",
        "Test              exact McNemar p = 0.013 (12 solved only by A, 2 only by B)",
        "Effect size       odds of the discordant pairs 6.00 [1.34, 55.20]; Cohen's h = 1.06",
        "Tasks needed      22 tasks for a difference like this one (power 0.8, alpha 0.05, two-sided, McNemar)",
        "64 tasks for 30 points, were the tasks as they are here",
        "Tokens a task     A 120, B 120: +0 [–], +0.0 %",
        "pairs 6–10          100.00    0.00  +100.00  [–]",
        "DECIDED at pair 9: one might have stopped; since then the evidence has fallen, so the difference is not steady",
    ):
        assert line in text
    assert "+50.00 points [" in text and "newcombe)" in text


def test_swapping_the_sides_turns_every_sign(two: tuple[RunView, RunView]) -> None:
    one, other = contrast([two[0]], [two[1]]), contrast([two[1]], [two[0]])
    assert other["difference"]["mean"] == -one["difference"]["mean"]
    assert other["difference"]["interval"]["low"] == pytest.approx(-one["difference"]["interval"]["high"])
    assert other["tests"]["mcnemar"]["p"] == one["tests"]["mcnemar"]["p"]
    assert other["effect"]["cohens_h"] == pytest.approx(-one["effect"]["cohens_h"])
    assert other["sequential"]["e"] == pytest.approx(one["sequential"]["e"])
    assert contrast([two[0]], [two[1]]) == one


def test_graded_scores_are_tested_by_permutation(write_run: Write) -> None:
    better = write_run("sepm", [0.5, 0.75, 1.0, 0.25, 0.5], labels__method="sepm")
    worse = write_run("none", [0.25, 0.5, 0.5, 0.0, 0.25])
    found = contrast([RunView(better)], [RunView(worse)], detect=0.1)
    assert (found["kind"], found["tests"]["mcnemar"]) == ("graded", None)
    assert found["tests"]["permutation"] == {"p": 2 / 32, "exact": True}
    assert found["effect"]["standardised"] == pytest.approx(0.3 / math.sqrt(0.05 / 4))
    text = render(found)
    assert "paired permutation p = 0.062 (all sign flips)" in text and "standardised difference d_z = 2.68" in text
    assert "two-sided, paired t)" in text


def test_only_common_tasks_are_paired_and_the_others_counted(write_run: Write, tmp_path: Path) -> None:
    write_run("sepm", [1.0, 1.0], labels__method="sepm")
    directory = tmp_path / "runs" / "none"
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps(manifest("none", 4)))
    with Store(directory) as store:
        play(store, 0, 0.0, [LEDGER])
        play(store, 1, 0.0, [LEDGER], end="infra_failure")
        play(store, 2, 1.0, [LEDGER])
        play(store, 3, 0.0, [LEDGER], kind="agent_failure")
    found = contrast([RunView(tmp_path / "runs" / "sepm")], [RunView(directory)])
    assert (found["pairs"], found["difference"]["mean"]) == (1, 1.0)
    assert (found["first"]["without_partner"], found["second"]["without_partner"]) == (1, 2)
    text = render(found)
    assert "B  none    3/4     +1    33.33" in text and "1 agent failure (scored 0)" in text


def test_what_else_differs_between_the_runs_is_said(write_run: Write) -> None:
    one = write_run("a", [1.0, 0.0], labels__method="sepm", cell__run={"limit": 5}, seed=1)
    found = contrast([RunView(one)], [RunView(write_run("b", [0.0, 0.0]))])
    assert any("limit" in line for line in found["differs_in"]) and any(line.startswith("seed") for line in found["differs_in"])
    assert "A and B differ in more than the method (B → A), so the difference is not the method's alone:" in render(found)


def test_seeds_of_two_methods_are_paired_stream_by_stream(write_run: Write) -> None:
    ours = [RunView(write_run(f"s{seed}", [1.0, 1.0, 1.0, 0.0], labels__method="sepm", seed=seed)) for seed in (0, 1, 2)]
    theirs = [RunView(write_run(f"n{seed}", [1.0, 0.0, float(seed == 1), 0.0], seed=seed)) for seed in (0, 1, 2)]
    found = contrast(ours, theirs[::-1])
    assert (found["streams"], found["kind"], found["sequential"]) == (3, "graded", None)
    assert found["first"]["seeds"] == found["second"]["seeds"] == [0, 1, 2]
    assert found["difference"]["mean"] == pytest.approx((0.5 + 0.25 + 0.5) / 3)
    assert found["difference"]["spread_of_streams"] == pytest.approx(0.1443, abs=1e-4)
    assert found["difference"]["interval"]["method"] == "pigeonhole bootstrap"
    assert "in each of 3 streams" in render(found) and "only for one run a side" in render(found)
    with pytest.raises(UserError, match="3 streams on one side and 2 on the other"):
        contrast(ours, theirs[:2])
    with pytest.raises(UserError, match="s0 and n0 are not streams of one cell"):
        contrast([ours[0], theirs[0]], theirs[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels__env": "officebench"}, "played other environments"),
        ({"environment__data_digest": "other"}, "played other data"),
    ],
)
def test_other_tasks_are_not_paired(change: dict[str, str], message: str, write_run: Write) -> None:
    one, other = write_run("a", [1.0]), write_run("b", [1.0], **change)
    with pytest.raises(UserError, match=message):
        contrast([RunView(one)], [RunView(other)])


def test_nothing_in_common_and_senseless_options_are_refused(write_run: Write) -> None:
    one, young = RunView(write_run("a", [1.0])), RunView(write_run("b", [], planned=3))
    with pytest.raises(UserError, match="a and b have no common task with a result"):
        contrast([one], [young])
    with pytest.raises(UserError, match="An alpha of 1 is no error rate"):
        contrast([one], [one], alpha=1)
    with pytest.raises(UserError, match="A difference of 200 points cannot be detected"):
        contrast([one], [one], detect=2)


# --- sequential -------------------------------------------------------------------------------------------------------
def test_a_run_named_twice_does_not_count_as_two(write_run: Write) -> None:
    one, other = (RunView(write_run(name, [1, 0, 1])) for name in ("one", "other"))
    again = RunView(one.directory.parent / "." / "one")
    with pytest.raises(UserError, match=r"The run one is named twice\."):
        contrast([one, again], [other, other])
    with pytest.raises(UserError, match=r"The run one is named twice\."):
        stability([one, again])


def test_what_is_said_of_several_streams_is_over_their_common_tasks(write_run: Write, tmp_path: Path) -> None:
    full, part = (
        RunView(write_run("full", [0, 0, 1, *[1.0] * 9], seed=1)),
        RunView(write_run("part", [0, 1, 0], planned=12, seed=2)),
    )
    other = [RunView(write_run(name, [0, 0, 0], seed=seed, planned=12)) for name, seed in (("x", 1), ("y", 2))]
    side = contrast([full, part], other)["first"]
    assert (side["scored"], side["mean"]) == (15, 1 / 3)
    assert side["interval"]["low"] <= side["mean"] <= side["interval"]["high"]
    found = stability([full, part])
    assert (found["tasks"], found["left_out"], found["range"], found["pooled"]["spread"]) == (3, 9, 0.0, 0.0)


def test_methods_that_are_equal_on_average_still_tell_how_many_tasks_a_difference_takes(write_run: Write) -> None:
    sides = [[RunView(write_run(name, scores))] for name, scores in (("a", [0.5, 0.25, 0.75]), ("b", [0.25, 0.5, 0.75]))]
    needed = contrast(*sides, detect=0.25)["tasks_needed"]
    assert (needed["observed"], needed["for_detect"]) == (None, 10)  # 0.25 is one standard deviation


def test_two_runs_in_progress_are_told_when_they_may_stop(write_run: Write) -> None:
    ahead = RunView(write_run("ahead", [1.0] * 11, planned=134, labels__method="sepm"))
    behind = RunView(write_run("behind", [0.0] * 9, planned=134))
    found = contrast([ahead], [behind])
    assert (found["sequential"]["n"], found["sequential"]["planned"], found["sequential"]["decided_at"]) == (9, 134, 9)
    text = render_sequential(found)
    assert text.startswith("A ahead\nB behind\nSequential")
    assert text.endswith("DECIDED at pair 9: one may stop")
    early = RunView(write_run("early", [0.0] * 4, planned=134))
    assert render_sequential(contrast([ahead], [early])).endswith("not decided: go on")
    done = [RunView(write_run(name, [1.0, 0.0], labels__method=name)) for name in ("x", "y")]
    assert render_sequential(contrast([done[0]], [done[1]])).endswith("not decided, and all planned pairs are played")


def test_pairs_count_in_the_order_in_which_they_became_complete(tmp_path: Path) -> None:
    """The second played the tasks the other way round, and the first played its first task late."""
    for name, scores, order in (("a", [1.0, 0.0, 0.0], [0, 1, 2]), ("b", [0.0, 0.0, 1.0], [2, 1, 0])):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "manifest.json").write_text(json.dumps(manifest(name, 3)))
        with Store(directory) as store:
            for position, task in enumerate(order):
                play(store, position, scores[task], late=name == "a" and task == 0)
                store.db.execute(
                    "UPDATE task SET task_id = ?, task_index = ? WHERE position = ?", (f"task-{task}", task, position)
                )
            store.db.commit()
    found = contrast([RunView(tmp_path / "a")], [RunView(tmp_path / "b")])["sequential"]
    # complete after positions: task 1 (1, 1), task 2 (2, 0), task 0 (0, 2) and late: 0, -1, +1
    assert found["n"] == 3 and found["e"] == pytest.approx(0.75) and found["peak"] == pytest.approx(1.0)


# --- stability --------------------------------------------------------------------------------------------------------
def test_streams_of_one_cell_are_pooled(write_run: Write) -> None:
    scores = {0: [1.0, 1.0, 0.0, 0.0], 1: [1.0, 0.0, 0.0, 0.0], 2: [1.0, 1.0, 1.0, 0.0]}
    found = stability([RunView(write_run(f"s{seed}", held, seed=seed)) for seed, held in scores.items()])
    assert (found["seeds"], found["orders"], found["tasks"], found["learning"]) == (3, 1, 4, None)
    assert found["pooled"]["mean"] == pytest.approx(0.5) and found["pooled"]["spread"] == pytest.approx(0.25)
    assert found["range"] == 0.5
    text = render_stability(found)
    assert "Pooled           50.00 % [" in text and "(3 streams, 4 common tasks; drawn by streams and tasks)" in text
    assert "Within tasks     – (whether tasks go better later takes 3 orders, here 1: run.order=shuffled:<seed>)" in text


def test_three_orders_tell_learning_from_difficulty(tmp_path: Path) -> None:
    """Every task is solved from the second half of the stream on, whatever it is."""
    views = []
    for number, step in enumerate((1, 3, 7)):
        name = f"order-{number}"
        directory = tmp_path / name
        directory.mkdir()
        (directory / "manifest.json").write_text(
            json.dumps(manifest(name, 20, tasks__order=f"shuffled:{number}", cell__run={"order": name}))
        )
        with Store(directory) as store:
            for position in range(20):
                play(store, position, float(position >= 10))
                task = position * step % 20
                store.db.execute(
                    "UPDATE task SET task_id = ?, task_index = ? WHERE position = ?", (f"task-{task}", task, position)
                )
            store.db.commit()
        views.append(RunView(directory))
    found = stability(views)
    assert found["orders"] == 3 and found["same_p"] == 1.0
    assert found["learning"]["slope"] > 3 and found["learning"]["p"] < 0.01
    assert "points a 100 positions later [" in render_stability(found)


def test_along_the_stream_each_stream_counts_by_its_own_order(tmp_path: Path) -> None:
    """Two streams in opposite orders, each better in its second half than the baseline: the gain stands in the second half."""
    views: dict[str, list[RunView]] = {"a": [], "b": []}
    for number, order in enumerate((list(range(10)), list(range(9, -1, -1)))):
        for side, method in (("a", "sepm"), ("b", "none")):
            name = f"{side}{number}"
            (tmp_path / name).mkdir()
            changes = {"labels__method": method, "tasks__order": f"shuffled:{number}"}
            (tmp_path / name / "manifest.json").write_text(json.dumps(manifest(name, 10, **changes)))
            with Store(tmp_path / name) as store:
                for position, task in enumerate(order):
                    play(store, position, float(side == "a" and position >= 5))
                    store.db.execute(
                        "UPDATE task SET task_id = ?, task_index = ? WHERE position = ?", (f"task-{task}", task, position)
                    )
                store.db.commit()
            views[side].append(RunView(tmp_path / name))
    found = contrast(views["a"], views["b"])
    assert [block["mean"] for block in found["learning"]["difference"]["blocks"]] == [0.0, 1.0]
    assert found["difference"]["mean"] == 0.5


def test_stability_refuses_what_is_no_stream_of_the_cell(write_run: Write) -> None:
    one = RunView(write_run("one", [1.0]))
    with pytest.raises(UserError, match="One stream says nothing"):
        stability([one])
    with pytest.raises(UserError, match="other is not of the cell of one"):
        stability([one, RunView(write_run("other", [1.0], labels__method="sepm"))])
    with pytest.raises(UserError, match="young has no result yet"):
        stability([one, RunView(write_run("young", [], planned=2, seed=1))])
    with pytest.raises(UserError, match="did not play the same data"):
        stability([one, RunView(write_run("data", [1.0], seed=1, environment__data_digest="x"))])


# --- check-reported ---------------------------------------------------------------------------------------------------
def test_every_impossible_share_is_named_with_its_neighbours() -> None:
    records = checking.check()
    bad = [record for record in records if record["possible"] is False]
    assert sorted((record["file"], record["value"]) for record in bad) == [
        ("emma_table2.csv", "0.501"),
        ("emma_table2.csv", "0.650"),
        ("smg_table2.csv", "44.2"),
        ("smg_table2.csv", "47.8"),
        ("smg_table2.csv", "51.3"),
        ("smg_table2.csv", "73.1"),
    ]
    text = checking.render(records)
    assert text.endswith("6 reported numbers cannot be a count.")
    assert (
        "(?) smg_table2: smg smg_matched, completion: 73.1 is not a possible count of 200: 146 gives 73.0 and 147 gives 73.5"
        in text
    )


def test_one_file_or_all_of_its_numbers() -> None:
    records = checking.check(["sepm_table1"])
    assert len(records) == 60 and all(record["possible"] in (True, None) for record in records)
    assert checking.render(records).endswith("Every reported share can be a count.")
    assert "sepm_table1: autogen sepm gpt-5-mini alfworld, score: 89.55 is 120 of 134" in checking.render(
        records, everything=True
    )
    assert [record["file"] for record in checking.check(["table1"])] == ["sepm_table1.csv"] * 60 + ["sepm_tokens.csv"] * 8
    with pytest.raises(UserError, match=r"No reported numbers named 'sepm_tabel1.csv'. Did you mean sepm_table1.csv"):
        checking.check(["sepm_tabel1"])


# --- the commands -----------------------------------------------------------------------------------------------------
def test_the_commands_print_text_and_json(
    two: tuple[RunView, RunView], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(tmp_path / "runs")]
    assert main(["compare", "sepm", "none", *root]) == 0
    assert "exact McNemar p = 0.013" in capsys.readouterr().out
    assert main(["compare", "sepm", "none", "--json", "--detect", "30", *root]) == 0
    assert json.loads(capsys.readouterr().out)["tasks_needed"]["for_detect"] == 64
    assert main(["compare", "sepm", "none", "--sequential", *root]) == 0
    assert "Along the stream" not in capsys.readouterr().out
    assert main(["compare", "sepm,none", "none,sepm", "--sequential", *root]) == 2
    assert "--sequential looks at one run a side" in capsys.readouterr().err
    assert main(["compare", "sepm", "nobody", *root]) == 2
    assert "is not a run" in capsys.readouterr().err
    assert main(["check-reported", "sepm_table1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 60
    assert main(["stability", "sepm", "none", *root]) == 2
