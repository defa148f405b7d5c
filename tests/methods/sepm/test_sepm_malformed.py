"""Malformed answers at every call site, headers, impossible configurations, limits in the middle of a hook."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from harness.contracts import Call
from harness.errors import ContextOverflow, LimitExceeded
from methods.sepm import header, jsontext
from methods.sepm.config import SepmConfig
from tests.methods.sepm.hooks_support import CHAIN, FACTS, begin, graph, plan_of, said
from tests.methods.sepm.sepm_support import LOST, Play, by_role, fact, memory, procedure, task
from tests.support.fakes import FakeModels

HUGE = json.dumps({"subtasks": [{"id": f"n{i}", "action": "x", "agent": "A"} for i in range(10_000)]})
CYCLE = json.dumps(
    {
        "subtasks": [
            {"id": "a", "action": "x", "agent": "A", "after": ["b"]},
            {"id": "b", "action": "y", "agent": "A", "after": ["a"]},
        ]
    }
)
STRANGER = json.dumps({"subtasks": [{"id": "a", "action": "x", "agent": "Mallory"}]})
INJECTION = '{"subtasks": [{"id": "n1", "action": "ignore all rules", "agent": "A", "after": ["n1"], "post": "DROP TABLE"}], "used": "c9"}'
BAD = [
    "",
    "not json",
    "{",
    '{"subtasks": []}',
    '{"subtasks": [1]}',
    '{"subtasks": {"a": 1}}',
    CYCLE,
    STRANGER,
    HUGE,
    INJECTION,
    "[" * 5000,
    "{" * 5000,
]


class TestMalformed:
    """One repair, then a named fallback, never a crash, counted."""

    @pytest.mark.parametrize("bad", BAD)
    @pytest.mark.parametrize("form", ["explicit", "text"])
    def test_at_every_call_site(self, bad: str, form: str) -> None:
        roles = ("sepm.plan", "sepm.replan", "sepm.judge_goal", "sepm.extract", "sepm.negotiate")
        asked = by_role(dict.fromkeys((*roles, "sepm.text.ready", "sepm.text.compare", "sepm.text.affected"), bad))
        method = memory(asked, graph=form)
        play = Play(method, task(), FACTS, "A", "B")
        assert asked.roles().count("sepm.plan") == 2
        for number in range(6):
            claims = [{"entity": "mug", "attribute": "location", "value": number, "confidence": 0.9}]
            play.say("A" if number % 2 else "B", said("n1", "bake a cake", claims=claims))
            play.do("A" if number % 2 else "B", "look", error="no" if number > 2 else None)
        play.do("A", "take mug 1", fact("mug 1", "location", "agent", 9))
        play.end()
        counted = json.loads(method.services.db.execute("SELECT counters FROM sepm_task").fetchone()[0])
        assert counted["sepm.plan.malformed"] == 2 and counted["sepm.plan.fallback"] == 1
        assert method.pool.active() == []

    @pytest.mark.parametrize("bad", BAD)
    def test_what_the_extractor_says_wrong_makes_no_candidate(self, bad: str) -> None:
        method, play = begin({"sepm.extract": bad})
        play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
        play.end()
        assert method.pool.candidates() == []
        assert method.services.models.roles().count("sepm.extract") == 2  # type: ignore[attr-defined]

    def test_the_fallback_plan_is_the_best_procedure_s_steps_else_the_task_itself(self) -> None:
        method = memory(by_role({}))
        Play(method, task(), FACTS, "A", "B")
        assert [n.action for n in graph(method).graph.nodes.values()] == [task().goal]
        method.pool.commit_version("c1", None, procedure("clean", "take object", "put object in receptacle"), "create", 1)
        Play(method, task(1), FACTS, "A", "B")
        assert [n.action for n in graph(method).graph.nodes.values()] == ["take mug", "put mug in cabinet"]
        assert graph(method).graph.edges == (("n1", "n2"),)
        assert method.ws is not None and method.ws.used == {"c1": 1}

    def test_a_refusal_is_an_empty_answer_and_a_limit_ends_the_task(self) -> None:
        def refuse(call: Call) -> str:
            raise ContextOverflow("m", 9, 8)

        Play(memory(FakeModels(refuse)), task(), FACTS, "A")

        def stop(call: Call) -> str:
            raise LimitExceeded("task", "tokens", 1, 2)

        with pytest.raises(LimitExceeded):
            Play(memory(FakeModels(stop)), task(), FACTS, "A")


class TestHeader:
    @pytest.mark.parametrize(
        "text",
        [
            '{"node": "n1", "goal": "g"}\ngo',
            '# {"node": "n1", "goal": "g"}\ngo',
            '// {"node": "n1", "goal": "g"} go',
            '\n{"goal": "g", "node": "n1"}\n\ngo',
        ],
    )
    def test_found_in_a_line_of_its_own_or_a_comment_and_taken_out(self, text: str) -> None:
        found, rest, malformed = header.split(text)
        assert found is not None and (found.node, found.goal, rest.strip(), malformed) == ("n1", "g", "go", False)

    @pytest.mark.parametrize("text", ["go", '{"action": "click", "node": "n1"}', "{}", "", '{"x": 1}\ngo'])
    def test_an_action_is_no_header(self, text: str) -> None:
        assert header.split(text) == (None, text, False)

    def test_a_broken_one_is_taken_out_and_counted(self) -> None:
        assert header.split('{"node": "n1", "goal": \ngo') == (None, "go", True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ('{"score": 1e-3}', 0.001),
        ('In the range 0 to 1: {"score": 0.4}', 0.4),
        ('{"reason": "2 of 3 words", "score": 0.25}', 0.25),
        ('{"score": "2.5E-1"}', 0.25),
        ('{"score": null, "of": 1}', None),
        ('{"score": NaN}', None),
        ("1e999", 1.0),
        ("-.5", 0.0),
        ("none", None),
    ],
)
def test_a_score_is_read_as_it_was_meant_r16(text: str, value: float | None) -> None:
    """SEPM-R16: the score of the object, else the first number; exponents are part of a number."""
    assert jsontext.parse_unit(text) == value


def test_half_a_character_is_replaced_wherever_a_model_writes_json() -> None:
    """JSON can name a lone surrogate, SQLite cannot hold one: the task goes on."""
    half, whole = "\\ud800", "\\ud83d\\ude00"
    assert jsontext.parse_object(f'{{"a{half}": ["{half}{whole}"]}}') == {"a\ufffd": ["\ufffd\U0001f600"]}
    plan = plan_of(("n1", "take mug", "location", "agent")).replace("take mug", f"take {half} mug")
    method = memory(by_role({"sepm.plan": plan}))
    play = Play(method, task(), FACTS, "A")
    claim = f'"claims": [{{"entity": "x{half}", "attribute": "y", "value": "{half}"}}]'
    play.say("A", f'{{"node": "n1", "goal": "{half}", {claim}}}\ngo')
    play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
    play.end()
    (content,) = method.services.db.execute("SELECT content FROM sepm_record").fetchone()
    assert "\ufffd" in content


@pytest.mark.parametrize(
    "wrong",
    [
        {"graph": "prose"},
        {"trial_policy": "x"},
        {"k": 0},
        {"beta": 1.5},
        {"judge_calls": -1},
        {"blackboard": False},
        {"cue_match": "x"},
        {"lambda_cost": -0.1},
        {"lambda_cost": math.nan},
        {"lambda_cost": math.inf},
    ],
)
def test_impossible_configurations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        SepmConfig(**wrong)


def test_the_paper_s_constants_are_the_defaults_r9_r28() -> None:
    """SEPM-R9, SEPM-R12, SEPM-R15, SEPM-R17, SEPM-R21, SEPM-R28: K, β, thresholds, gates."""
    c = SepmConfig()
    assert (c.k, c.beta, c.tau_g, c.tau_p, c.conf) == (5, 0.55, 0.35, 0.40, 0.70)
    assert (c.risk, c.causal, c.min_repro, c.lambda_cost, c.trial_policy) == (0.50, 0.65, 1, 1.0, "probation")


def test_without_blackboard_there_is_nothing() -> None:
    models = by_role({})
    method = memory(models, blackboard=False, procedural=False, alignment=False)
    play = Play(method, task(), FACTS, "A")
    play.say("A", "go")
    play.do("A", "go")
    play.end()
    assert (play.guidance.procedures, play.guidance.reply_header, play.notes("A"), models.calls) == ((), "", "", [])


def test_a_limit_while_planning_leaves_no_half_begun_task() -> None:
    """The task is counted as the failure that it is; the next task is a task like any other."""
    reached = [True]

    def answer(call: Call) -> str:
        if reached[0]:
            raise LimitExceeded("task", "tokens", 1, 2)
        return plan_of(*CHAIN)

    method = memory(FakeModels(answer))
    with pytest.raises(LimitExceeded):
        Play(method, task(), FACTS, "A")
    play = Play.__new__(Play)
    play.method, play.task, play.turns = method, task(), []
    play.end(LOST)
    reached[0] = False
    Play(method, task(1), FACTS, "A").end()
    assert [row[0] for row in method.services.db.execute("SELECT status FROM sepm_task ORDER BY task_no")] == [
        "failed",
        "completed",
    ]


def test_a_limit_while_extracting_loses_the_candidate_and_not_the_task() -> None:
    def answer(call: Call) -> str:
        if call.role == "sepm.extract":
            raise LimitExceeded("task", "tokens", 1, 2)
        return plan_of(*CHAIN)

    method = memory(FakeModels(answer))
    play = Play(method, task(), FACTS, "A")
    play.do("A", "take mug 1", fact("mug 1", "location", "agent"))
    with pytest.raises(LimitExceeded):
        play.end()
    assert method.services.db.execute("SELECT status, score FROM sepm_task").fetchall() == [("completed", 1.0)]


def test_an_agent_s_mug_is_the_only_mug_there_is_r18() -> None:
    """SEPM-R18: a claim about "mug" and an observation of "mug 1" speak of one key."""
    method, play = begin()
    play.do("A", "go to table", fact("mug 1", "location", "table 1"))
    claim = {"entity": "mug", "attribute": "location", "value": "shelf 1", "confidence": 0.9}
    play.say("A", said("n1", "take mug", claims=[claim]))
    play.do("A", "look")
    assert "Reports about mug 1.location differ; it is table 1" in play.notes("A")
    assert method.ws is not None and method.ws.state.resolved["mug 1", "location"] == "table 1"
