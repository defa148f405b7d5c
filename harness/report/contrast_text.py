"""`memarena compare` as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.report.text import NOTHING, columns, integer, number, plural


def render(found: Mapping[str, Any]) -> str:
    """`harness.report.contrast.contrast` as aligned plain text, ending without a newline."""
    blocks = [
        columns(_sides(found), right=frozenset({2, 3, 4, 5})),
        _differs(found),
        columns(_findings(found)),
        columns(_curve(found), right=frozenset({1, 2, 3})),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def render_sequential(found: Mapping[str, Any]) -> str:
    """Only whether one may stop, for looking at two runs in progress."""
    first, second = (found[side]["runs"][0] for side in ("first", "second"))
    return "\n".join([f"A {first}", f"B {second}", *columns(_sequential(found))])


def _sides(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", "run", "tasks", "infra", "score %", "95 %", "")]
    for letter, side in (("A", found["first"]), ("B", found["second"])):
        marks = ["scripted answers"] if side["scripted"] else []
        marks += [f"{plural(side['agent_failures'], 'agent failure')} (scored 0)"] if side["agent_failures"] else []
        names = side["runs"][0] + (f" and {len(side['runs']) - 1} more" if len(side["runs"]) > 1 else "")
        rows.append(
            (
                letter,
                names,
                f"{side['scored']}/{side['planned']}",
                f"+{side['infra_failures']}" if side["infra_failures"] else "0",
                number(side["mean"] * 100),
                interval(side["interval"], 100),
                ", ".join(marks),
            )
        )
    return rows


def interval(found: Mapping[str, Any] | None, scale: float = 1, decimals: int = 2) -> str:
    if found is None:
        return f"[{NOTHING}]"
    return f"[{number(found['low'] * scale, decimals)}, {number(found['high'] * scale, decimals)}]"


def p_text(p: float) -> str:
    """Three decimals, or below a thousandth two digits with an exponent."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def _differs(found: Mapping[str, Any]) -> list[str]:
    lines = found["differs_in"]
    if not lines:
        return []
    return [
        "A and B differ in more than the method (B → A), so the difference is not the method's alone:",
        *(f"  - {line}" for line in lines),
    ]


def _findings(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    difference = found["difference"]
    method = f", {difference['interval']['method']}" if difference["interval"] else ""
    alone = [f"{found[side]['without_partner']} of {letter}" for side, letter in (("first", "A"), ("second", "B"))]
    streams = f" in each of {found['streams']} streams" if found["streams"] > 1 else ""
    rows = [
        (
            "Pairs",
            f"{plural(found['pairs'], 'task')} with a result on both sides{streams}; without a partner: {', '.join(alone)}",
        ),
        ("Difference A − B", f"{signed(difference['mean'] * 100)} points {interval(difference['interval'], 100)} (95 %{method})"),
    ]
    if difference["spread_of_streams"] is not None:
        rows.append(
            ("", f"standard deviation of the streams' differences: {number(difference['spread_of_streams'] * 100)} points")
        )
    rows += [("Test", _test(found["tests"])), ("Effect size", _effect(found["effect"]))]
    rows += _needed(found["tasks_needed"], found["kind"])
    rows += _sequential(found) if found["sequential"] else [("Sequential", "only for one run a side")]
    return [*rows, _tokens(found["tokens"])]


def signed(value: float, decimals: int = 2) -> str:
    return f"{value:+.{decimals}f}".replace("-", "−")


def _test(tests: Mapping[str, Any]) -> str:
    if tests["mcnemar"]:
        found = tests["mcnemar"]
        return (
            f"exact McNemar p = {p_text(found['p'])} ({found['only_first']} solved only by A, {found['only_second']} only by B)"
        )
    found = tests["permutation"]
    how = "all sign flips" if found["exact"] else "9,999 drawn sign flips"
    return f"paired permutation p = {p_text(found['p'])} ({how})"


def _effect(effect: Mapping[str, Any]) -> str:
    if effect["cohens_h"] is None:
        return f"standardised difference d_z = {number(effect['standardised'])}"
    odds = effect["odds_ratio"]
    text = "no discordant pair, no odds ratio"
    if odds:
        low, value, high = ("∞" if odds[key] is None else number(odds[key]) for key in ("low", "value", "high"))
        text = f"odds of the discordant pairs {value} [{low}, {high}]"
    return f"{text}; Cohen's h = {number(effect['cohens_h'])}"


def _needed(needed: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    terms = f"(power {needed['power']:g}, alpha {needed['alpha']:g}, two-sided, {'McNemar' if kind == 'binary' else 'paired t'})"
    rows = [("Tasks needed", f"{_count(needed['observed'])} for a difference like this one {terms}")]
    if needed["detect"] is not None:
        rows.append(
            ("", f"{_count(needed['for_detect'])} for {needed['detect'] * 100:g} points, were the tasks as they are here")
        )
    return rows


def _count(tasks: int | None) -> str:
    return "no number of tasks" if tasks is None else plural(tasks, "task")


def _sequential(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    one = found["sequential"]
    so_far = f"e = {one['e']:.3g} after {one['n']} of {one['planned']} planned pairs"
    bounds = f"the difference is in {interval(one['interval'], 100, 1)} points"
    rows = [
        ("Sequential", f"{so_far} (highest {one['peak']:.3g}; decided once it is {1 / one['alpha']:g})"),
        ("", f"{bounds}, whenever one looks (alpha {one['alpha']:g})"),
    ]
    if one["decided"] and one["e"] < 1 / one["alpha"]:
        fallen = "one might have stopped; since then the evidence has fallen, so the difference is not steady"
        rows.append(("", f"DECIDED at pair {one['decided_at']}: {fallen}"))
    elif one["decided"]:
        rows.append(("", f"DECIDED at pair {one['decided_at']}: one may stop"))
    elif one["finished"]:
        rows.append(("", "not decided, and all planned pairs are played"))
    else:
        rows.append(("", "not decided: go on"))
    return rows


def _tokens(tokens: Mapping[str, Any]) -> tuple[str, str]:
    share = NOTHING if tokens["relative"] is None else f"{signed(tokens['relative'] * 100, 1)} %"
    first, second = (integer(round(tokens[side])) for side in ("first", "second"))
    return (
        "Tokens a task",
        f"A {first}, B {second}: {_more(tokens['difference'])} {interval(tokens['interval'], 1, 0)}, {share}",
    )


def _more(tokens: float) -> str:
    return f"{tokens:+,.0f}".replace("-", "−")


def _curve(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    learning = found["learning"]
    rows: list[tuple[str, ...]] = [("Along the stream", "A %", "B %", "A − B", "95 %")]
    sides = [learning[name]["blocks"] for name in ("first", "second", "difference")]
    for ours, theirs, change in zip(*sides, strict=True):
        where = f"pairs {change['first'] + 1}–{change['last'] + 1}"
        shown = (number(ours["mean"] * 100), number(theirs["mean"] * 100), signed(change["mean"] * 100))
        rows.append((where, *shown, interval(change["interval"], 100)))
    trend = [learning[name]["trend"] for name in ("first", "second", "difference")]
    if trend[2] is not None:
        rows.append(
            ("points a 100 tasks", *(signed(one["slope"] * 100, 1) for one in trend), interval(trend[2]["interval"], 100, 1))
        )
        rows.append(("p of the trend", *(p_text(one["p"]) for one in trend), ""))
    return rows
