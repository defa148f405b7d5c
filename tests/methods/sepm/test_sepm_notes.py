"""What SEPM tells the event log: the plan as it changes, divergences, corrections, and what becomes of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.methods.sepm.hooks_support import CHAIN, FACTS, plan_of, said
from tests.methods.sepm.sepm_support import Play, by_role, fact, memory, pool, procedure, task

Heard = list[tuple[str, Mapping[str, Any]]]


def listening(answers: Mapping[str, Any]) -> tuple[Heard, Play]:
    heard: Heard = []
    method = memory(by_role({"sepm.plan": plan_of(*CHAIN), **answers}))
    method.services = replace(method.services, note=lambda kind, content: heard.append((kind, content)))
    return heard, Play(method, task(), FACTS, "A", "C")


def test_the_plan_is_told_whole_once_and_then_by_what_changed() -> None:
    heard, play = listening({})
    play.say("A", said("n1", "take mug"))
    play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
    play.do("A", "look")
    (kind, first), (second_kind, second), *rest = heard
    assert (kind, first["step"], [node["status"] for node in first["graph"]["nodes"]]) == ("graph", 0, ["pending"] * 3)
    assert (second_kind, second) == ("graph_status", {"step": 1, "changed": {"n1": "verified"}})
    assert [kind for kind, _ in rest] == ["graph_status"]


def test_a_divergence_is_told_with_its_value_and_a_correction_when_it_is_heard() -> None:
    heard, play = listening({"sepm.judge_goal": '{"score": 0}'})
    play.say("A", said("n1", "bake a cake"))
    play.do("A", "look")
    (found,) = [content for kind, content in heard if kind == "divergence"]
    assert (found["step"], found["agent"], found["reasons"], found["conflicts"]) == (1, "A", ("goal",), [])
    assert found["goal"] > 0.35 and "correction" not in dict(heard)
    play.notes("A")
    (sent,) = [content for kind, content in heard if kind == "correction"]
    assert (sent["step"], sent["agent"]) == (1, "A") and sent["text"].startswith("Your goal has drifted.")


def test_a_pool_tells_what_was_added_changed_and_retired() -> None:
    heard: Heard = []
    store = pool()
    store._note = lambda kind, content: heard.append((kind, content))
    store.commit_version("c1", None, procedure(), "create", 1)
    store.commit_version("c1", 1, procedure("clean a mug", "find mug", "clean mug"), "update", 2)
    store.retire("c1", 2)
    told = [(content["item"], content["change"], content["why"]) for _, content in heard]
    assert told == [
        ("procedure c1", "added", "v1, create"),
        ("procedure c1", "changed", "v2, update"),
        ("procedure c1", "removed", "v2 retired"),
    ]
    before, after = heard[1][1]["before"], heard[1][1]["after"]
    assert "1. take mug [s1]" in before and "1. find mug [s1]" in after and heard[0][1]["after"] == before
