"""`method=generative_full`: the memory stream of Generative Agents as the paper describes it (METHODS.md 3.2, the variant).

Every environment step and every task becomes a record with an importance; before a task the records that score best by recency,
importance and relevance are shown; when enough of importance has gathered, the stream is reflected upon. The public code differs
from the paper (it inverts recency, among others) and is not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Guidance, Member, MemoryServices, Outcome, Task, Trajectory
from methods.base import MemoryMethod
from methods.generative_full import prompts
from methods.generative_full.scoring import Weights, parse_importances, parse_insight
from methods.generative_full.stream import Found, MemoryStream, NewRecord
from methods.ranges import check_range
from methods.text.embedders import check_embedder
from methods.text.lists import list_items, one_line

RATED_AT_ONCE = 40  # records a call
QUESTIONS, INSIGHTS = 3, 5


class GenerativeFull(MemoryMethod):
    """The memory stream."""

    @dataclass
    class Config:
        """Before a task the best `candidates` records are rendered until `context_budget` characters; the weights are those of
        the score. A reflection is due at a summed importance of `reflect_at` since the last; it reads the `latest` records.
        `show_failed` shows the records of failed tasks to the agents too (reflections always build on them)."""

        name: str = "generative_full"
        embedder: str = "wordllama"
        candidates: int = 30
        context_budget: int = 3000
        recency: float = 1.0
        importance: float = 1.0
        relevance: float = 1.0
        reflect_at: int = 150
        latest: int = 100
        show_failed: bool = False

        def __post_init__(self) -> None:
            check_embedder(self.embedder)
            check_range(self, "candidates", "context_budget", "reflect_at", "latest", least=1)
            check_range(self, "recency", "importance", "relevance", least=0)

    name = "generative_full"
    version = "1-A"

    def __init__(self, config: Config, services: MemoryServices) -> None:
        super().__init__(config, services)
        weights = Weights(config.recency, config.importance, config.relevance)
        self.stream = MemoryStream(services, config.embedder, weights)

    def open(self) -> None:
        self.stream.open()
        self.services.db.execute("CREATE TABLE IF NOT EXISTS memory_clock (tasks INTEGER NOT NULL)")
        if not self.services.db.execute("SELECT 1 FROM memory_clock").fetchone():
            self.services.db.execute("INSERT INTO memory_clock VALUES (0)")

    def on_task_start(self, task: Task, facts: frozenset[str], team: Sequence[Member]) -> Guidance:
        now = self._now()
        (found,) = self.stream.retrieve([task.key], now, self.config.candidates, phase="retrieve", hidden=False)
        return Guidance(brief=self._rendered(found))

    def on_task_end(self, task: Task, trajectory: Trajectory, outcome: Outcome) -> None:
        now, shown = self._now(), outcome.success or self.config.show_failed
        self.services.db.execute("UPDATE memory_clock SET tasks = tasks + 1")  # first: a task counts, whatever the models answer
        texts = [f"In '{task.goal}': {turn.action} -> {one_line(turn.result.observation)}" for turn in trajectory.turns]
        result = "was solved" if outcome.success else "was not solved"
        texts.append(one_line(f"The task '{task.goal}' {result} in {len(trajectory.turns)} steps. {outcome.feedback}"))
        ratings = self._rated(texts)
        kinds = ["observation"] * len(trajectory.turns) + ["summary"]
        self.stream.add(
            [
                NewRecord(kind, text, rating, shown)  # type: ignore[arg-type]
                for kind, text, rating in zip(kinds, texts, ratings, strict=True)
            ],
            now,
        )
        if self.stream.unreflected() >= self.config.reflect_at:
            self._reflect(now)

    # --- parts ----------------------------------------------------------------------------------------------------------
    def _now(self) -> int:
        """The number of the task in play, from 1 on: the logical hour."""
        return int(self.services.db.execute("SELECT tasks FROM memory_clock").fetchone()[0]) + 1

    def _rendered(self, found: Sequence[Found]) -> str:
        """The records as a list, best first, as many as the budget holds."""
        lines = ["What the team remembers:"]
        used = len(lines[0])
        for record in found:
            if used + len(record.text) + 3 > self.config.context_budget:
                break
            lines.append(f"- {record.text}")
            used += len(record.text) + 3
        return "\n".join(lines) if len(lines) > 1 else ""

    def _rated(self, texts: Sequence[str]) -> list[int]:
        """The importance of each text, by a call for each batch."""
        batches = [texts[start : start + RATED_AT_ONCE] for start in range(0, len(texts), RATED_AT_ONCE)]
        replies = self.services.models.complete_many([prompts.importance(batch) for batch in batches])
        return [
            rating for batch, reply in zip(batches, replies, strict=True) for rating in parse_importances(reply.text, len(batch))
        ]

    def _reflect(self, now: int) -> None:
        """Questions from the latest records, insights from what is found for each, stored with the records they cite."""
        models = self.services.models
        answer = models.complete(prompts.questions(self.stream.latest(self.config.latest))).text
        asked = list_items(answer, QUESTIONS)
        insights: dict[str, tuple[int, ...]] = {}
        if asked:
            found = self.stream.retrieve(asked, now, self.config.candidates, phase="write", hidden=True)
            calls = [prompts.reflect(q, [record.text for record in records]) for q, records in zip(asked, found, strict=True)]
            for reply, records in zip(models.complete_many(calls), found, strict=True):
                shown = [record.id for record in records]
                for item in list_items(reply.text, INSIGHTS):
                    text, evidence = parse_insight(item, shown)
                    insights.setdefault(text, tuple(evidence))
        ratings = self._rated(list(insights)) if insights else []
        reflections = [
            NewRecord("reflection", text, rating, True, evidence)
            for (text, evidence), rating in zip(insights.items(), ratings, strict=True)
        ]
        self.stream.add(reflections, now)
        self.stream.reflected(now)
