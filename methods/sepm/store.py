"""The procedure pool in SQLite: versions with compare-and-swap, candidates, trials, records (SEPM paper B.5, B.6, C.2).

Everything is written inside the stream's transaction and never committed here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contracts import Note, unnoted
from methods.sepm.baselines import Baselines
from methods.sepm.blackboard import Record
from methods.sepm.index import RetrievalIndex
from methods.sepm.pool_file import PoolFile
from methods.sepm.procedure import ConditionalWarning, Procedure, from_plain, render
from methods.sepm.promotion import CandidateStatus, Op, Trial
from methods.sepm.retrieval import Hit
from methods.sepm.schema import statements


@dataclass(frozen=True)
class Candidate:
    """A proposed procedure or revision with what its precheck needs. `base_version` is the reference of its update."""

    id: str
    op: Op
    target: str | None
    base_version: int | None
    family: str
    procedure: Procedure
    state_verified: bool
    c_causal: float
    b_claim: float
    c_claim: float
    risk: float
    task_no: int
    status: CandidateStatus = "pending"
    reason: str = ""
    reproposed_from: str | None = None


@dataclass(frozen=True)
class Promotion:
    """What is stored with a version that a candidate became."""

    candidate: str | None = None
    v_summary: float | None = None
    mean_net_benefit: float | None = None


class PoolStore:
    """The tables of one pool. `open` before use. `note` is told what becomes of it."""

    def __init__(self, db: sqlite3.Connection, note: Note = unnoted) -> None:
        self._db = db
        self._note = note
        self._file = PoolFile(db)
        self.index = RetrievalIndex()

    def open(self) -> None:
        """Create missing tables and load the index. Outside of a transaction (it may attach a file)."""
        self.s = self._file.open()
        self._file.check(self._rows)
        for statement in statements(self.s):
            self._db.execute(statement)
        self._file.catch_up()
        self.index = RetrievalIndex(self.s)
        self.index.load(self._rows)
        self.baselines = Baselines(self._rows, self.write, self.s)
        self._seen = self._data_version()

    def _data_version(self) -> int:
        return int(self._rows(f"PRAGMA {self.s}.data_version")[0][0])

    def refresh(self) -> None:
        """Read the index anew if another connection has changed the file since."""
        now = self._data_version()
        if now != self._seen:
            self.index.load(self._rows)
            self._seen = now

    def search(
        self, query: str, facts: Iterable[str], k: int, *, adaptive: bool = True, cue_match: str = "substring"
    ) -> list[Hit]:
        """ℛ(q) over the active revisions that are compatible with `facts` (equation 3)."""
        self.refresh()
        return self.index.search(query, facts, k, adaptive=adaptive, cue_match=cue_match)

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._db.execute(sql, tuple(parameters)).fetchall()

    def write(self, sql: str, parameters: tuple[Any, ...] = ()) -> int:
        """Run a statement that changes the pool; the number of rows it changed."""
        changed = self._db.execute(sql, parameters).rowcount
        self._file.note(sql, parameters)
        return changed

    # --- tasks and records --------------------------------------------------------------------------------------------
    def begin_task(self, task_id: str, family: str) -> int:
        """The number of a new task in this pool, from 1."""
        self._file.begin()
        number = 1 + int(self._rows(f"SELECT coalesce(max(task_no), 0) FROM {self.s}.sepm_task")[0][0])
        self.write(
            f"INSERT INTO {self.s}.sepm_task (task_no, task_id, family, used, graph, counters)"
            " VALUES (?, ?, ?, '[]', '{}', '{}')",
            (number, task_id, family),
        )
        return number

    def end_task(
        self,
        task_no: int,
        *,
        score: float,
        success: bool,
        status: str,
        steps: int,
        used: Mapping[str, int],
        provisional: str | None,
        graph: Mapping[str, Any],
        counters: Mapping[str, int],
    ) -> None:
        """Keep how the task went, its final graph, and what was counted on the way."""
        self.write(
            f"UPDATE {self.s}.sepm_task SET score = ?, success = ?, status = ?, steps = ?, used = ?, provisional = ?, graph = ?,"
            " counters = ? WHERE task_no = ?",
            (
                score,
                int(success),
                status,
                steps,
                json.dumps(sorted(used)),
                provisional,
                json.dumps(graph, ensure_ascii=False),
                json.dumps(counters, sort_keys=True),
                task_no,
            ),
        )
        family = self._rows(f"SELECT family FROM {self.s}.sepm_task WHERE task_no = ?", (task_no,))[0][0]
        self.baselines.count(family, used, score, success, steps)
        for sop_id, version in sorted(used.items()):
            self.write(f"INSERT INTO {self.s}.sepm_use VALUES (?, ?, ?, ?, ?)", (task_no, sop_id, version, int(success), score))

    def add_record(self, task_no: int, record: Record) -> None:
        content = json.dumps(record.plain(), ensure_ascii=False, default=str)
        self.write(
            f"INSERT INTO {self.s}.sepm_record VALUES (?, ?, ?, ?, ?, ?)",
            (task_no, record.seq, record.step, record.agent, record.node_id, content),
        )

    def note_attributes(self, seen: Sequence[tuple[str, str, str]]) -> None:
        """Remember with which (entity, attribute, value) the environment speaks of the state; the first example stays."""
        for entity, attribute, value in seen:
            self.write(
                f"INSERT OR IGNORE INTO {self.s}.sepm_attribute VALUES (?, ?, ?, (SELECT count(*) FROM {self.s}.sepm_attribute))",
                (attribute, entity, value),
            )

    def attributes(self) -> list[tuple[str, str, str]]:
        """(entity, attribute, value) examples, oldest first."""
        return [
            (r[0], r[1], r[2])
            for r in self._rows(f"SELECT entity, attribute, value FROM {self.s}.sepm_attribute ORDER BY number LIMIT 12")
        ]

    # --- versions -----------------------------------------------------------------------------------------------------
    def head(self, sop_id: str) -> tuple[int, bool] | None:
        """(current version, active) of a procedure; None where there is none."""
        row = self._rows(f"SELECT current_version, active FROM {self.s}.sepm_head WHERE sop_id = ?", (sop_id,))
        return (int(row[0][0]), bool(row[0][1])) if row else None

    def get(self, sop_id: str, version: int) -> Procedure:
        """One revision; superseded ones stay readable. Raises KeyError."""
        row = self._rows(f"SELECT procedure FROM {self.s}.sepm_version WHERE sop_id = ? AND version = ?", (sop_id, version))
        if not row:
            raise KeyError((sop_id, version))
        return _parsed(row[0][0])

    def commit_version(
        self,
        sop_id: str,
        base_version: int | None,
        procedure: Procedure,
        kind: str,
        task_no: int,
        promotion: Promotion | None = None,
    ) -> int | None:
        """Equation 16: make `procedure` the new head iff the head still is `base_version` (None: there is no head yet).

        Returns the new version; None where the comparison failed, and then nothing has changed (SEPM-R31).
        """
        self.refresh()
        version = 1 + int(
            self._rows(f"SELECT coalesce(max(version), 0) FROM {self.s}.sepm_version WHERE sop_id = ?", (sop_id,))[0][0]
        )
        if base_version is None:
            changed = self.write(f"INSERT OR IGNORE INTO {self.s}.sepm_head VALUES (?, ?, 1)", (sop_id, version))
        else:
            changed = self.write(
                f"UPDATE {self.s}.sepm_head SET current_version = ? WHERE sop_id = ? AND current_version = ? AND active = 1",
                (version, sop_id, base_version),
            )
        if changed != 1:
            return None
        about = promotion or Promotion()
        self.write(
            f"INSERT INTO {self.s}.sepm_version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                sop_id,
                version,
                base_version,
                kind,
                about.candidate,
                task_no,
                procedure.json(),
                about.v_summary,
                about.mean_net_benefit,
                procedure.digest(),
            ),
        )
        self.index.add(self.write, sop_id, version, procedure)
        before = None if base_version is None else self.get(sop_id, base_version)
        why = f"v{version}, {kind}" + (f" from candidate {about.candidate}" if about.candidate else "")
        self._tell(f"procedure {sop_id}", why, before, procedure)
        return version

    def _tell(self, item: str, why: str, before: Procedure | None, after: Procedure | None) -> None:
        change = "added" if before is None else "removed" if after is None else "changed"
        texts = ["" if one is None else render(one, item.split()[-1]) for one in (before, after)]
        self._note("memory_change", {"item": item, "change": change, "why": why, "before": texts[0], "after": texts[1]})

    def retire(self, sop_id: str, version: int) -> bool:
        """Take a procedure out of retrieval iff its head still is `version`; its history stays."""
        changed = self.write(
            f"UPDATE {self.s}.sepm_head SET active = 0 WHERE sop_id = ? AND current_version = ? AND active = 1", (sop_id, version)
        )
        if changed == 1:
            self.index.deactivate(self.write, sop_id)
            self._tell(f"procedure {sop_id}", f"v{version} retired", self.get(sop_id, version), None)
        return changed == 1

    def active(self) -> list[tuple[str, int]]:
        """(sop_id, version) of the active heads."""
        rows = self._rows(f"SELECT sop_id, current_version FROM {self.s}.sepm_head WHERE active = 1 ORDER BY sop_id")
        return [(r[0], r[1]) for r in rows]

    # --- candidates and trials ----------------------------------------------------------------------------------------
    def next_candidate_id(self) -> str:
        return f"c{1 + int(self._rows(f'SELECT count(*) FROM {self.s}.sepm_candidate')[0][0])}"

    def add_candidate(self, c: Candidate) -> None:
        self.write(
            f"INSERT INTO {self.s}.sepm_candidate VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                c.id,
                int(c.id[1:]),
                c.op,
                c.target,
                c.base_version,
                c.family,
                c.procedure.json(),
                int(c.state_verified),
                c.c_causal,
                c.b_claim,
                c.c_claim,
                c.risk,
                c.task_no,
                c.status,
                c.reason,
                c.reproposed_from,
                c.procedure.digest(),
            ),
        )
        if c.op != "delete":
            of = f" of {c.target} v{c.base_version}" if c.target else ""
            self._tell(f"candidate {c.id}", f"{c.op}{of}: {c.status}, {c.reason}", None, c.procedure)

    def set_status(self, candidate_id: str, status: CandidateStatus, reason: str) -> None:
        self.write(f"UPDATE {self.s}.sepm_candidate SET status = ?, reason = ? WHERE id = ?", (status, reason, candidate_id))
        self._note("memory_change", {"item": f"candidate {candidate_id}", "change": "changed", "why": f"{status}: {reason}"})

    def candidates(self, family: str | None = None, status: str | None = None) -> list[Candidate]:
        """Candidates in the order of their creation; all, or those of a family or status."""
        rows = self._rows(
            "SELECT id, op, target, base_version, family, procedure, state_verified, c_causal, b_claim, c_claim, risk, task_no,"
            f" status, reason, reproposed_from FROM {self.s}.sepm_candidate"
            " WHERE (? IS NULL OR family = ?) AND (? IS NULL OR status = ?) ORDER BY number",
            (family, family, status, status),
        )
        names = ("id", "op", "target", "base_version", "family", "procedure", "state_verified", "c_causal", "b_claim", "c_claim",
                 "risk", "task_no", "status", "reason", "reproposed_from")  # fmt: skip
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [
            Candidate(**{**row, "procedure": _parsed(row["procedure"]), "state_verified": bool(row["state_verified"])})
            for row in found
        ]

    def known(self, procedure: Procedure, statuses: Sequence[CandidateStatus], *, active: bool) -> bool:
        """Whether there is a candidate in one of `statuses`, or (if `active`) an active procedure, that is this one but for its
        texts and warnings (`Procedure.digest`)."""
        marks = ", ".join("?" * len(statuses))
        found = self._rows(
            f"SELECT 1 FROM {self.s}.sepm_candidate WHERE digest = ? AND status IN ({marks}) LIMIT 1",
            (procedure.digest(), *statuses),
        )
        if active and not found:
            found = self._rows(
                f"SELECT 1 FROM {self.s}.sepm_version v JOIN {self.s}.sepm_head h ON h.sop_id = v.sop_id"
                " AND h.current_version = v.version WHERE v.digest = ? AND h.active = 1 LIMIT 1",
                (procedure.digest(),),
            )
        return bool(found)

    def add_trial(self, candidate_id: str, trial: Trial, *, task_no: int, family: str, policy: str) -> None:
        self.write(
            f"INSERT INTO {self.s}.sepm_trial (candidate, task_no, task_id, family, policy, environment, success, r_candidate,"
            " r_baseline, cost, state_verified, causal_supported, no_baseline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                candidate_id,
                task_no,
                trial.task_id,
                family,
                policy,
                trial.environment,
                int(trial.success),
                trial.r_candidate,
                trial.r_baseline,
                trial.cost,
                int(trial.state_verified),
                int(trial.causal_supported),
                int(trial.no_baseline),
            ),
        )

    def trials(self, candidate_id: str) -> list[Trial]:
        """All recorded trials of a candidate, failed ones included, oldest first."""
        rows = self._rows(
            "SELECT task_id, success, r_candidate, r_baseline, cost, state_verified, causal_supported, environment, no_baseline"
            f" FROM {self.s}.sepm_trial WHERE candidate = ? ORDER BY id",
            (candidate_id,),
        )
        return [Trial(r[0], bool(r[1]), r[2], r[3], r[4], bool(r[5]), bool(r[6]), r[7], bool(r[8])) for r in rows]

    # --- lessons and audit --------------------------------------------------------------------------------------------
    def keep_lesson(self, family: str, warning: ConditionalWarning, task_no: int) -> None:
        """A warning of a task that used no procedure, kept until its family has one; the same one again is only counted."""
        content = json.dumps([warning.text, warning.trigger, list(warning.evidence), warning.signature], ensure_ascii=False)
        self.write(
            f"INSERT INTO {self.s}.sepm_lesson (family, text, warning, task_no, times) VALUES (?, ?, ?, ?, 1)"
            " ON CONFLICT (family, text) WHERE attached_to IS NULL DO UPDATE SET times = times + 1",
            (family, warning.text, content, task_no),
        )

    def take_lessons(self, family: str, sop_id: str) -> list[ConditionalWarning]:
        """The lessons of a family that wait for a procedure; they are attached to `sop_id` from now on."""
        rows = self._rows(
            f"SELECT id, warning FROM {self.s}.sepm_lesson WHERE family = ? AND attached_to IS NULL ORDER BY id", (family,)
        )
        for number, _ in rows:
            self.write(f"UPDATE {self.s}.sepm_lesson SET attached_to = ? WHERE id = ?", (sop_id, number))
        found = [json.loads(content) for _, content in rows]
        return [ConditionalWarning(text, trigger, tuple(evidence), signature) for text, trigger, evidence, signature in found]

    def audit(self, task_no: int, event: str, **detail: Any) -> None:
        content = json.dumps(detail, sort_keys=True, ensure_ascii=False, default=str)
        self.write(f"INSERT INTO {self.s}.sepm_audit (task_no, event, detail) VALUES (?, ?, ?)", (task_no, event, content))


def _parsed(content: str) -> Procedure:
    return from_plain(json.loads(content))
