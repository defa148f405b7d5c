"""`method=gmemory`: G-Memory, a hierarchy of interaction graphs, a query graph and insights (METHODS.md 3.4).

Before a task: similar past tasks by the query graph, the best successes by a model's rating, and the insights that the tasks
around it speak for. After a task: its sparsified episode with key steps, and from time to time better insights. Nothing is
read during a task. The code and the prompts are ours; the known bugs of the public code are switches that are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Guidance, Member, MemoryServices, Outcome, Review, Task, Trajectory, Turn
from methods.base import MemoryMethod
from methods.gmemory import prompts
from methods.gmemory.graphs import InteractionGraph, QueryGraph, sparsified, without_numbers
from methods.gmemory.insights import Insights
from methods.gmemory.learning import Learner, Schedule
from methods.gmemory.operations import credit
from methods.ranges import check_range
from methods.rating import best_rated
from methods.text.embedders import check_embedder
from methods.text.lists import list_items
from methods.trajectories import Record, TrajectoryStore
from methods.vectors.store import Neighbour, Vector

NEAR_SUCCESSES, NEAR_FAILURES = 4, 2  # the tasks that speak for insights


class GMemory(MemoryMethod):
    """The whole of G-Memory."""

    @dataclass
    class Config:
        """Shown are `successful_topk` past successes out of twice as many rated ones, and `insights_topk` rules; failures are
        stored and never shown (`failed_topk` only widens the search). `threshold` is the least cosine of a shown success.
        `hop` and `edge_cos` belong to the query graph. Insights are learnt from the task number `start` on `every` so many tasks
        in `points` groups, and merged `merge_every` tasks; a list of more than `max_rules` counts as full. `projector` rewords
        the rules for each role. `backward` gives shown rules their credit.

        Where the public code has a bug, the default is the sound behaviour, and the other value is the published one: `fill`
        append | replace, `merge_cap` third | published, `agree_missing` ignore | last, `description_feedback` false | true.
        """

        name: str = "gmemory"
        embedder: str = "wordllama"
        successful_topk: int = 1
        failed_topk: int = 0
        insights_topk: int = 3
        threshold: float = 0.0
        hop: int = 1
        edge_cos: float = 0.85
        start: int = 5
        every: int = 5
        points: int = 5
        merge_every: int = 20
        max_rules: int = 10
        projector: bool = False
        backward: bool = True
        fill: str = "append"
        merge_cap: str = "third"
        agree_missing: str = "ignore"
        description_feedback: bool = False

        def __post_init__(self) -> None:
            check_embedder(self.embedder)
            for key, allowed in (
                ("fill", ("append", "replace")),
                ("merge_cap", ("third", "published")),
                ("agree_missing", ("ignore", "last")),
            ):
                if getattr(self, key) not in allowed:
                    raise ValueError(f"{key} is {getattr(self, key)!r}; use {' or '.join(allowed)}")
            check_range(self, "successful_topk", "failed_topk", "insights_topk", "hop", "points", least=0)
            check_range(self, "start", "every", "merge_every", "max_rules", least=1)
            check_range(self, "threshold", "edge_cos", least=-1, most=1)

    name = "gmemory"
    version = "1-A"

    def __init__(self, config: Config, services: MemoryServices) -> None:
        super().__init__(config, services)
        self.store = TrajectoryStore(services, config.embedder, "memory.gmemory.embed")
        self.interaction = InteractionGraph(services.db)
        self.queries = QueryGraph(services.db, self.store.vectors, config.edge_cos)
        self.insights = Insights(services.db)
        schedule = Schedule(
            config.start,
            config.every,
            config.points,
            config.merge_every,
            config.max_rules,
            config.merge_cap,
            config.agree_missing,
        )
        self.learner = Learner(services, self.store, self.insights, schedule)
        self._query: Vector | None = None  # of the task in play
        self._shown: tuple[int, ...] = ()  # rules shown in the task in play

    def open(self) -> None:
        for part in (self.store, self.interaction, self.queries, self.insights):
            part.open()

    # --- before a task --------------------------------------------------------------------------------------------------
    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        self.interaction.start()
        self._query, self._shown = None, ()  # the last task may have ended in an error, and so may this start
        self._query = query = self.store.embed(task.key)
        models, keep = self.services.models, self.config.successful_topk
        shown = best_rated(models, "memory.gmemory.rate", task, self._candidates(query), keep)
        return Guidance(cards=tuple(record.card() for record in shown), insights=self._rules(task, query, team))

    def _candidates(self, query: Vector) -> list[Record]:
        """Twice as many successes as are shown: from the query graph around the nearest tasks, filled up from the whole store."""
        config = self.config
        wanted = 2 * config.successful_topk
        seeds = self.store.neighbours(query, max((wanted + 2 * config.failed_topk) // 2, 1))
        ids = self.queries.expand([seed.id for seed in seeds], config.hop)
        similarity = dict(zip(ids, self.store.vectors.similarities(query, ids).tolist(), strict=True))
        found = self.store.successes(ids)
        if len(found) < wanted:
            nearest = self.store.neighbours(query, wanted, success=True)
            similarity.update({neighbour.id: neighbour.similarity for neighbour in nearest})
            filling = [neighbour.id for neighbour in nearest]
            if config.fill == "replace":
                found = filling
            else:  # what the graph found stays
                found += [number for number in filling if number not in found][: wanted - len(found)]
        kept = [number for number in found if similarity[number] >= config.threshold]
        kept.sort(key=lambda number: (-similarity[number], number))
        return self.store.records(Neighbour(number, similarity[number]) for number in kept[:wanted])

    def _rules(self, task: Task, query: Vector, team: Sequence[Member]) -> dict[str, tuple[str, ...]]:
        """Rules by role ("*" for all), and note which were shown."""
        top = self.config.insights_topk
        near = self.store.neighbours(query, NEAR_SUCCESSES, success=True)
        near += self.store.neighbours(query, NEAR_FAILURES, success=False)
        keys = [*self.store.keys([neighbour.id for neighbour in near]), task.key]
        found = self.insights.ranked(keys, 2 * top)
        self._shown = tuple(insight.id for insight in found[:top])
        if not self.config.projector:
            return {"*": tuple(insight.rule for insight in found[:top])} if self._shown else {}
        if not found:
            return {}
        rules = [insight.rule for insight in found]
        roles = dict.fromkeys(member.role for member in team if member.acts)
        replies = self.services.models.complete_many([prompts.project(role, task.goal, rules) for role in roles])
        return {
            role: tuple((list_items(reply.text, len(rules)) or rules)[:top]) for role, reply in zip(roles, replies, strict=True)
        }

    # --- during a task: written, never read ------------------------------------------------------------------------------
    def review(self, agent: Member, step: int, text: str) -> Review:
        self.interaction.hear(agent.name, text)
        return Review(text)

    def after_action(self, turn: Turn) -> None:
        self.interaction.step(turn)

    # --- after a task ---------------------------------------------------------------------------------------------------
    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        before = {insight.id: f"{insight.rule} (score {insight.score})" for insight in self.insights.all()}
        number = self._store(task, trajectory, outcome)
        self.interaction.store(number)
        self.queries.connect(number, self.store.vectors.vector(number))
        self.learner.task_stored()
        if self.config.backward:
            self.insights.credit(self._shown, credit(outcome.success))
        self._query, self._shown = None, ()
        self._tell(before)

    def _tell(self, before: dict[int, str]) -> None:
        """Note what became of the insights."""
        now = {insight.id: f"{insight.rule} (score {insight.score})" for insight in self.insights.all()}
        for number in sorted(before.keys() | now.keys()):
            old, new = before.get(number, ""), now.get(number, "")
            if old != new:
                change = "added" if not old else "removed" if not new else "changed"
                self.services.note("memory_change", {"item": f"insight {number}", "change": change, "before": old, "after": new})

    def _store(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> int:
        """Write the record: a success without the steps that led nowhere, a failure whole and with the reason of it."""
        feedback = outcome.feedback if self.config.description_feedback else ""
        description = f"{task.goal}\n{feedback}".strip()
        text = (sparsified(trajectory) if outcome.success else trajectory).text()
        clean = without_numbers(text)
        models = self.services.models
        steps = models.complete(prompts.key_steps(description, clean)).text.strip()
        reason = None if outcome.success else models.complete(prompts.mistake(description, clean)).text.strip()
        return self.store.add_record(
            key=task.key,
            description=description,
            trajectory=text,
            success=outcome.success,
            key_steps=steps or None,
            fail_reason=reason or None,
            vector=self._query,
        )
