"""What SEPM's manager, judge and extractor are asked, one function a call site."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Member, Message

Messages = tuple[Message, ...]

PLAN_RULES = (
    "You are the manager of a team of agents. Split the objective into a few subtasks, give each to an agent of the team, and "
    "say which subtasks must be finished before another can begin. Only name a prerequisite where its result is really needed. "
    "Reuse steps of the procedures below where they fit, bound to the things of this task, and heed their warnings. For each "
    "subtask state the conditions (entity, attribute, value) that hold when it is done, in the words in which it is observed.\n"
    "Answer with one JSON object:\n"
    '{"subtasks": [{"id": "n1", "action": "...", "agent": "...", "after": ["id", ...], "post": [{"entity": "...", "attribute": '
    '"...", "value": ...}], "from": "procedure#step or null"}], "used": ["procedure", ...]}'
)
REPLAN_RULES = (
    "You are the manager of a team of agents whose plan does not work out. Give a revised plan for the rest of the objective. "
    "Keep the id and the words of every subtask that stays as it is, finished ones included; a new subtask gets a new id. "
    "Answer with one JSON object of the same form as the plan:\n"
    '{"subtasks": [{"id": "...", "action": "...", "agent": "...", "after": ["id", ...], "post": [{"entity": "...", "attribute": '
    '"...", "value": ...}]}]}'
)
JUDGE_RULES = (
    "Say how well the operation that an agent intends agrees with its assignment and with the objective: 1 if it is the assigned "
    "operation, 0 if it is another one or breaks a constraint, even if the words are alike. "
    'Answer with {"score": number from 0 to 1} and nothing else.'
)
EXTRACT_RULES = (
    "You keep the team's procedures. Make a reusable procedure of the verified steps of a finished task. Use only the steps and "
    "prerequisites listed as verified; name things by what they are for the task (the facts say kind=value), so that the "
    "procedure fits other tasks of this kind. Conditions are facts that must hold for it to apply. Answer with one JSON object:\n"
    '{"op": "create|update|specialize|none", "target": "procedure or null", "title": "...", "description": "...", '
    '"applicability": ["..."], "context_conditions": ["..."], "exclusions": ["..."], "tags": ["..."], "steps": [{"id": "s1", '
    '"instruction": "...", "from_node": "n1", "pre": [], "post": [{"entity": "...", "attribute": "...", "value": ...}], '
    '"requires_confirmation": false, "safety_critical": false}], "edges": [["s1", "s2"]], "warnings": [{"text": "...", '
    '"trigger": "...", "record_ids": [1]}]}'
)
NEGOTIATE_RULES = (
    "Agents of a team disagree about a fact that nothing outside the team can settle. Propose the most plausible value from what "
    'they say. It stays an assumption. Answer with {"value": ..., "evidence": "..."} and nothing else.'
)
HEADER_RULES = (
    "Before the action write one line of JSON (in code: as a comment line) and then the action on the next line. The JSON line "
    'says which subtask of the plan you work on: {"node": "its id, or none", "goal": "what you are about to achieve, in at most '
    '20 words", "claims": [{"entity": "...", "attribute": "...", "value": ..., "confidence": 0.0}]}. '
    '"claims" (facts you believe) and "plan" (a list of {"id", "action", "after"}, if yours differs) may be left out.'
)


def _pair(system: str, user: str) -> Messages:
    first: Message = {"role": "system", "content": system}
    second: Message = {"role": "user", "content": user}
    return first, second


def _lines(*pairs: tuple[str, str]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in pairs if value)


def plan_messages(
    objective: str,
    family: str,
    facts: Sequence[str],
    team: Sequence[Member],
    procedures: Sequence[str],
    vocabulary: Sequence[str],
    rules: str = PLAN_RULES,
) -> Messages:
    """sepm.plan. `vocabulary` are examples of how the state was observed in earlier tasks."""
    body = _lines(
        ("Objective", objective),
        ("Family", family),
        ("Facts", "; ".join(facts)),
        ("Team", "; ".join(f"{m.name} ({m.role})" if m.role != m.name else m.name for m in team)),
        ("State is observed like", "; ".join(vocabulary)),
    )
    known = "\n\n".join(procedures) if procedures else "none"
    return _pair(rules, f"{body}\n\nProcedures:\n{known}")


def repair_messages(asked: Messages, answer: str, problem: str) -> Messages:
    """The same request once more, with what was wrong with the answer."""
    said: Message = {"role": "assistant", "content": answer[:600] or "(nothing)"}
    again: Message = {
        "role": "user",
        "content": f"This cannot be used: {problem[:300]}. Answer again, with one JSON object only.",
    }
    return (*asked, said, again)


def replan_messages(
    objective: str, team: Sequence[Member], plan: str, records: Sequence[str], problem: str, rules: str = REPLAN_RULES
) -> Messages:
    """sepm.replan."""
    body = _lines(("Objective", objective), ("Team", "; ".join(m.name for m in team)), ("What is wrong", problem))
    return _pair(rules, f"{body}\n\nPlan so far:\n{plan}\n\nWhat happened last:\n" + "\n".join(records))


def judge_goal_messages(goal: str, assigned: str, objective: str) -> Messages:
    """sepm.judge_goal: equation 5's J, about 150 tokens."""
    return _pair(
        JUDGE_RULES,
        f"Objective and constraints: {objective[:300]}\nAssigned: {assigned[:200]}\nThe agent's goal: {goal[:200]}",
    )


def extract_messages(
    objective: str,
    facts: Sequence[str],
    nodes: Sequence[str],
    edges: Sequence[str],
    failures: Sequence[str],
    reference: str,
    rules: str = EXTRACT_RULES,
) -> Messages:
    """sepm.extract."""
    body = _lines(("Objective", objective), ("Facts", "; ".join(facts)))
    sections = [
        "Verified steps:\n" + "\n".join(nodes),
        "Verified prerequisites: " + (", ".join(edges) or "none"),
        "Failures:\n" + ("\n".join(failures) or "none"),
        "Procedure that was used:\n" + (reference or "none"),
    ]
    return _pair(rules, "\n\n".join([body, *sections]))


def negotiate_messages(key: str, claims: Sequence[str]) -> Messages:
    """sepm.negotiate."""
    return _pair(NEGOTIATE_RULES, f"Fact: {key}\nWhat is said:\n" + "\n".join(claims))
