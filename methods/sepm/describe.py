"""What `memarena memory` shows of a pool: procedures with their history, candidates with verdicts, trials, counters.

Reads the tables only; never a model, never a write.
"""

from __future__ import annotations

import difflib
import json
import math
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from harness.errors import UserError
from methods.sepm.config import SepmConfig
from methods.sepm.procedure import from_plain, render
from methods.sepm.promotion import Thresholds, Trial, judge

# METHODS.md 4.11: what the paper's token totals leave for SEPM's own calls, in tokens a task (judge: of a call)
ENVELOPE: dict[str, str] = {
    "sepm.plan": "2,500 a task",
    "sepm.extract": "2,000 a task",
    "sepm.judge_goal": "250 a call, 6 calls a task",
    "(all)": "5,970 a task",
}


def inspect(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The pool of the run whose SQLite file is `path`, played with the method's configuration `config`; JSON-able.

    A pool in a file of its own is found where the run left it. `text` is what is printed.
    """
    file = _pool_of(path)
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
        db.row_factory = sqlite3.Row
        held = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sepm_version'").fetchone()
        found = _Pool(db, config).describe() if held else {"procedures": [], "candidates": [], "tasks": [], "lessons": []}
    found["envelope"] = ENVELOPE
    found["text"] = _text(found)
    return found


def _pool_of(path: Path) -> Path:
    """The file with the pool of the run at `path`. Raises UserError where that file is gone."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sepm_pool_path'").fetchone():
            return path
        found = Path(db.execute("SELECT path FROM sepm_pool_path").fetchone()[0])
    if not found.is_file():
        raise UserError(f"The pool of this run lay in {found}, where there is no file now.")
    return found


class _Pool:
    def __init__(self, db: sqlite3.Connection, config: Mapping[str, Any]) -> None:
        self.db = db
        known = SepmConfig(**{k: v for k, v in config.items() if k in SepmConfig.__dataclass_fields__})
        self.at = Thresholds(known.risk, known.causal, known.min_repro, known.lambda_cost)

    def describe(self) -> dict[str, Any]:
        heads = self.db.execute("SELECT * FROM sepm_head ORDER BY length(sop_id), sop_id").fetchall()
        return {
            "procedures": [self._procedure(head) for head in heads],
            "candidates": [self._candidate(row) for row in self.db.execute("SELECT * FROM sepm_candidate ORDER BY number")],
            "tasks": [self._task(row) for row in self.db.execute("SELECT * FROM sepm_task ORDER BY task_no")],
            "lessons": [
                {
                    "family": row["family"],
                    "warning": json.loads(row["warning"])[0],
                    "attached_to": row["attached_to"],
                    "times": dict(row).get("times", 1),  # runs of earlier versions have none
                }
                for row in self.db.execute("SELECT * FROM sepm_lesson ORDER BY id")
            ],
        }

    def _procedure(self, head: sqlite3.Row) -> dict[str, Any]:
        rows = self.db.execute("SELECT * FROM sepm_version WHERE sop_id = ? ORDER BY version", (head["sop_id"],)).fetchall()
        versions = []
        before: list[str] = []
        for row in rows:
            procedure = from_plain(json.loads(row["procedure"]))
            lines = render(procedure, head["sop_id"]).splitlines()
            change = [x for x in difflib.unified_diff(before, lines, lineterm="", n=0) if x[:2] not in ("--", "++", "@@")]
            uses = self.db.execute(
                "SELECT count(*), coalesce(sum(success), 0) FROM sepm_use WHERE sop_id = ? AND version = ?",
                (row["sop_id"], row["version"]),
            ).fetchone()
            versions.append(
                {
                    "version": row["version"],
                    "base_version": row["base_version"],
                    "kind": row["kind"],
                    "candidate": row["candidate"],
                    "task_no": row["task_no"],
                    "v_summary": row["v_summary"],
                    "mean_net_benefit": row["mean_net_benefit"],
                    "uses": uses[0],
                    "successes": uses[1],
                    "content": procedure.plain(),
                    "changes": change if before else [],
                }
            )
            before = lines
        return {
            "id": head["sop_id"],
            "current_version": head["current_version"],
            "active": bool(head["active"]),
            "versions": versions,
        }

    def _candidate(self, row: sqlite3.Row) -> dict[str, Any]:
        trials = [
            self._trial(t) for t in self.db.execute("SELECT * FROM sepm_trial WHERE candidate = ? ORDER BY id", (row["id"],))
        ]
        safe = row["status"] != "safety_rejected" and row["risk"] < self.at.risk
        verdict = judge(
            [trial for trial, _ in trials],
            safe=safe,
            state_verified=bool(row["state_verified"]),
            causal_confidence=row["c_causal"],
            at=self.at,
        )
        return {
            **{key: row[key] for key in ("id", "op", "target", "base_version", "family", "task_no", "status", "reason")},
            "title": json.loads(row["procedure"])["title"],
            "c_causal": row["c_causal"],
            "u_claim": row["b_claim"] - self.at.weight * row["c_claim"],
            "risk": row["risk"],
            "gates": None if row["op"] == "delete" else {
                name: getattr(verdict, name) for name in ("safety", "state", "causal", "reproduction", "benefit")
            },
            "net_benefit": None if math.isinf(verdict.net_benefit) else verdict.net_benefit,
            "trials": [plain for _, plain in trials],
        }  # fmt: skip

    def _trial(self, row: sqlite3.Row) -> tuple[Trial, dict[str, Any]]:
        trial = Trial(
            row["task_id"], bool(row["success"]), row["r_candidate"], row["r_baseline"], row["cost"],
            bool(row["state_verified"]), bool(row["causal_supported"]), row["environment"], bool(row["no_baseline"]),
        )  # fmt: skip
        names = (
            "task_id",
            "policy",
            "success",
            "r_candidate",
            "r_baseline",
            "cost",
            "state_verified",
            "causal_supported",
            "no_baseline",
        )
        return trial, {**{n: row[n] for n in names}, "qualified": trial.qualified, "u": trial.utility(self.at.weight)}

    def _task(self, row: sqlite3.Row) -> dict[str, Any]:
        return {
            **{key: row[key] for key in ("task_no", "task_id", "family", "score", "success", "status", "steps", "provisional")},
            "used": json.loads(row["used"]),
            "graph": json.loads(row["graph"]),
            "counters": json.loads(row["counters"]),
        }


def _text(found: Mapping[str, Any]) -> str:
    lines: list[str] = []
    active = sum(p["active"] for p in found["procedures"])
    lines.append(f"Procedures: {active} active, {len(found['procedures']) - active} retired")
    for procedure in found["procedures"]:
        lines += ["", *_procedure_text(procedure)]
    lines += ["", f"Candidates: {len(found['candidates'])}"]
    for c in found["candidates"]:
        target = f" of {c['target']} v{c['base_version']}" if c["target"] else ""
        lines.append(f"  {c['id']} {c['op']}{target} '{c['title']}' after task {c['task_no']}: {c['status']} ({c['reason']})")
        if c["gates"]:
            gates = " ".join(f"{name}={'yes' if passed else 'no'}" for name, passed in c["gates"].items())
            mean = "-inf" if c["net_benefit"] is None else f"{c['net_benefit']:+.3f}"
            lines.append(
                f"     gates: {gates}; mean u={mean}; c_causal={c['c_causal']:.2f} u_claim={c['u_claim']:+.2f}"
                f" risk={c['risk']:.2f}"
            )
        lines += [
            f"     trial on {t['task_id']} ({t['policy']}): u={t['u']:+.3f} = {t['r_candidate']:.2f} - {t['r_baseline']:.2f}"
            f" - {t['cost']:.3f}; {'qualified' if t['qualified'] else 'not qualified'}"
            for t in c["trials"]
        ]
    waiting = [lesson for lesson in found["lessons"] if lesson["attached_to"] is None]
    if waiting:
        lines += ["", "Lessons that wait for a procedure of their family:"]
        lines += [f"  {lesson['family']}: {lesson['warning']} ({lesson['times']}x)" for lesson in waiting]
    counted: dict[str, int] = {}
    for task in found["tasks"]:
        for name, times in task["counters"].items():
            counted[name] = counted.get(name, 0) + times
    if counted:
        lines += ["", "Counted over all tasks:", *(f"  {name}: {times}" for name, times in sorted(counted.items()))]
    return "\n".join(lines)


def _procedure_text(procedure: Mapping[str, Any]) -> list[str]:
    lines = []
    for version in procedure["versions"]:
        head = version["version"] == procedure["current_version"]
        state = ("current" if procedure["active"] else "retired") if head else "superseded"
        score = (
            ""
            if version["v_summary"] is None
            else f", v_summary {version['v_summary']:.3f}, mean u {version['mean_net_benefit']:+.3f}"
        )
        uses = f"used {version['uses']} times, {version['successes']} successes"
        lines.append(
            f"{procedure['id']} v{version['version']} ({state}; {version['kind']} after task {version['task_no']}; {uses}{score})"
        )
        if head:
            lines += [f"    {line}" for line in render(from_plain(version["content"]), procedure["id"]).splitlines()]
        lines += [f"    {change}" for change in version["changes"]]
    return lines


def diagram(plain: Mapping[str, Any], style: str) -> str:
    """A task's graph (as `TaskGraph.plain` gave it) in Mermaid or Graphviz form; a plan in prose as comments."""
    if "prose" in plain:
        empty = "digraph plan {}" if style == "dot" else "flowchart LR"
        mark = "//" if style == "dot" else "%%"
        return "\n".join([empty, f"{mark} the textual control has no graph; its plan:", *(f"{mark} {s}" for s in plain["prose"])])
    nodes, edges = plain.get("nodes", []), plain.get("edges", [])
    if style == "dot":
        body = [f'  "{n["id"]}" [label="{_escaped(n)}"];' for n in nodes] + [f'  "{u}" -> "{w}";' for u, w in edges]
        return "\n".join(["digraph plan {", "  rankdir=LR;", "  node [shape=box];", *body, "}"])
    body = [f'  {_plain_id(n["id"])}["{_escaped(n)}"]' for n in nodes]
    body += [f"  {_plain_id(u)} --> {_plain_id(w)}" for u, w in edges]
    return "\n".join(["flowchart LR", *body])


def _escaped(node: Mapping[str, Any]) -> str:
    text = f"{node['id']}: {node['action']} ({node['agent']}, {node['status']})"
    return text.replace("\\", "/").replace('"', "'")


def _plain_id(node_id: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in f"n_{node_id}")
