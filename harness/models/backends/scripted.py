"""Test doubles: deterministic policies in the place of a model, for tests, benchmarks of the harness, and demonstrations.

No number that they produce measures a model; every description and table of such a run says `scripted`. Their token counts
are estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from harness.contracts import Problem, TaskInfo, Usage
from harness.errors import ConfigError
from harness.models.backends.base import Answer, Request
from harness.models.backends.reader import ReaderPolicy
from harness.models.backends.scripted_roles import with_ratings
from harness.models.backends.scripted_sepm import with_header
from harness.models.backends.scripted_text import utility_answer
from harness.models.backends.scripted_vectors import hashed_vectors
from harness.models.config import EndpointConfig
from harness.models.tokens import estimate_messages, estimate_text
from harness.models.vectors import encode_vectors
from harness.registry import did_you_mean
from harness.seeds import rng

OPTIONS = ("policy", "replies", "cycle", "luck", "hasty", "noop", "dissent")
HARMLESS = ("look", "inventory", "help", "examine", "wait", "noop")
NOT_ACTING = ("memory.", "mem.", "sepm.", "env.", "opt.")


class Policy(Protocol):
    """Answers the acting calls of one task after another."""

    def start_task(self, info: TaskInfo) -> None: ...

    def act(self, request: Request) -> str: ...


class _Base:
    """What policies share: the options, the seed, and the task in play."""

    def __init__(self, options: dict[str, Any], seed: int) -> None:
        self.options, self.seed = options, seed
        self.info: TaskInfo | None = None

    def start_task(self, info: TaskInfo) -> None:
        self.info = info

    def choices(self, request: Request) -> Sequence[str]:
        """The admissible actions: those of the call, else those of the environment."""
        if request.call.choices is not None:
            return request.call.choices
        return (self.info.choices() if self.info is not None else None) or ()

    def harmless(self, request: Request) -> str:
        """The text that changes nothing: the option `noop`, else the first admissible action that looks harmless."""
        if "noop" in self.options:
            return str(self.options["noop"])
        choices = self.choices(request)
        return next((c for word in HARMLESS for c in choices if c.lower().split(" ")[0] == word), HARMLESS[0])


class OraclePolicy(_Base):
    """The environment's own solution, action by action; harmless actions after its end."""

    def __init__(self, options: dict[str, Any], seed: int) -> None:
        super().__init__(options, seed)
        self._actions: Sequence[str] | None = None
        self._guided = False

    def start_task(self, info: TaskInfo) -> None:
        super().start_task(info)
        self._actions, self._guided = None, False

    def act(self, request: Request) -> str:
        if self.info is not None and (action := self.info.guide()) is not None:
            self._guided = True
            return action
        if self._guided:
            return self.harmless(request)
        if self._actions is None:
            assert self.info is not None  # the gateway starts a task before its first call
            self._actions = self.info.oracle()
            if self._actions is None:
                raise ConfigError(
                    f"The oracle policy has no solution for task {self.info.task.task_id}.", "Choose another policy or model set."
                )
        return self._actions[request.step] if request.step < len(self._actions) else self.harmless(request)


class NoopPolicy(_Base):
    """Never changes anything."""

    def act(self, request: Request) -> str:
        return self.harmless(request)


class RandomPolicy(_Base):
    """A random admissible action, drawn from the seed by task and step."""

    def act(self, request: Request) -> str:
        choices = self.choices(request)
        task_id = self.info.task.task_id if self.info is not None else ""
        if not choices:
            return self.harmless(request)
        return rng(self.seed, "scripted", "random", task_id, request.step).choice(choices)


class RepliesPolicy(_Base):
    """The texts of option `replies` in order, for every call of any role, from the first one again in every task.

    After the last one they start again, or (option `cycle: false`) only empty text comes.
    """

    def __init__(self, options: dict[str, Any], seed: int) -> None:
        super().__init__(options, seed)
        self._replies = [str(r) for r in options.get("replies", [])]
        self._cycle = bool(options.get("cycle", True))
        self._next = 0

    def start_task(self, info: TaskInfo) -> None:
        super().start_task(info)
        self._next = 0

    def act(self, request: Request) -> str:
        at, self._next = self._next, self._next + 1
        if at >= len(self._replies) and not self._cycle:
            return ""
        return self._replies[at % len(self._replies)] if self._replies else ""


POLICIES: tuple[tuple[str, Callable[[dict[str, Any], int], Policy]], ...] = (
    ("oracle", OraclePolicy),
    ("noop", NoopPolicy),
    ("random", RandomPolicy),
    ("replies", RepliesPolicy),
    ("reader", ReaderPolicy),
)


class ScriptedBackend:
    """Answers by the policy that option `policy` names (oracle, noop, random, replies, reader)."""

    scripted, constrains, concurrent = True, False, False

    def __init__(self, name: str, config: EndpointConfig, seed: int) -> None:
        unknown = set(config.options) - set(OPTIONS)
        if unknown:
            raise ConfigError(
                f"models.endpoints.{name}.options has {', '.join(sorted(unknown))}.", did_you_mean(min(unknown), list(OPTIONS))
            )
        self.policy_name = str(config.options.get("policy", "oracle"))
        policies = dict(POLICIES)
        if self.policy_name not in policies:
            raise ConfigError(
                f"models.endpoints.{name}.options.policy is '{self.policy_name}'.", f"Known: {', '.join(policies)}."
            )
        self._policy = policies[self.policy_name](dict(config.options), seed)
        self._model = config.model
        self._dissent, self._seed = float(config.options.get("dissent", 0.0)), seed

    def check(self) -> list[Problem]:
        return []

    def describe(self) -> dict[str, Any]:
        return {"policy": self.policy_name, "note": "scripted: a test double, no model"}

    def start_task(self, info: TaskInfo) -> None:
        self._policy.start_task(info)

    def complete(self, request: Request) -> Answer:
        call = request.call
        if self.policy_name == "replies" or _acts(call.role, call.phase):
            text = with_ratings(call, self._dissenting(request) or self._policy.act(request), request.digest)
            text = text if self.policy_name == "replies" else with_header(call, text)
        else:
            text = utility_answer(call, request.digest)
        usage = Usage(estimate_messages(call.messages), estimate_text(text), source="estimate")
        return Answer(text, usage, self._model, "stop")

    def embed(self, request: Request) -> Answer:
        messages = request.call.messages
        text = encode_vectors(hashed_vectors([message["content"] for message in messages]))
        return Answer(text, Usage(estimate_messages(messages), 0, source="estimate"), self._model, "stop")

    def close(self) -> None:
        return None

    def _dissenting(self, request: Request) -> str:
        """A harmless action in the place of the policy's for the share `dissent` of the calls, by their digest and agent, so that
        the agents of a scripted team can disagree; else empty."""
        agent = request.call.agent or ""
        if not self._dissent or rng(self._seed, "scripted", "dissent", request.digest, agent).random() >= self._dissent:
            return ""
        return _Base({}, self._seed).harmless(request)


def _acts(role: str, phase: str) -> bool:
    """Whether the answer to this role becomes an environment action."""
    return phase in ("act", "validate") and not role.startswith(NOT_ACTING) and not role.endswith("ranker")
