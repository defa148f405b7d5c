"""`host=dylan`: a grid of agents that answer layer by layer until they agree (METHODS.md 2.3, the form of the comparison).

Every environment step is one pass through the grid: `nodes` agents a layer, `rounds` layers. The pass ends as soon as a
layer agrees on a (normalised) action; without agreement a decision agent chooses. Calls per step with the default 2 × 2
grid: 2 if the first layer agrees, 4 if the second does, else 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from harness.contracts import Call, Member, Message, Models, Task, TaskSession, TeamMemory
from methods.hosts import dylan_importance as arithmetic
from methods.hosts.actor import Table, ask, propose
from methods.ranges import check_range
from methods.text.hash256 import cosine, embed

DECISION, RANKER, CRITIC = "decision", "ranker", "critic"
GRID = "grid"

ROLES = (
    ("solver", "You are a capable agent of a small team that works on a task in an environment, one action at a time."),
    (
        "grounding",
        "You are the common-sense agent of a small team that works on a task in an environment: you know where things usually "
        "are and what has to happen before what.",
    ),
    (
        "planner",
        "You are the planning agent of a small team that works on a task in an environment: you think some actions ahead.",
    ),
    (
        "critic",
        "You are the doubting agent of a small team that works on a task in an environment: you look for what is missing.",
    ),
)
HOW_TO_ANSWER = (
    "Where proposals of your teammates are shown, weigh them and keep to their form. Answer with the next action and nothing "
    "else."
)
DECISION_INSTRUCTION = (
    "Your team could not agree on its next action. Consider every proposal below; you may also find a better action of your "
    "own. Answer with one action in the form of the proposals and nothing else."
)
RANKER_INSTRUCTION = (
    "Several agents each proposed the next action of the same task. Rank their proposals from best to worst. Answer with the "
    "order of their numbers and nothing else, in this form: 2 > 1 > 3"
)
CRITIC_INSTRUCTION = (
    "You check a teammate's proposal for the next action of a task. If it is sound, answer with the word Support. If not, answer "
    "with one short suggestion."
)


@dataclass(frozen=True)
class Answer:
    """One node's answer in one layer: its raw text, the action in it, and what the critic says of it (empty: nothing)."""

    node: int
    raw: str
    action: str
    criticism: str = ""


@dataclass
class Layer:
    """The answers of a layer in the order of its nodes; the ranker may drop one, which then counts no more."""

    answers: list[Answer] = field(default_factory=list)
    agreed: str | None = None


class Dylan:
    """The grid form of DyLAN."""

    @dataclass
    class Config:
        """`nodes` agents a layer, `rounds` layers; `roles` (solver, grounding, planner, critic) are given to the nodes in turn.
        `critic` adds a call after every answer. `decision_sees_task` shows the decision agent more than the proposals.
        `importance` is constant (1 / nodes) or original (back-propagated over the similarity of answers, step by step)."""

        name: str = "dylan"
        nodes: int = 2
        rounds: int = 2
        roles: list[str] = field(default_factory=lambda: ["solver"])
        critic: bool = False
        decision_sees_task: bool = False
        importance: str = "constant"
        max_attempts: int = 3
        max_tokens: int | None = None
        show_choices: bool = False

        def __post_init__(self) -> None:
            check_range(self, "nodes", least=2)  # one agent has nobody to agree with
            check_range(self, "rounds", "max_attempts", "max_tokens", least=1)
            if self.importance not in ("constant", "original"):
                raise ValueError(f"importance is {self.importance!r}; use constant or original")
            check_roles(self.roles)

    name = "dylan"
    version = "1-A"

    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self.nodes = tuple(node_members(config.nodes, config.roles))
        self.decision = Member(DECISION, DECISION, acts=False, group=GRID)
        self.ranker = Member(RANKER, RANKER, acts=False)
        self.critic = Member(CRITIC, CRITIC, acts=False)

    def team(self, task: Task) -> Sequence[Member]:
        helpers = [self.ranker] if self.config.nodes > 2 else []
        helpers += [self.critic] if self.config.critic else []
        return (*self.nodes, self.decision, *helpers)

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        config = self.config
        table = Table(session, memory, models, config.max_attempts, config.max_tokens, show_choices=config.show_choices)
        importance: Sequence[float] = (1.0 / config.nodes,) * config.nodes
        while not session.done:
            importance = _Pass(self, table, importance).run()


def node_members(count: int, roles: Sequence[str]) -> list[Member]:
    """`count` acting agents of one grid, the roles given out in turn."""
    return [Member(f"{roles[node % len(roles)]}_{node + 1}", roles[node % len(roles)], group=GRID) for node in range(count)]


def check_roles(roles: Sequence[str]) -> None:
    """Raise ValueError for an unknown role (the public code silently takes it for a solver)."""
    known = [name for name, _ in ROLES]
    if not roles:
        raise ValueError("roles must name at least one role")
    for role in roles:
        if role not in known:
            raise ValueError(f"unknown role {role!r}; there are {', '.join(known)}")


class _Pass:
    """One pass through the grid, ending in one environment step."""

    def __init__(self, host: Dylan, table: Table, importance: Sequence[float]) -> None:
        self.host, self.config, self.table, self.importance = host, host.config, table, importance
        self.session = table.session

    def run(self) -> Sequence[float]:
        """Act once; the importance of each agent for the next step."""
        layers: list[Layer] = []
        for number in range(self.config.rounds):
            layers.append(self._layer(layers[-1].answers if layers else []))
            if layers[-1].agreed is not None:
                break
            if self.config.nodes > 2 and number == (self.config.rounds - 1) // 2:
                self._drop_last_ranked(layers[-1])
        return self._importance(layers, self._act(layers))

    def _layer(self, upstream: Sequence[Answer]) -> Layer:
        layer = Layer()
        for node, member in enumerate(self.host.nodes):
            instruction = f"{dict(ROLES)[member.role]} {HOW_TO_ANSWER}"
            raw = propose(self.table, "host.dylan.node", instruction, member, note=self._proposals(upstream))
            action = self.session.normalise(raw) or self.session.noop_action
            criticism = self._criticise(action) if self.config.critic else ""
            layer.answers.append(Answer(node, raw, action, criticism))
            layer.agreed = arithmetic.layer_consensus([a.action for a in layer.answers], self.config.nodes)
            if layer.agreed is not None:
                break
        return layer

    def _act(self, layers: Sequence[Layer]) -> str:
        """Execute what the last layer agreed on, else what the decision agent says; the executed action."""
        last, nodes = layers[-1], self.host.nodes
        if last.agreed is not None:
            author = next(answer for answer in last.answers if answer.action == last.agreed)
            before = layers[-2].answers if len(layers) > 1 else []
            return self.session.act(nodes[author.node].name, author.raw, upstream=[nodes[a.node].name for a in before]).action
        raw = ask(self.table, "host.dylan.decision", self.host.decision, lambda note: self._decision_prompt(last, note))
        upstream = [nodes[answer.node].name for answer in last.answers]
        return self.session.act(self.host.decision.name, raw, upstream=upstream).action

    def _drop_last_ranked(self, layer: Layer) -> None:
        listing = "\n".join(f"{number}. {answer.action}" for number, answer in enumerate(layer.answers, 1))
        text = self._say("ranker", self.host.ranker, RANKER_INSTRUCTION, f"{self._situation()}\n\nProposals:\n{listing}")
        order = arithmetic.parse_order(text, len(layer.answers))
        if order is not None:
            del layer.answers[order[-1]]

    def _criticise(self, action: str) -> str:
        text = self._say(CRITIC, self.host.critic, CRITIC_INSTRUCTION, f"{self._situation()}\n\nProposal: {action}").strip()
        return "" if text.lower().startswith("support") else " ".join(text.split())

    def _say(self, role: str, member: Member, instruction: str, text: str) -> str:
        messages: tuple[Message, ...] = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
        call = Call(f"host.dylan.{role}", messages, "actor", "act", member.name, max_tokens=self.config.max_tokens)
        return self.table.models.complete(call).text

    # --- texts ----------------------------------------------------------------------------------------------------------
    def _situation(self) -> str:
        """The task and what was seen last."""
        return situation(self.session)

    def _proposals(self, answers: Sequence[Answer]) -> str:
        if not answers:
            return ""
        lines = []
        for answer in answers:
            member = self.host.nodes[answer.node]
            doubt = f" (critic: {answer.criticism})" if answer.criticism else ""
            lines.append(
                f"- {member.name} ({member.role}, importance {self.importance[answer.node]:.2f}): {answer.action}{doubt}"
            )
        return "\n".join(["Proposals of your teammates:", *lines])

    def _decision_prompt(self, layer: Layer, note: str) -> tuple[Message, ...]:
        header = self.table.memory.guidance.reply_header
        parts = [self._situation()] if self.config.decision_sees_task else []
        parts += [self._proposals(layer.answers), note]
        system = "\n\n".join(part for part in (DECISION_INSTRUCTION, header) if part)
        return (
            {"role": "system", "content": system},
            {"role": "user", "content": "\n\n".join(part for part in parts if part)},
        )

    # --- importance -----------------------------------------------------------------------------------------------------
    def _importance(self, layers: Sequence[Layer], action: str) -> Sequence[float]:
        """HOST-DY R6: constant, or back-propagated through edges weighted by the similarity of answers."""
        if self.config.importance == "constant":
            return self.importance
        nodes = range(self.config.nodes)
        by_node = [{answer.node: answer.action for answer in layer.answers} for layer in layers]
        last = arithmetic.last_layer_importance([by_node[-1].get(node) for node in nodes], action)
        weights = []
        for earlier, later in pairwise(by_node):
            columns = {node: softmax_similarities(answer, earlier) for node, answer in later.items()}
            weights.append([[columns[j][i] if j in columns and i in earlier else 0.0 for j in nodes] for i in nodes])
        sums = arithmetic.totals(arithmetic.backward(last, weights))
        return tuple(value / len(layers) for value in sums)


def situation(session: TaskSession) -> str:
    """The task and the last observation, for agents that do not get the common prompt."""
    turns = session.trajectory().turns
    seen = turns[-1].result.observation if turns else session.observation
    return f"Task: {session.task.goal}\nLast observation: {seen}"


def softmax_similarities(answer: str, upstream: dict[int, str]) -> dict[int, float]:
    """Edge weights from upstream answers: softmax over the cosine of their texts (hash256)."""
    own = embed(answer)
    raised = {node: math.exp(cosine(own, embed(text))) for node, text in upstream.items()}
    total = sum(raised.values())
    return {node: value / total for node, value in raised.items()}
