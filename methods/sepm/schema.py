"""The tables of SEPM. They lie in the stream's file, or in an attached one (`TEAM_MEMORY_DB`).

Revisions and records are immutable: triggers refuse to change them. No wall time and no random value is stored, so that a
resumed run ends with the same bytes as an uninterrupted one.
"""

from __future__ import annotations

from methods.sepm import index

IMMUTABLE = ("sepm_version", "sepm_record", "sepm_trial", "sepm_audit")


def statements(schema: str) -> tuple[str, ...]:
    """The CREATE statements in database `schema` ("main", or the name of an attached one)."""
    s = schema
    return (
        # a task as the pool saw it; `used` are the procedures of its plan, `provisional` the candidate on trial, if any
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_task (task_no INTEGER PRIMARY KEY, task_id TEXT NOT NULL, family TEXT NOT NULL,"
        " score REAL, success INTEGER, status TEXT, steps INTEGER, used TEXT NOT NULL, provisional TEXT, graph TEXT NOT NULL,"
        " counters TEXT NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_record (task_no INTEGER NOT NULL, seq INTEGER NOT NULL, step INTEGER NOT NULL,"
        " agent TEXT NOT NULL, node_id TEXT, content TEXT NOT NULL, PRIMARY KEY (task_no, seq))",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_head (sop_id TEXT PRIMARY KEY, current_version INTEGER NOT NULL,"
        " active INTEGER NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_version (sop_id TEXT NOT NULL, version INTEGER NOT NULL, base_version INTEGER,"
        " kind TEXT NOT NULL, candidate TEXT, task_no INTEGER NOT NULL, procedure TEXT NOT NULL, v_summary REAL,"
        " mean_net_benefit REAL, digest TEXT NOT NULL, PRIMARY KEY (sop_id, version))",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_use (task_no INTEGER NOT NULL, sop_id TEXT NOT NULL, version INTEGER NOT NULL,"
        " success INTEGER NOT NULL, score REAL NOT NULL, PRIMARY KEY (task_no, sop_id))",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_candidate (id TEXT PRIMARY KEY, number INTEGER NOT NULL, op TEXT NOT NULL,"
        " target TEXT, base_version INTEGER, family TEXT NOT NULL, procedure TEXT NOT NULL, state_verified INTEGER NOT NULL,"
        " c_causal REAL NOT NULL, b_claim REAL NOT NULL, c_claim REAL NOT NULL, risk REAL NOT NULL, task_no INTEGER NOT NULL,"
        " status TEXT NOT NULL, reason TEXT NOT NULL, reproposed_from TEXT, digest TEXT NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_trial (id INTEGER PRIMARY KEY, candidate TEXT NOT NULL, task_no INTEGER NOT NULL,"
        " task_id TEXT NOT NULL, family TEXT NOT NULL, policy TEXT NOT NULL, environment TEXT NOT NULL, success INTEGER NOT NULL,"
        " r_candidate REAL NOT NULL, r_baseline REAL NOT NULL, cost REAL NOT NULL, state_verified INTEGER NOT NULL,"
        " causal_supported INTEGER NOT NULL, no_baseline INTEGER NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_lesson (id INTEGER PRIMARY KEY, family TEXT NOT NULL, text TEXT NOT NULL,"
        " warning TEXT NOT NULL, task_no INTEGER NOT NULL, times INTEGER NOT NULL, attached_to TEXT)",
        # running sums over the finished tasks: of a family (version 0), and of those that used a revision
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_sum (kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,"
        " runs INTEGER NOT NULL, successes INTEGER NOT NULL, score REAL NOT NULL, steps INTEGER NOT NULL,"
        " PRIMARY KEY (kind, name, version))",
        f"CREATE INDEX IF NOT EXISTS {s}.sepm_task_on_trial ON sepm_task (provisional)",
        f"CREATE INDEX IF NOT EXISTS {s}.sepm_version_digest ON sepm_version (digest)",
        f"CREATE INDEX IF NOT EXISTS {s}.sepm_candidate_digest ON sepm_candidate (digest)",
        f"CREATE INDEX IF NOT EXISTS {s}.sepm_candidate_waiting ON sepm_candidate (family, status)",
        f"CREATE UNIQUE INDEX IF NOT EXISTS {s}.sepm_lesson_waiting ON sepm_lesson (family, text) WHERE attached_to IS NULL",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_attribute (attribute TEXT PRIMARY KEY, entity TEXT NOT NULL, value TEXT NOT NULL,"
        " number INTEGER NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {s}.sepm_audit (seq INTEGER PRIMARY KEY, task_no INTEGER NOT NULL, event TEXT NOT NULL,"
        " detail TEXT NOT NULL)",
        *index.table(s),
        *(
            f"CREATE TRIGGER IF NOT EXISTS {s}.{table}_no_{what.lower()} BEFORE {what} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            for table in IMMUTABLE
            for what in ("UPDATE", "DELETE")
        ),
    )
