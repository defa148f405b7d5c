"""`memarena show` and `memarena list` on fabricated runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_runs import LEDGER, manifest, play

from harness.errors import UserError
from harness.report import listing
from harness.report.show import render, summary
from harness.store.database import Store
from harness.store.view import RunView

JUDGE = replace(LEDGER, role="env.judge", agent=None, phase="judge", key="eval_judge", input_tokens=1000, output_tokens=1)
EMBED = replace(
    LEDGER, role="embed", agent=None, phase="retrieve", key="embed", kind="embedding", input_tokens=7, output_tokens=0
)
MEMORY = replace(LEDGER, role="memory.sepm.extract", agent=None, phase="write", key="memory", input_tokens=50, output_tokens=10)


@pytest.fixture
def eventful(tmp_path: Path) -> Path:
    """Six planned tasks: four results (one an agent failure, one late), one infrastructure failure, one not yet played."""
    directory = tmp_path / "eventful"
    directory.mkdir()
    (directory / "manifest.json").write_text(json.dumps(manifest("eventful", 6, tasks__total=134)))
    with Store(directory) as store:
        play(store, 0, 1.0, [LEDGER, MEMORY], group="1 app")
        play(store, 1, 0.0, [LEDGER, JUDGE], group="2 apps", kind="agent_failure")
        play(store, 2, 0.0, [LEDGER, LEDGER], end="infra_failure")
        play(store, 2, 0.0, [LEDGER], end="infra_failure")
        play(store, 3, 0.0, [LEDGER], end="infra_failure")
        play(store, 3, 1.0, [LEDGER, EMBED], group="1 app", late=True)
        play(store, 4, 1.0, [replace(LEDGER, usage_source="estimate")], group="1 app")
        play(store, 5, 0.0, [LEDGER], end="stopped")
    return directory


def test_the_summary_counts_each_task_once_and_leaves_infrastructure_failures_out(eventful: Path) -> None:
    found = summary(RunView(eventful))
    assert found["status"] == "incomplete"
    assert found["tasks"] == {
        "planned": 6,
        "total": 134,
        "order": "official",
        "scored": 4,
        "successes": 3,
        "agent_failures": 1,
        "agent_failure_reasons": {"task-1": None},
        "infra_failures": [{"position": 2, "attempts": 2, "error": "the site is down"}],
        "late": [3],
    }
    assert found["score"]["mean"] == 0.75
    assert (found["score"]["k"], found["score"]["n"], found["score"]["interval"]["method"]) == (3, 4, "wilson")
    assert found["steps"] == {"total": 16, "mean": 4.0}
    assert found["seconds"] == 6.0


def test_the_method_total_leaves_out_the_judge_embeddings_and_lost_attempts(eventful: Path) -> None:
    found = summary(RunView(eventful))
    tokens = found["tokens"]
    assert tokens["method"]["total_tokens"] == 4 * 120 + 60
    assert tokens["eval_judge"]["total_tokens"] == 1001
    assert tokens["embeddings"]["total_tokens"] == 7
    assert tokens["usage_estimated"] is True
    assert [(part["role"], part["total_tokens"]) for part in tokens["by_role"]] == [
        ("host.autogen.solver", 480),
        ("memory.sepm.extract", 60),
    ]
    assert {part["agent"]: part["total_tokens"] for part in tokens["by_agent"]} == {None: 60, "solver": 480}
    assert {part["phase"]: part["calls"] for part in tokens["by_phase"]} == {"act": 4, "write": 1}
    lost = found["not_committed"]
    assert (lost["attempts"], lost["total_tokens"]) == (4, 5 * 120)
    assert lost["by_kind"] == {"infra_failure": 3, "stopped": 1}
    assert lost["cost_usd"] == pytest.approx(0.05)
    assert found["cost"]["usd"] == pytest.approx(0.07)
    assert found["cost"]["prices_date"] == "2026-11-01"
    assert found["calls_per_task"]["host.autogen.solver"] == 1.0


def test_the_summary_breaks_scores_down(eventful: Path) -> None:
    found = summary(RunView(eventful))
    assert [(part["name"], part["score"]["k"], part["score"]["n"]) for part in found["groups"]] == [
        ("1 app", 3, 3),
        ("2 apps", 0, 1),
    ]
    assert [(part["name"], part["score"]["n"]) for part in found["families"]] == [("pick", 2), ("heat", 2)]


def test_the_summary_is_json_and_renders(eventful: Path) -> None:
    found = json.loads(json.dumps(summary(RunView(eventful))))
    text = render(found)
    assert "75.00 % [30.06, 95.44] (95 %, wilson), n = 4" in text
    assert "540 = 450 in, 90 out; 5 calls; 1 call counted here or estimated" in text
    assert "4 attempts (3 infra_failure, 1 stopped): 600 tokens, $0.0500, in no other number" in text
    assert "position 2, attempt 2: the site is down" in text
    assert "$0.0700 (prices of 2026-11-01)" in text
    assert "6 of 134 tasks" in text


def test_an_unknown_price_is_null_not_zero(write_run: Callable[..., Path]) -> None:
    found = summary(RunView(write_run("free", [1.0, 0.0], calls=[LEDGER, replace(LEDGER, cost_usd=None)])))
    assert found["cost"]["usd"] is None
    assert found["tokens"]["method"]["cost_usd"] is None
    assert "Cost             –" in render(found)


def test_lost_attempts_without_a_price_have_no_known_cost(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest("lost", 2)))
    with Store(tmp_path) as store:
        play(store, 0, 0.0, [LEDGER, replace(LEDGER, cost_usd=None)], end="infra_failure")
        play(store, 1, 0.0, [], end="infra_failure")
    lost = summary(RunView(tmp_path))["not_committed"]
    assert (lost["attempts"], lost["total_tokens"], lost["cost_usd"]) == (2, 240, None)


def test_a_known_price_of_nothing_is_zero(write_run: Callable[..., Path]) -> None:
    found = summary(RunView(write_run("local", [1.0], calls=[replace(LEDGER, cost_usd=0.0)])))
    assert found["cost"]["usd"] == 0.0
    assert "$0.00" in render(found)


def test_a_run_that_has_only_started_shows_dashes(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest("young", 3)))
    found = summary(RunView(tmp_path))
    assert (found["score"], found["steps"], found["tokens"], found["seconds"], found["cost"]["usd"]) == (None,) * 5
    text = render(found)
    assert "incomplete, 0 of 3 tasks have a result" in text
    assert "Score            –" in text
    assert "Cost             –" in text


def test_a_run_in_progress_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest("busy", 3)))
    with Store(tmp_path) as store:
        play(store, 0, 1.0, [LEDGER])
        found = summary(RunView(tmp_path))
    assert (found["status"], found["tasks"]["scored"]) == ("incomplete", 1)


def test_a_scripted_run_says_so(write_run: Callable[..., Path]) -> None:
    found = summary(RunView(write_run("script", [1.0], models__scripted=True, models__constrain_actions=True)))
    assert found["scripted"] is True
    assert "scripted answers, no model" in found["not_comparable"]
    assert "scripted: no model answered" in render(found)


def test_a_graded_score_has_a_bootstrap_interval(write_run: Callable[..., Path]) -> None:
    found = summary(RunView(write_run("graded", [0.5, 0.25, 1.0])))
    assert found["score"]["interval"]["method"] == "bootstrap"
    assert found["score"]["k"] is None
    assert found == summary(RunView(Path(found["directory"])))


def test_one_graded_task_has_no_interval(write_run: Callable[..., Path]) -> None:
    found = summary(RunView(write_run("one", [0.5])))
    assert found["score"]["interval"] is None
    assert "50.00 % [–]" in render(found)


@pytest.mark.parametrize("missing", ["identity", "labels", "tasks", "seed"])
def test_a_manifest_without_what_a_comparison_needs_is_refused(tmp_path: Path, missing: str) -> None:
    broken = manifest("broken", 1)
    del broken[missing]
    (tmp_path / "manifest.json").write_text(json.dumps(broken))
    with pytest.raises(UserError, match=missing):
        summary(RunView(tmp_path))


def test_optional_fields_may_be_missing(tmp_path: Path) -> None:
    bare = {key: value for key, value in manifest("bare", 1).items() if key in ("identity", "labels", "tasks", "seed")}
    (tmp_path / "manifest.json").write_text(json.dumps(bare))
    found = summary(RunView(tmp_path))
    assert (found["scripted"], found["constrain_actions"], found["cost"]["prices_date"]) == (None, None, None)
    assert "the source of the tasks was not recorded" in found["notes"]
    render(found)


def test_the_listing_has_a_line_a_run_and_names_what_it_cannot_read(write_run: Callable[..., Path], tmp_path: Path) -> None:
    write_run("b-none", [1.0, 0.0, 0.0], planned=4)
    write_run("a-sepm", [1.0, 1.0], labels__method="sepm", labels__variant="method.k=3", models__scripted=True)
    broken = tmp_path / "runs" / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    lines = listing.listing(tmp_path / "runs")
    assert [line["name"] for line in lines] == ["a-sepm", "b-none", "broken"]
    assert (lines[0]["score"], lines[0]["tokens"], lines[0]["scripted"], lines[0]["status"]) == (1.0, 240, True, "finished")
    assert (lines[1]["scored"], lines[1]["planned"], lines[1]["status"]) == (3, 4, "incomplete")
    assert lines[2]["status"] == "unreadable"
    json.dumps(lines)
    text = listing.render(lines).splitlines()
    assert text[1].split()[:7] == ["a-sepm", "autogen", "sepm", "alfworld", "embedded", "finished", "2/2"]
    assert text[1].endswith("scripted, method.k=3")
    assert text[2].split()[6:] == ["3/4", "33.33", "[6.15,", "79.23]", "360", "$0.0300"]
    assert "unreadable" in text[3]


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        ("models.endpoints", 5, "its models.endpoints is int, not dict"),
        ("models.endpoints", {"main": 5}, "its models.endpoints.main is int, not dict"),
        ("labels.host", [], "its labels.host is list, not str"),
        ("tasks.n", True, "its tasks.n is bool, not int"),
        ("name", None, "its name is NoneType, not str"),
        ("cell", [], "its cell is list, not dict"),
    ],
)
def test_a_manifest_with_parts_of_another_kind_is_damaged(
    write_run: Callable[..., Path], tmp_path: Path, place: str, value: Any, what: str
) -> None:
    path = write_run("other", [1.0]) / "manifest.json"
    content = json.loads(path.read_text())
    *parents, last = place.split(".")
    inner = content
    for part in parents:
        inner = inner[part]
    inner[last] = value
    path.write_text(json.dumps(content))
    (line,) = listing.listing(tmp_path / "runs")
    assert line["status"] == "unreadable" and what in line["error"]


def test_a_manifest_nested_beyond_reason_is_damaged(write_run: Callable[..., Path], tmp_path: Path) -> None:
    (write_run("deep", [1.0]) / "manifest.json").write_text("[" * 100_000)
    (line,) = listing.listing(tmp_path / "runs")
    assert line["status"] == "unreadable" and "manifest.json is damaged: maximum recursion depth" in line["error"]


def test_a_limit_that_is_no_number_is_no_caveat(write_run: Callable[..., Path]) -> None:
    run = write_run("limits", [1.0], cell__run={"limits": {"task": {"calls": "x", "steps": 3}}})
    assert "task limits: steps 3" in summary(RunView(run))["notes"]


def test_an_empty_folder_lists_nothing(tmp_path: Path) -> None:
    assert listing.render(listing.listing(tmp_path)) == "No runs."
