"""`host=autogen_selector`: a model chooses who speaks next, on Microsoft's own AutoGen (METHODS.md 2.2).

Planner, solver, critic and environment are the participants of one `SelectorGroupChat` without a selector function: the
library asks the model who is next, at most three times a turn, and falls back to the previous speaker. The planner writes what
to do next, the solver proposes an action, the critic comments on the standing proposal, the environment executes it. The
speaking turns of a task are bounded, because nothing else makes the model ever choose the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.contracts import Call, Member, Message, Models, Phase, Task, TaskSession, TeamMemory
from methods.hosts.actor import Table, propose
from methods.hosts.autogen_chat import ENVIRONMENT, InterruptGate, converse, episode_over, participant
from methods.hosts.prompt import TASK
from methods.ranges import check_range

if TYPE_CHECKING:
    from autogen_agentchat.teams import SelectorGroupChat

PLANNER, SOLVER, CRITIC = "planner", "solver", "critic"
PHASES: dict[str, Phase] = {PLANNER: "plan", CRITIC: "act"}

SELECTOR_PROMPT = (
    "You lead a small team that works on a task in an environment. Its members are:\n{roles}\n\n"
    "The conversation so far:\n{history}\n\n"
    "Choose who speaks next, one of {participants}. The environment executes the solver's standing proposal: choose it as soon "
    "as there is a sound one. Answer with one name and nothing else."
)
SOLVER_INSTRUCTION = (
    "You are the solver of a small team. You work on a task in an environment, one action at a time. Heed the planner and the "
    "critic where they are right. Answer with the next action and nothing else."
)
PLANNER_INSTRUCTION = (
    "You are the planner of a small team that works on a task in an environment. Say in at most three short sentences what the "
    "team should do next. You do not act yourself."
)
CRITIC_INSTRUCTION = (
    "You are the critic of a small team that works on a task in an environment. Say in one or two short sentences whether the "
    "solver's proposal for the next action is sound, and what is wrong with it if not. You do not act yourself."
)
DESCRIPTIONS = (
    (PLANNER, "says what to do next; worth asking at the start and when the team is stuck"),
    (SOLVER, "proposes the next action"),
    (CRITIC, "checks the standing proposal"),
    (ENVIRONMENT, "executes the standing proposal and tells what is seen"),
)


@dataclass
class Episode:
    """One task as the participants share it. `turns` counts all speaking turns; at `most_turns` the host gives up."""

    table: Table
    most_turns: int
    turns: int = 0
    plan: str = ""
    proposal: str | None = None  # its raw text
    criticism: str = ""
    heard: list[str] = field(default_factory=list)  # who spoke since the last environment step: the action's upstream
    error: BaseException | None = None
    gate: InterruptGate = field(default_factory=InterruptGate)

    @property
    def over(self) -> bool:
        return self.error is not None or self.table.session.done or self.turns >= self.most_turns

    def plan_ahead(self, member: Member) -> str:
        self.turns += 1
        self.plan = self._say(member, PLANNER_INSTRUCTION, self._situation())
        self.heard.append(PLANNER)
        return self.plan

    def solve(self, member: Member) -> str:
        self.turns += 1
        notes = [f"The planner says: {self.plan}" if self.plan else ""]
        if self.proposal is not None and self.criticism:
            notes.append(f"The critic says of your proposal '{self.proposal.strip()}': {self.criticism}")
        note = "\n".join(part for part in notes if part)
        self.proposal = propose(self.table, "host.autogen_selector.solver", SOLVER_INSTRUCTION, member, note=note)
        self.criticism = ""
        return self.proposal

    def criticise(self, member: Member) -> str:
        self.turns += 1
        if self.proposal is None:
            return "There is no proposal yet."
        self.criticism = self._say(member, CRITIC_INSTRUCTION, f"{self._situation()}\n\nProposal: {self.proposal.strip()}")
        self.heard.append(CRITIC)
        return self.criticism

    def execute(self) -> str:
        self.turns += 1
        if self.proposal is None:
            return "There is no proposal to execute yet."
        turn = self.table.session.act(SOLVER, self.proposal, upstream=tuple(dict.fromkeys(self.heard)))
        self.proposal, self.criticism = None, ""
        self.heard.clear()
        return f"{turn.action}\n{turn.result.observation}"

    def _situation(self) -> str:
        session = self.table.session
        return f"Task: {session.task.goal}\n\n{TASK}\n{session.trajectory().text()}"

    def _say(self, member: Member, instruction: str, text: str) -> str:
        """A non-acting member's contribution; an empty answer is one that adds nothing."""
        messages: tuple[Message, ...] = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
        role, phase = f"host.autogen_selector.{member.name}", PHASES[member.name]
        call = Call(role, messages, "actor", phase, member.name, max_tokens=self.table.max_tokens)
        return " ".join(self.table.models.complete(call).text.split())


class AutoGenSelector:
    """AutoGen's own group chat with a model as the selector. Never called `autogen` in a table."""

    @dataclass
    class Config:
        """`max_selector_attempts` bounds the selector's calls a turn; `turns_per_step` times the environment's maximal steps
        bounds the speaking turns of a task; `window` is how many messages of the conversation the selector sees."""

        name: str = "autogen_selector"
        max_selector_attempts: int = 3
        turns_per_step: int = 4
        window: int = 12
        max_attempts: int = 3
        max_tokens: int | None = None
        show_choices: bool = False

        def __post_init__(self) -> None:
            check_range(self, "max_selector_attempts", "max_attempts", "window", "max_tokens", least=1)
            check_range(self, "turns_per_step", least=2)  # a step takes a proposal and its execution

    name = "autogen_selector"
    version = "1-A"

    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self._planner = Member(PLANNER, PLANNER, acts=False)
        self._solver = Member(SOLVER, SOLVER)
        self._critic = Member(CRITIC, CRITIC, acts=False)

    def team(self, task: Task) -> Sequence[Member]:
        return (self._planner, self._solver, self._critic)

    def play(self, session: TaskSession, memory: TeamMemory, models: Models) -> None:
        config = self.config
        table = Table(session, memory, models, config.max_attempts, config.max_tokens, show_choices=config.show_choices)
        episode = Episode(table, config.turns_per_step * session.max_steps)
        # the selector reads the first observation as the task's: without it, it could not know what there is
        converse(episode, f"{session.task.goal}\n{session.observation}", lambda: self._team(episode))

    def _team(self, episode: Episode) -> SelectorGroupChat:
        """A fresh group chat around `episode`."""
        from autogen_agentchat.teams import SelectorGroupChat
        from autogen_core.model_context import BufferedChatCompletionContext

        from methods.hosts.autogen_client import gateway_client

        speak: dict[str, Callable[[], str]] = {
            PLANNER: lambda: episode.plan_ahead(self._planner),
            SOLVER: lambda: episode.solve(self._solver),
            CRITIC: lambda: episode.criticise(self._critic),
            ENVIRONMENT: episode.execute,
        }
        return SelectorGroupChat(
            [participant(episode, name, description, speak[name]) for name, description in DESCRIPTIONS],
            model_client=gateway_client(episode, episode.table.models, PLANNER),
            selector_prompt=SELECTOR_PROMPT,
            max_selector_attempts=self.config.max_selector_attempts,
            allow_repeated_speaker=False,
            termination_condition=episode_over(episode),
            model_context=BufferedChatCompletionContext(buffer_size=self.config.window),
        )
