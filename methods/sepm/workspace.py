"""The shared state of one task, W = (g*, 𝒢, B, Σ), and what SEPM keeps beside it while the task runs (SEPM paper 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.contracts import TIER_ARTIFACT, TIER_ENVIRONMENT, Evidence, Member, Task
from methods.sepm.alignment import Outbox
from methods.sepm.blackboard import Blackboard
from methods.sepm.conditions import Key, binding, entity_matches
from methods.sepm.config import SepmConfig
from methods.sepm.evidence import VerifiedState
from methods.sepm.goal_judge import GoalJudge
from methods.sepm.header import Header
from methods.sepm.plans import Counters
from methods.sepm.procedure import Procedure
from methods.sepm.store import Candidate

FACTS_SOURCE = "reset"
MAX_VALUE = 200  # characters of a value that are kept


@dataclass
class Observed:
    """What an agent last said of itself, and what it was assigned when it last spoke. None: never observed (SEPM-R20)."""

    node: str | None = None
    goal: str | None = None
    plan: tuple[Mapping[str, str], frozenset[tuple[str, str]]] | None = None
    assigned: str = ""
    declared_now: bool = False  # the latest reply had a header
    claims: tuple[Evidence, ...] = ()

    def hear(self, header: Header | None, assigned: str) -> None:
        """Take a reply in: values that it does not give persist, except that a step is only declared for the reply itself."""
        self.assigned = assigned
        self.declared_now = header is not None
        self.node = header.node if header is not None else None
        if header is not None:
            self.goal = header.goal or self.goal
            self.plan = header.plan or self.plan


@dataclass
class Workspace:
    """One task. `references` are the retrieved revisions by id (SEPM-R14), `used` those that the plan follows."""

    task: Task
    task_no: int
    facts: frozenset[str]
    team: tuple[Member, ...]
    config: SepmConfig
    judge: GoalJudge
    state: VerifiedState
    references: dict[str, tuple[int, Procedure]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    provisional: Candidate | None = None
    blackboard: Blackboard = field(default_factory=Blackboard)
    outbox: Outbox = field(default_factory=Outbox)
    counters: Counters = field(default_factory=Counters)
    observed: dict[str, Observed] = field(default_factory=dict)
    observation: str = ""
    gated_at: set[int] = field(default_factory=set)
    replans: int = 0
    brief: str = ""  # the plan as the agents were first told it
    negotiated: set[Key] = field(default_factory=set)
    asked_for: dict[Key, int] = field(default_factory=dict)  # conflicting keys → steps since an observation was asked for

    def __post_init__(self) -> None:
        self.names = binding(self.facts)
        self.state.add(
            [
                Evidence((fact, "holds"), True, TIER_ENVIRONMENT, FACTS_SOURCE, (0, number))
                for number, fact in enumerate(sorted(self.facts))
            ]
        )

    @property
    def objective(self) -> str:
        return self.task.goal or self.task.key

    def seen(self, agent: str) -> Observed:
        return self.observed.setdefault(agent, Observed())

    @property
    def roster(self) -> tuple[Member, ...]:
        """Whom the manager can give a step to."""
        return tuple(member for member in self.team if member.acts)

    @property
    def everyone(self) -> tuple[str, ...]:
        """Whom a change of the plan concerns: the roster and whoever shares its assignments."""
        return tuple(dict.fromkeys(name for member in self.roster for name in self.peers(member.name)))

    def peers(self, agent: str) -> tuple[str, ...]:
        """`agent` and whoever shares its assignment: the members of its group, as in a grid (METHODS.md 4.2)."""
        group = next((member.group for member in self.team if member.name == agent), None)
        if group is None:
            return (agent,)
        return (agent, *(member.name for member in self.team if member.group == group and member.name != agent))

    def instance(self, entity: str) -> str:
        """What an agent calls `entity`: the observed thing of that name, or the only one of that kind ("mug": "mug 1")."""
        known = {key[0] for key, items in self.state.items.items() if any(e.tier >= TIER_ARTIFACT for e in items)}
        fitting = sorted(name for name in known if entity_matches(entity, name))
        return fitting[0] if len(fitting) == 1 else entity

    def qualifies(self, evidence: Evidence) -> bool:
        """Evidence that can support a step: external, and at or above the threshold."""
        return evidence.tier >= TIER_ARTIFACT and evidence.confidence >= self.config.conf

    def last_lines(self, number: int, node_ids: Sequence[str] | None = None) -> list[str]:
        """The last records (on these steps), one line each."""
        kept = [r for r in self.blackboard if node_ids is None or any(r.on(i) for i in node_ids)]
        return [
            f"{r.agent}{f' ({r.node_id})' if r.node_id else ''}: {r.action} -> {(r.error or r.result)[:100]}"
            for r in kept[-number:]
        ]
