"""Every numbered requirement of METHODS.md 7.1 has a test that cites it; and those of the protocol: sizes, rows, totals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from envs.alfworld.adapter import AlfWorld, AlfWorldConfig
from envs.alfworld.data import OFFICIAL_COUNTS
from harness.compose import compose_one
from harness.config import resolve
from harness.contracts import Call
from harness.report.reported import load
from harness.report.tables import build
from harness.store.view import RunView
from methods.sepm.memory import Sepm
from tests.methods.sepm.hooks_support import CHAIN, FACTS, following, said
from tests.methods.sepm.sepm_support import Play, by_role, fact, memory, task
from tests.support.build import played

TESTS = Path(__file__).resolve().parents[2]


def test_every_requirement_is_cited() -> None:
    cited = {int(n) for path in TESTS.rglob("test_*.py") for n in re.findall(r"SEPM-R(\d+)", path.read_text())}
    assert set(range(1, 43)) <= cited, sorted(set(range(1, 43)) - cited)


def test_the_protocol_s_numbers_r37() -> None:
    """SEPM-R37: the split that `env=alfworld` plays has 134 games, at most 30 actions each, as the rows of the table say; 812 and
    300 tasks stand behind the other scores. (tests/official counts the games themselves where they are installed.)"""
    config: Any = resolve(*compose_one(["method=sepm", "env=alfworld", "models=scripted"]))[0].env
    assert (OFFICIAL_COUNTS[config.split], AlfWorld(config).max_steps) == (134, 30)
    assert vars(AlfWorldConfig()) == vars(config)
    sizes = {number.env: number.n for number in load("sepm_table1.csv") if number.metric == "score"}
    assert sizes == {"alfworld": 134, "webarena": 812, "officebench": 93 + 95 + 112}


# --- SEPM-R38 ---------------------------------------------------------------------------------------------------------
STATE = {"sepm_task", "sepm_record", "sepm_sum"}
POOL = {f"sepm_{n}" for n in ("attribute", "audit", "candidate", "head", "index", "token", "trial", "use", "version")}
ROWS: dict[str, tuple[set[str], bool, bool]] = {  # tables that are filled, procedures shown, corrections given
    "sepm_blackboard": (STATE, False, False),
    "sepm_blackboard_memory": (STATE | POOL, True, False),
    "sepm_blackboard_alignment": (STATE, False, True),
    "sepm": (STATE | POOL, True, True),
    "sepm_textual": (STATE | POOL, True, True),
}
SENTENCES = ["A: take mug", "A: clean mug", "A: put mug in cabinet"]


def row(name: str) -> dict[str, Any]:
    """The configuration of a row, from its file alone."""
    return {k: v for k, v in vars(resolve(*compose_one([f"method={name}", "models=scripted"]))[0].method).items() if k != "name"}


def extraction(call: Call) -> str:
    steps = [
        {"id": f"s{i}", "instruction": text, "from_node": f"n{i}", "record_ids": [i]}
        for i, text in enumerate(("take object", "clean object", "put object in receptacle"), 1)
    ]
    return json.dumps({"title": "clean", "steps": steps, "edges": [["s1", "s2"], ["s2", "s3"]]})


def three_tasks(name: str) -> tuple[Sepm, list[Play], list[str]]:
    """The method of a row, its plays, and what the agent was told after it had said that it does something else."""

    def plan(call: Call) -> str:
        found = following(*CHAIN)(call)
        return json.dumps({"plan": SENTENCES, "used": json.loads(found)["used"]}) if name == "sepm_textual" else found

    answers: dict[str, Any] = {"sepm.plan": plan, "sepm.extract": extraction, "sepm.judge_goal": '{"score": 0}'}
    method = memory(by_role({**answers, "sepm.text.compare": '{"score": 0}', "sepm.text.ready": '{"ready": true}'}), **row(name))
    plays, notes = [], []
    for number in range(3):
        play = Play(method, task(number), FACTS, "A")
        play.say("A", said("n1", "bake a cake"))
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 1))
        notes.append(play.notes("A"))
        play.do("A", "clean mug 1", fact("mug 1", "clean", True, 2))
        play.do("A", "put mug 1 in cabinet 1", fact("mug 1", "location", "cabinet 1", 3))
        play.end()
        plays.append(play)
    return method, plays, notes


@pytest.mark.parametrize("name", ROWS)
def test_each_row_has_its_components_and_no_other_r38(name: str) -> None:
    """SEPM-R38: what is stored, what the manager and the agents are shown, and whether drift is answered."""
    tables, procedures, corrections = ROWS[name]
    method, plays, notes = three_tasks(name)
    db = method.services.db
    names = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'sepm_%'")]
    assert {name for name in names if db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]} == tables
    assert bool(plays[2].guidance.procedures) is procedures
    assert any("Correction: " in note for note in notes) is corrections
    plans = [call.messages[-1]["content"] for call in method.services.models.calls if call.role == "sepm.plan"]  # type: ignore[attr-defined]
    assert plans[0] == plans[2] if not procedures else "Procedure: clean [c1 v1]" in plans[2]


def test_the_control_differs_from_the_full_method_in_its_form_alone_r38() -> None:
    """SEPM-R38: same retrieval, trials and revisions; neither ids nor edges in anything that is written or shown."""
    (graph, full, _), (text, control, _) = three_tasks("sepm"), three_tasks("sepm_textual")
    for query in (
        "SELECT sop_id, version, kind FROM sepm_version",
        "SELECT candidate, task_no, policy, success, r_candidate, r_baseline, cost, causal_supported FROM sepm_trial",
        "SELECT task_no, used, provisional, score, steps FROM sepm_task",
    ):
        assert graph.services.db.execute(query).fetchall() == text.services.db.execute(query).fetchall() != []
    shown = "\n".join([*control[2].guidance.procedures, control[2].guidance.brief, control[2].notes("A")])
    assert "Prerequisites: s1 -> s2" in full[2].guidance.procedures[0] and "[s1]" in full[2].guidance.procedures[0]
    assert "->" not in shown and "[s" not in shown and "n1" not in shown
    assert text.pool.get("c1", 1).edges == () and graph.pool.get("c1", 1).edges != ()


# --- SEPM-R42 ---------------------------------------------------------------------------------------------------------
def test_totals_stand_beside_the_score_of_the_same_run_r42(tmp_path: Path) -> None:
    """SEPM-R42: measured: every call of a run, SEPM's own included, and the change against the run without memory."""
    groups: dict[str, Any] = {"host": {"name": "autogen"}, "env": {"name": "alfworld", "source": "generated"}}
    totals, scores = {}, {}
    for method in ("none", "sepm"):
        view = RunView(played(tmp_path, method={"name": method}, run={"name": method, "tasks": 3}, **groups))
        totals[method] = sum(usage.total_tokens for usage in view.usage("role"))
        scores[method] = 100 * sum(t.score for t in view.tasks()) / 3
    assert totals["sepm"] > totals["none"]
    table = build("tokens", tmp_path).to_markdown()
    for method, label in (("none", "No added memory"), ("sepm", "SEPM")):
        (line,) = [line for line in table.splitlines() if line.startswith(f"| {label} ") or f"| {label} " in line]
        assert f"{totals[method]:,}".replace(",", "") in line.replace(",", "").replace("\u202f", "").replace(" ", ""), line
        assert f"{scores[method]:.2f}" in line
    assert f"{(totals['sepm'] / totals['none'] - 1) * 100:.1f}" in line
