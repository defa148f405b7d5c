"""`host=dylan_original`: DyLAN as published (METHODS.md 2.4): peer ratings, agent importance, listwise ranking, early stopping.

Made for tasks with a single answer. In an environment of many steps every step is such a question, whose answer is the next
action: one forward pass a step, up to agents × rounds calls. The importance of the agents is written into the event log after
each pass; `python -m methods.hosts.dylan_team RUN --keep 2` turns the log of a run on validation tasks into `host.team`.
The three known bugs of the public code are not here: the ranker's choice is applied to agents and not to places in a shuffled
loop, importance never divides by zero, and any number of rounds from 1 on will do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.contracts import Call, Member, Message, Models, Task, TaskSession, TeamMemory
from harness.seeds import rng
from methods.hosts import dylan_importance as arithmetic
from methods.hosts.actor import Table, propose
from methods.hosts.dylan import RANKER, ROLES, check_roles, node_members, situation
from methods.ranges import check_range

HOW_TO_ANSWER = (
    "On the first lines give the next action and nothing else. Where replies of your teammates are shown, weigh them, and add "
    "one last line that rates each of them from 1 (wrong) to 5 (certainly right), in their order, in double brackets: [[4, 2, 5]]"
)
RANKER_INSTRUCTION = (
    "Several agents each replied to the same question with the next action of a task. Choose the two best replies. Answer with "
    "their numbers and nothing else, in this form: [1, 3]"
)


@dataclass(frozen=True)
class Reply:
    """One agent's reply in one round: raw text, normalised action, and the weights of its edges from upstream agents."""

    raw: str
    action: str
    weights: dict[int, float]


@dataclass
class Pass:
    """One forward pass: the replies of every round by agent, and the result with who said it first in the last round."""

    rounds: list[dict[int, Reply]] = field(default_factory=list)
    result: str = ""

    def importance(self, agents: int) -> list[tuple[float, ...]]:
        """Importance of each agent in each round, first round first; an agent without a reply has 0."""
        last = [self.rounds[-1][a].action if a in self.rounds[-1] else None for a in range(agents)]
        weights = [
            [[later[j].weights.get(i, 0.0) if j in later else 0.0 for j in range(agents)] for i in range(agents)]
            for later in self.rounds[1:]
        ]
        return arithmetic.backward(arithmetic.last_layer_importance(last, self.result), weights)


class DylanOriginal:
    """The published DyLAN."""

    @dataclass
    class Config:
        """`agents` with `roles` in turn, `rounds` at most. `team` lists the places (0-based) of the agents to keep after team
        optimisation; empty: all. `temperature` and `max_tokens` are the publication's."""

        name: str = "dylan_original"
        agents: int = 4
        rounds: int = 3
        roles: list[str] = field(default_factory=lambda: ["solver"])
        team: list[int] = field(default_factory=list)
        temperature: float = 1.0
        max_attempts: int = 3
        max_tokens: int | None = 2048
        show_choices: bool = False

        def __post_init__(self) -> None:
            check_range(self, "agents", "rounds", "max_attempts", "max_tokens", least=1)
            check_range(self, "temperature", least=0)
            check_roles(self.roles)
            if len(set(self.team)) != len(self.team) or any(not 0 <= place < self.agents for place in self.team):
                raise ValueError(f"team must list different places from 0 to {self.agents - 1}")

    name = "dylan_original"
    version = "1-A"

    def __init__(self, config: Config, seed: int) -> None:
        self.config, self.seed = config, seed
        everyone = node_members(config.agents, config.roles)
        self.agents = tuple(everyone[place] for place in sorted(config.team)) if config.team else tuple(everyone)
        self.ranker = Member(RANKER, RANKER, acts=False)

    def team(self, task: Task) -> Sequence[Member]:
        return (*self.agents, self.ranker) if len(self.agents) > 3 else self.agents

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        config = self.config
        table = Table(
            session, memory, models, config.max_attempts, config.max_tokens, config.temperature, show_choices=config.show_choices
        )
        while not session.done:
            self._step(table)

    def _step(self, table: Table) -> None:
        """One forward pass, one environment step, one line of importance."""
        done = _Forward(self, table).run()
        last = done.rounds[-1]
        author = next(agent for agent in sorted(last) if last[agent].action == done.result)
        upstream = [self.agents[agent].name for agent in sorted(done.rounds[-2])] if len(done.rounds) > 1 else []
        table.session.act(self.agents[author].name, last[author].raw, upstream=upstream)
        layers = done.importance(len(self.agents))
        names = [member.name for member in self.agents]
        table.session.record(
            "agent_importance",
            {
                "task_id": table.session.task.task_id,
                "step": table.session.steps,
                "importance": dict(zip(names, (round(value, 9) for value in arithmetic.totals(layers)), strict=True)),
            },
        )


class _Forward:
    """A forward pass under way."""

    def __init__(self, host: DylanOriginal, table: Table) -> None:
        self.host, self.table, self.session = host, table, table.session
        self.size = len(host.agents)
        self.done = Pass()

    def run(self) -> Pass:
        active: Sequence[int] = range(self.size)
        for number in range(1, self.host.config.rounds + 1):
            if number >= 3 and len(active) > 3:
                active = self._best_two(number)
            agreed = self._round(number, active)
            if agreed is not None:
                self.done.result = agreed
                return self.done
        last = self.done.rounds[-1]
        self.done.result = arithmetic.most_frequent([last[agent].action for agent in sorted(last)])
        return self.done

    def _round(self, number: int, active: Sequence[int]) -> str | None:
        """Activate agents in random order until they agree; what they agree on."""
        upstream = self.done.rounds[-1] if self.done.rounds else {}
        replies: dict[int, Reply] = {}
        self.done.rounds.append(replies)
        order = list(active)
        self._rng("order", number).shuffle(order)
        for place, agent in enumerate(order):
            replies[agent] = self._reply(agent, upstream)
            if place >= 2 * len(order) // 3:
                agreed = arithmetic.early_consensus([reply.action for reply in replies.values()], len(order))
                if agreed is not None:
                    return agreed
        return None

    def _reply(self, agent: int, upstream: dict[int, Reply]) -> Reply:
        member, before = self.host.agents[agent], sorted(upstream)
        heard: list[str] = []

        def read(text: str) -> str:
            heard[:] = [text]
            return arithmetic.without_ratings(text) if before or self.session.action_mode == "line" else text

        note = ""
        if before:
            lines = [f"- reply {place}: {upstream[other].action}" for place, other in enumerate(before, 1)]
            note = "\n".join(["Replies of your teammates in the last round, to be rated:", *lines])
        instruction = f"{dict(ROLES)[member.role]} {HOW_TO_ANSWER}"
        raw = propose(self.table, "host.dylan_original.agent", instruction, member, note=note, read=read)
        ratings = arithmetic.parse_ratings(heard[0], len(before)) if heard else None
        weights = dict(zip(before, arithmetic.edge_weights(ratings, len(before)), strict=True))
        return Reply(raw, self.session.normalise(raw) or self.session.noop_action, weights)

    def _best_two(self, number: int) -> list[int]:
        """The two agents whose replies the ranker prefers; two at random where it names none."""
        replies = self.done.rounds[-1]
        shuffled = sorted(replies)
        self._rng("ranker", number).shuffle(shuffled)
        listing = "\n".join(f"{place}. {replies[agent].action}" for place, agent in enumerate(shuffled, 1))
        messages: tuple[Message, ...] = (
            {"role": "system", "content": RANKER_INSTRUCTION},
            {"role": "user", "content": f"{situation(self.session)}\n\nReplies:\n{listing}"},
        )
        ranker = self.host.ranker
        call = Call(
            "host.dylan_original.ranker",
            messages,
            "actor",
            "act",
            ranker.name,
            max_tokens=self.table.max_tokens,
            temperature=self.table.temperature,
        )
        best = arithmetic.parse_best_two(self.table.models.complete(call).text, len(shuffled))
        chosen = [shuffled[place] for place in best] if best else self._rng("fallback", number).sample(shuffled, 2)
        return sorted(chosen)

    def _rng(self, purpose: str, number: int) -> random.Random:
        task = self.session.task.task_id
        return rng(self.host.seed, "host", "dylan_original", purpose, task, self.session.steps, number)
