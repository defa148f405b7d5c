"""The textual control (SEPM paper 5.5, C.1): plans and procedures are prose, and what the graph answered a model answers.

There are no step ids, edges or adjacency: readiness, plan comparison and who is affected are read off the text by calls with
the roles `sepm.text.*`, at most `text_calls` a task; beyond that, or where an answer cannot be read, nothing is blocked, D_p is
not observed, and only the acting agent is told. Blackboard, evidence, state, memory, retrieval and budgets are those of SEPM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Call, Evidence, Message, Models
from methods.sepm import prompts
from methods.sepm.conditions import Condition
from methods.sepm.coordination import Attribution, PlanCheck
from methods.sepm.jsontext import Malformed, parse_object, parse_unit, word_list, words
from methods.sepm.plans import ask_twice, say
from methods.sepm.prompts import Messages
from methods.sepm.workspace import Workspace

PLAN_RULES = (
    "You are the manager of a team of agents. Write a plan for the objective in a few sentences, one subtask a sentence: which "
    "agent does what, and what must be finished before it. Reuse the procedures below where they fit, bound to the things of "
    "this task, and heed their warnings. Answer with one JSON object:\n"
    '{"plan": ["sentence", ...], "used": ["procedure", ...]}'
)
REPLAN_RULES = (
    "You are the manager of a team of agents whose plan does not work out. Write a revised plan for the rest of the objective "
    'in the same form, keeping the sentences that stay true. Answer with one JSON object: {"plan": ["sentence", ...]}'
)
READY_RULES = (
    "Say whether everything that the plan wants finished before a step is finished, going by what is verified. Answer with "
    '{"ready": true or false, "missing": "what is not finished, or empty"} and nothing else.'
)
COMPARE_RULES = (
    "Say how far what an agent does departs from the plan: 0 if it is what the plan gives it to do now, 1 if it is something "
    'else or leaves out what must come before. Answer with {"score": number from 0 to 1} and nothing else.'
)
AFFECTED_RULES = (
    "An agent departed from the plan. Name the agents whose part of the plan depends on what it should have done, itself "
    'included. Answer with {"agents": ["...", ...]} and nothing else.'
)
HEADER_RULES = (
    "Before the action write one line of JSON (in code: as a comment line) and then the action on the next line. The JSON line "
    'says which step of the plan you work on: {"node": "the step in your words, or none", "goal": "what you are about to '
    'achieve, in at most 20 words", "claims": [{"entity": "...", "attribute": "...", "value": ..., "confidence": 0.0}]}. '
    '"claims" (facts you believe) may be left out.'
)
EXTRACT_RULES = (
    "You keep the team's procedures. Write a reusable procedure from the records of a finished task whose outcome is verified: a "
    "sentence a step, each saying what must be done before it; name things by what they are for the task (the facts say "
    "kind=value). Cite the records that a step rests on. Conditions are facts that must hold for it to apply. Answer with one "
    "JSON object:\n"
    '{"op": "create|update|specialize|none", "target": "procedure or null", "title": "...", "description": "...", '
    '"applicability": ["..."], "context_conditions": ["..."], "exclusions": ["..."], "tags": ["..."], "steps": [{"id": "s1", '
    '"instruction": "...", "record_ids": [1], "requires_confirmation": false, "safety_critical": false}], "warnings": [{"text": '
    '"...", "trigger": "...", "record_ids": [1]}]}'
)
LONGEST_PLAN = 40  # sentences


@dataclass
class TextCoordination:
    """Answers what `GraphCoordination` answers, from the prose of the plan."""

    ws: Workspace
    models: Models
    sentences: tuple[str, ...] = ()
    calls: int = 0
    known: dict[tuple[str, ...], Any] = field(default_factory=dict)  # answers by role and what was asked

    reply_header = HEADER_RULES

    def start(self, procedures: Sequence[str], vocabulary: Sequence[str]) -> None:
        ws = self.ws
        messages = prompts.plan_messages(
            ws.objective, ws.task.family, sorted(ws.facts), ws.roster, procedures, vocabulary, PLAN_RULES
        )
        call = Call("sepm.plan", messages, key="planner", phase="plan", agent="manager")
        plan = ask_twice(self.models, call, self._read_plan, ws.counters)
        if plan is None:
            best = next(iter(ws.references.items()), None)
            steps = tuple(s.instruction for s in best[1][1].steps) if best else ()
            plan = steps or (ws.objective,), (best[0],) if best and steps else ()
        self.sentences = plan[0]
        ws.used = {sop: ws.references[sop][0] for sop in plan[1]}

    def _read_plan(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        given = parse_object(text)
        sentences = word_list(given.get("plan"), LONGEST_PLAN, 300)
        if not sentences:
            raise Malformed("there is no list of sentences under plan")
        return sentences, tuple(sop for sop in word_list(given.get("used")) if sop in self.ws.references)

    def replan(self, problem: str) -> bool:
        ws = self.ws
        if ws.replans >= ws.config.max_replans:
            return False
        ws.replans += 1
        messages = prompts.replan_messages(ws.objective, ws.roster, self._text(), ws.last_lines(4), problem, REPLAN_RULES)
        call = Call("sepm.replan", messages, key="planner", phase="plan", agent="manager")
        plan = ask_twice(self.models, call, self._read_plan, ws.counters)
        if plan is not None:
            self.sentences = plan[0]
        return plan is not None

    # --- reading ------------------------------------------------------------------------------------------------------
    def _text(self) -> str:
        return "\n".join(self.sentences)

    def brief(self) -> str:
        return f"Shared plan:\n{self._text()}"

    def assignment(self, agent: str) -> str:
        """The sentences that name the agent or one of its group; all of them where none does."""
        names = [name.casefold() for name in self.ws.peers(agent)]
        mine = [s for s in self.sentences if any(name in s.casefold() for name in names)]
        return " ".join(mine or self.sentences)[:400]

    def note(self, agent: str) -> list[str]:
        lines = [f"Your part: {self.assignment(agent)}"]
        facts = self._facts()
        return lines + ([f"Verified: {facts}"] if facts else [])

    def _facts(self) -> str:
        known = [(key, value) for key, value in self.ws.state.resolved.items() if key[1] != "holds"]
        return "; ".join(f"{key[0]}.{key[1]}={value}"[:80] for key, value in known[-8:])

    def relevant(self, agent: str) -> list[Condition]:
        """The observed facts about things that the plan mentions: text has no keys to go by."""
        text = self._text().casefold()
        return [Condition(entity, attribute) for entity, attribute in self.ws.state.items if entity.split()[0].casefold() in text]

    def blocked(self, agent: str, action: str) -> str:
        step = self.ws.seen(agent).node
        if step is None or step.lower() == "none":
            return ""
        ask = f"Plan:\n{self._text()}\n\nStep: {step}\nVerified: {self._facts() or 'nothing'}"
        answer = self._ask("sepm.text.ready", READY_RULES, ask, _read_ready)
        return (
            f"This step cannot begin: {answer[1] or 'something before it is not finished'}." if answer and not answer[0] else ""
        )

    # --- what a step did ----------------------------------------------------------------------------------------------
    def attribute(self, agent: str, evidence: Sequence[Evidence], error: str | None) -> Attribution:
        """Prose has no steps to link a record to; what the agent said it was doing stands in the record's subtask."""
        return Attribution(None)

    def settle(self, found: Attribution, evidence: Sequence[Evidence], error: str | None) -> list[str]:
        return []

    def stuck(self) -> str:
        return ""

    def failing(self) -> str:
        """Errors at the end of the records, as many as make the manager plan anew."""
        last = list(self.ws.blackboard)[-self.ws.config.replan_after :]
        same = len(last) == self.ws.config.replan_after and all(r.error for r in last) and len({r.action for r in last}) == 1
        return f"'{last[-1].action}' failed {len(last)} times" if same else ""

    # --- comparing ----------------------------------------------------------------------------------------------------
    def check_plan(self, agent: str, action: str) -> PlanCheck:
        seen = self.ws.seen(agent)
        if seen.node is None:
            return PlanCheck()
        step = seen.node if seen.node.lower() != "none" else action
        ask = f"Plan:\n{self._text()}\n\n{agent} works on: {step}"
        value = self._ask("sepm.text.compare", COMPARE_RULES, ask, parse_unit)
        return PlanCheck(value, (), (), "", self.assignment(agent))

    def affected(self, agent: str, check: PlanCheck) -> list[str]:
        ask = f"Plan:\n{self._text()}\n\n{agent} works on: {self.ws.seen(agent).node}"
        names = self._ask("sepm.text.affected", AFFECTED_RULES, ask, _read_agents) or ()
        team = {member.name for member in self.ws.team}
        reached = [agent, *(name for name in names if name in team)]
        return list(dict.fromkeys(name for one in reached for name in self.ws.peers(one)))

    def plain(self) -> dict[str, Any]:
        return {"prose": list(self.sentences)}

    def _ask(self, role: str, rules: str, question: str, read: Any) -> Any:
        """One question about the text; None where the budget is spent or the answer unreadable. Asked once for the same text."""
        key = role, question
        if key in self.known:
            return self.known[key]
        if self.calls >= self.ws.config.text_calls:
            self.ws.counters.add(f"{role}.over_budget")
            return None
        self.calls += 1
        system: Message = {"role": "system", "content": rules}
        user: Message = {"role": "user", "content": question}
        messages: Messages = (system, user)
        text = say(self.models, Call(role, messages, key="judge", phase="align", agent="judge", temperature=0.0))
        try:
            found = read(text)
        except Malformed:
            found = None
        if found is None:
            self.ws.counters.add(f"{role}.malformed")
        self.known[key] = found
        return found


def _read_ready(text: str) -> tuple[bool, str]:
    given = parse_object(text)
    if not isinstance(given.get("ready"), bool):
        raise Malformed("ready is no boolean")
    return given["ready"], words(given.get("missing"), 200)


def _read_agents(text: str) -> tuple[str, ...]:
    return word_list(parse_object(text).get("agents"))
