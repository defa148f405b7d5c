"""`method=metagpt_pool`: MetaGPT with its publish/subscribe pool and standard operating procedure (METHODS.md 3.3, the variant).

A planner watches the user's task and negative verdicts and publishes a plan; the host's acting agents are the executors, who
watch plans, observations and verdicts; a verifier watches results. A round is a plan and its execution for `verify_every` steps;
there are at most `max_rounds`, and none begins once the pool's own calls have used `budget_tokens`. Across tasks, past successes
by similarity as in `metagpt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Call, Guidance, Member, MemoryServices, Message, Outcome, Phase, Task, Trajectory, Turn
from methods.metagpt_pool.pool import Pool, Role
from methods.ranges import check_range
from methods.successes import PastSuccesses, SuccessConfig
from methods.text.lists import one_line

PLANNER, VERIFIER = "planner", "verifier"
TASK, PLAN, OBSERVATION, RESULT, VERDICT = "UserTask", "Plan", "Observation", "Result", "Verdict"

PLANNER_INSTRUCTION = (
    "You are the planner of a team that follows a fixed procedure: you plan, the executors act in the environment, a verifier "
    "checks. "
    "Give a plan of at most five short numbered steps for the task. If there is a verdict on an earlier plan, mend what it says. "
    "Nothing but the plan."
)
VERIFIER_INSTRUCTION = (
    "You are the verifier of a team that follows a fixed procedure: a planner plans, the executors act in the environment, you "
    "check. "
    "Read the plan and what has been done since. If the plan is still right, answer with the word OK and nothing else; else "
    "answer "
    "with REPLAN: and what is wrong, in one sentence."
)


class MetaGPTPool(PastSuccesses):
    """The message pool within a task, the trajectory store across tasks."""

    @dataclass
    class Config(SuccessConfig):
        """`successful_topk` past successes are shown. `max_rounds` plans a task at most; the verifier reads the results every
        `verify_every` environment steps; `budget_tokens` bounds the pool's own calls in a task (null: no bound)."""

        name: str = "metagpt_pool"
        embedder: str = "wordllama"
        max_rounds: int = 3
        verify_every: int = 10
        budget_tokens: int | None = 20000

        def __post_init__(self) -> None:
            super().__post_init__()
            check_range(self, "budget_tokens", least=0)
            check_range(self, "max_rounds", "verify_every", least=1)

    name = "metagpt_pool"
    version = "1-A"

    def __init__(self, config: Config, services: MemoryServices) -> None:
        super().__init__(config, services)
        self._start()

    def _start(self) -> None:
        """An empty pool for a new task."""
        self.pool = Pool()
        self.planner = self.pool.enter(Role(PLANNER, frozenset({TASK, VERDICT})))
        self.verifier = self.pool.enter(Role(VERIFIER, frozenset({RESULT})))
        self._rounds = self._spent = 0
        self._done: list[str] = []  # since the last result

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        self._start()
        guidance = super().on_task_start(task, facts, team)
        for member in team:
            if member.acts:
                self._executor(member)
        self.pool.publish(task.goal, TASK, "user")
        self._plan()
        return guidance

    def before_action(self, agent: Member, step: int) -> str:
        executor = self._executor(agent)
        executor.observe()
        plan, verdict = executor.memory.latest(PLAN), executor.memory.latest(VERDICT)
        parts = [f"Plan of the team: {plan.content}"] if plan is not None else []
        if verdict is not None and (plan is None or verdict.id > plan.id):
            parts.append(f"The verifier says: {verdict.content}")
        return "\n".join(parts)

    def after_action(self, turn: Turn) -> None:
        seen = one_line(turn.result.observation)
        self.pool.publish(seen, OBSERVATION, turn.agent)
        self._done.append(f"> {turn.action}\n{seen}")
        if len(self._done) >= self.config.verify_every and not turn.result.done:
            self.pool.publish("\n".join(self._done), RESULT, turn.agent, [VERIFIER])
            self._done = []
            self._verify()

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        super().on_task_end(task, trajectory, outcome)
        self._start()

    # --- roles ----------------------------------------------------------------------------------------------------------
    def _executor(self, member: Member) -> Role:
        found = self.pool.roles.get(member.name)
        return found or self.pool.enter(Role(member.name, frozenset({PLAN, OBSERVATION, VERDICT})))

    @property
    def _may_go_on(self) -> bool:
        """Whether another round may begin: bounded by rounds and by what the pool has spent."""
        budget = self.config.budget_tokens
        return self._rounds < self.config.max_rounds and (budget is None or self._spent < budget)

    def _plan(self) -> None:
        """The planner reacts to its news with a plan."""
        if not self.planner.observe() or not self._may_go_on:
            return
        self._rounds += 1
        memory = self.planner.memory
        task, verdict, plan = memory.latest(TASK), memory.latest(VERDICT), self._last_plan()
        parts = [f"Task: {task.content}" if task else "", f"Earlier plan: {plan}" if verdict and plan else ""]
        parts.append(f"Verdict: {verdict.content}" if verdict else "")
        text = self._say("plan", PLANNER, PLANNER_INSTRUCTION, "\n\n".join(part for part in parts if part), "plan")
        if text:
            self.pool.publish(text, PLAN, PLANNER)

    def _verify(self) -> None:
        """The verifier reacts to a result with a verdict; a negative one goes to the planner too."""
        if not self.verifier.observe() or not self._may_go_on:
            return
        result = self.verifier.memory.latest(RESULT)
        assert result is not None  # it watches nothing else
        text = f"Plan: {self._last_plan() or 'none'}\n\nDone since:\n{result.content}"
        verdict = self._say("verify", VERIFIER, VERIFIER_INSTRUCTION, text, "align")
        if not verdict or verdict.upper().startswith("OK"):
            return
        self.pool.publish(verdict, VERDICT, VERIFIER)
        self._plan()

    def _last_plan(self) -> str:
        plans = [message.content for message in self.pool.history if message.cause_by == PLAN]
        return plans[-1] if plans else ""

    def _say(self, purpose: str, agent: str, instruction: str, text: str, phase: Phase) -> str:
        messages: tuple[Message, ...] = ({"role": "system", "content": instruction}, {"role": "user", "content": text})
        reply = self.services.models.complete(Call(f"memory.metagpt_pool.{purpose}", messages, "memory", phase, agent))
        self._spent += reply.usage.input + reply.usage.output
        return one_line(reply.text)
