"""J_goal: how consistent an agent's goal is with its assignment (SEPM paper 4.2, B.2), by a model or, failing that, by words."""

from __future__ import annotations

from harness.contracts import Call, Models
from harness.errors import AgentError
from methods.sepm.graph import normal
from methods.sepm.jsontext import parse_unit
from methods.sepm.prompts import judge_goal_messages
from methods.text.hash256 import tokens

NEGATIONS = frozenset(
    ["not", "no", "never", "without", "don", "dont", "cannot", "avoid", "except", "unless", "stop", "refuse", "none"]
)


def lexical_consistency(goal: str, assigned: str) -> float:
    """J without a model: 0 where the negations differ, else the Jaccard index of the words."""
    a, b = set(tokens(goal)), set(tokens(assigned))
    if a & NEGATIONS != b & NEGATIONS:
        return 0.0
    return len(a & b) / len(a | b) if a | b else 1.0


class GoalJudge:
    """One task's judge: a pure function of (goal, assigned, objective), so each triple is asked once (AMB-11).

    Where the model refuses or its answer holds no number, J is lexical (`malformed` counts these). After `limit` calls J is not
    known, which is no drift (SEPM-R20); `over_budget` counts that.
    """

    def __init__(self, models: Models, limit: int) -> None:
        self._models, self._limit = models, limit
        self._known: dict[tuple[str, str, str], float] = {}
        self.calls = self.malformed = self.over_budget = 0

    def consistency(self, goal: str, assigned: str, objective: str) -> float | None:
        """J in [0, 1]; None beyond the budget. No call where the two goals are the same text."""
        if normal(goal) == normal(assigned):
            return 1.0
        key = normal(goal), normal(assigned), objective
        if key not in self._known:
            if self.calls >= self._limit:
                self.over_budget += 1
                return None
            self._known[key] = self._ask(goal, assigned, objective)
        return self._known[key]

    def _ask(self, goal: str, assigned: str, objective: str) -> float:
        self.calls += 1
        messages = judge_goal_messages(goal, assigned, objective)
        try:
            text = self._models.complete(
                Call("sepm.judge_goal", messages, key="judge", phase="align", agent="judge", temperature=0.0)
            ).text
        except AgentError:
            text = ""
        found = parse_unit(text)
        if found is None:
            self.malformed += 1
            return lexical_consistency(goal, assigned)
        return found
