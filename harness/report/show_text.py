"""A run's summary as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.report.text import NOTHING, columns, dollars, integer, number, plural

MOST_REASONS = 5  # of agent failures; the rest is in --json


def render(summary: Mapping[str, Any]) -> str:
    """`harness.report.show.summary` as aligned plain text, ending without a newline."""
    blocks = [
        columns(_head(summary)),
        columns(_results(summary)),
        _breakdown("Groups", summary["groups"]),
        _breakdown("Families", summary["families"] if summary["families"] != summary["groups"] else []),
        _usage(summary["tokens"], summary["calls_per_task"]),
        _list("Infrastructure failures (not in n; the same command tries them again)", _failures(summary)),
        _list("Not comparable with a paper's numbers", summary["not_comparable"]),
        _list("Notes", summary["notes"]),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    labels, tasks = summary["labels"], summary["tasks"]
    cell = " × ".join(labels[key] for key in ("host", "method", "env", "models"))
    scripted = " (scripted: no model answered)" if summary["scripted"] else ""
    return [
        ("Run", summary["name"]),
        ("Cell", cell + (f" [{labels['variant']}]" if labels["variant"] else "")),
        ("Model", labels["models_label"] + scripted),
        ("Seed, order", f"{summary['seed']}, {tasks['order']}"),
        ("Identity", summary["identity"][:16]),
        ("Status", f"{summary['status']}, {tasks['scored']} of {tasks['planned']} tasks have a result"),
    ]


def interval_text(score: Mapping[str, Any] | None, scale: float = 100) -> str:
    """ "[20.77, 93.85]", or a dash where there is no interval."""
    if score is None or score["interval"] is None:
        return f"[{NOTHING}]"
    found = score["interval"]
    return f"[{number(found['low'] * scale)}, {number(found['high'] * scale)}]"


def score_text(score: Mapping[str, Any] | None) -> str:
    """ "66.67 % [20.77, 93.85]", or a dash."""
    return NOTHING if score is None else f"{number(score['mean'] * 100)} % {interval_text(score)}"


def _results(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    tasks, score, steps, tokens = summary["tasks"], summary["score"], summary["steps"], summary["tokens"]
    how = f" (95 %, {score['interval']['method']})" if score and score["interval"] else ""
    late = f", {len(tasks['late'])} late" if tasks["late"] else ""
    rows = [
        ("Score", score_text(score) + how + (f", n = {score['n']}" if score else "")),
        ("Successes", f"{tasks['successes']} of {tasks['scored']}" if tasks["scored"] else NOTHING),
        ("Agent failures", f"{tasks['agent_failures']} (scored 0, in n){late}" if tasks["scored"] else NOTHING),
        *[("", f"{task}: {reason}") for task, reason in list(tasks["agent_failure_reasons"].items())[:MOST_REASONS]],
        ("Infra failures", f"{len(tasks['infra_failures'])} (not in n)"),
        ("Steps", f"{number(steps['mean'])} a task, {integer(steps['total'])} in all" if steps else NOTHING),
    ]
    return rows + _spending(summary, tokens)


def _spending(summary: Mapping[str, Any], tokens: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    lost, cost = summary["not_committed"], summary["cost"]
    rows = [("Tokens (method)", NOTHING)]
    if tokens:
        method = tokens["method"]
        estimated = (
            f"; {plural(method['estimated_calls'], 'call')} counted here or estimated" if method["estimated_calls"] else ""
        )
        rows = [("Tokens (method)", _token_text(method) + estimated)]
        for key, label in (("eval_judge", "Tokens (judge)"), ("embeddings", "Tokens (embed)")):
            if tokens[key]["calls"]:
                rows.append((label, _token_text(tokens[key]) + ", not in the method's"))
    if lost["attempts"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in lost["by_kind"].items())
        spent = f"{integer(lost['total_tokens'])} tokens, {dollars(lost['cost_usd'])}"
        rows.append(("Left no result", f"{plural(lost['attempts'], 'attempt')} ({kinds}): {spent}, in no other number"))
    prices = f" (prices of {cost['prices_date']})" if cost["usd"] is not None and cost["prices_date"] else ""
    unknown = " (no price for some of the calls)" if cost["usd"] is None and tokens else ""
    seconds = summary["seconds"]
    return [
        *rows,
        ("Cost", dollars(cost["usd"]) + prices + unknown),
        ("Time", f"{seconds:,.1f} s" if seconds is not None else NOTHING),
    ]


def _token_text(usage: Mapping[str, Any]) -> str:
    parts = f"{integer(usage['input_tokens'])} in, {integer(usage['output_tokens'])} out"
    failed = f" ({usage['failed_calls']} failed)" if usage["failed_calls"] else ""
    return f"{integer(usage['total_tokens'])} = {parts}; {plural(usage['calls'], 'call')}{failed}"


def _breakdown(title: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    if not parts:
        return []
    head = (title, "n", "solved", "score %", "95 %", "steps")
    rows = [
        (
            part["name"],
            str(part["score"]["n"]),
            str(part["successes"]),
            number(part["score"]["mean"] * 100),
            interval_text(part["score"]),
            number(part["steps"]["mean"]),
        )
        for part in parts
    ]
    return columns([head, *rows], right=frozenset({1, 2, 3, 4, 5}))


def _usage(tokens: Mapping[str, Any] | None, calls_per_task: Mapping[str, float] | None) -> list[str]:
    if not tokens or not tokens["by_role"]:
        return []
    rows = [("Tokens by", "", "input", "output", "total", "calls", "calls/task")]
    for column in ("role", "agent", "phase"):
        for part in tokens[f"by_{column}"]:
            counts = [integer(part[key]) for key in ("input_tokens", "output_tokens", "total_tokens", "calls")]
            rate = number(calls_per_task[part["role"]]) if column == "role" and calls_per_task else ""
            rows.append((column, str(part[column] or NOTHING), *counts, rate))  # type: ignore[arg-type]
    return columns(rows, right=frozenset({2, 3, 4, 5, 6}))


def _failures(summary: Mapping[str, Any]) -> list[str]:
    return [
        f"position {failure['position']}, attempt {failure['attempts']}: {failure['error'] or 'no message'}"
        for failure in summary["tasks"]["infra_failures"]
    ]


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"  - {line}" for line in lines)] if lines else []
