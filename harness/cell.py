"""A cell: one combination of host, memory method, environment, models and seed, built from a validated configuration.

Building spends nothing: it makes the objects, asks each what is missing, fixes the order of the tasks, and derives the
identity under which the run is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import harness
from harness.config import StreamConfig, identity_part, resolve
from harness.contracts import Environment, Host, Memory, MemoryServices, Models, Note, Problem, Rehearse, Task, unnoted
from harness.errors import ConfigError, SetupError
from harness.seeds import rng
from harness.store.identity import digest
from harness.store.manifest import SCHEMA_VERSION, session

# Raised when the player changes so that scores or ledgers stop being comparable with earlier ones.
PROTOCOL = 1


def comparable(version: str) -> int:
    """N of a version "N-X": it changes when scores stop being comparable, X when they do not."""
    head = version.partition("-")[0]
    if not head.isdigit():
        raise ConfigError(f"{version!r} is not a version of the form N-X.")
    return int(head)


@dataclass(frozen=True)
class Cell:
    """Everything a stream needs, made once. `memory` makes a fresh memory object (see `harness.contracts.Memory`)."""

    config: StreamConfig
    host: Host
    environment: Environment
    memory_class: type[Any]

    @classmethod
    def build(
        cls,
        values: Mapping[str, Any],
        choices: Mapping[str, str],
        bases: Mapping[str, Mapping[str, Any]] | None = None,
        experiment: str | None = None,
    ) -> Cell:
        """Raises ConfigError for anything wrong in `values` (composed, plain data)."""
        config, host_class, memory_class, env_class = resolve(values, choices, bases, experiment)
        host: Host = host_class(config.host, config.run.seed)
        environment: Environment = env_class(config.env)
        return cls(config, host, environment, memory_class)

    def memory(self, db: Any, models: Models, rehearse: Rehearse | None = None, note: Note = unnoted) -> Memory:
        services = MemoryServices(db, models, self.config.run.seed, self.environment.max_steps, rehearse, note)
        made: Memory = self.memory_class(self.config.method, services)
        return made

    def require(self, problems: Sequence[Problem]) -> None:
        """Raise SetupError naming everything that is missing, each with what mends it (what has one remedy, together)."""
        remedies: dict[str, list[str]] = {}
        for problem in problems:
            remedies.setdefault(problem.fix.rstrip("."), []).append(problem.what.rstrip("."))
        if remedies:
            raise SetupError(" ".join(f"{'; '.join(what)} (mend it with: {fix})." for fix, what in remedies.items()))

    @cached_property
    def order(self) -> tuple[Task, ...]:
        """All tasks of the environment in the order of this stream."""
        found = list(self.environment.tasks())
        if not found:
            raise SetupError(f"The environment {self.environment.name} has no tasks.", "See `memarena doctor`.")
        if self.config.run.order != "official":
            rng(int(self.config.run.order.partition(":")[2]), "run", "order").shuffle(found)
        return tuple(found)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that are asked for: the beginning of the order."""
        count = self.config.run.tasks
        if count is not None and count > len(self.order):
            raise ConfigError(f"run.tasks is {count}, but {self.environment.name} has {len(self.order)} tasks here.")
        return self.order[:count]

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the identity is made of, as plain data (ARCHITECTURE.md rule 2)."""
        ids = hashlib.sha256("\n".join(task.task_id for task in self.order).encode()).hexdigest()
        config = self.config
        return {
            "host": identity_part(config.host),
            "method": identity_part(config.method),
            "env": identity_part(config.env),
            "models": identity_part(config.models),
            "run": identity_part(config.run),
            "task_ids_sha256": ids,
            "data_digest": self.environment.data_digest,
            "code": {
                "protocol": PROTOCOL,
                "host": comparable(type(self.host).version),
                "method": comparable(self.memory_class.version),
                "env": comparable(self.environment.version),
            },
        }

    @property
    def identity(self) -> str:
        """sha256 of the description."""
        return digest(self.description)

    def manifest(self, models: Mapping[str, Any], previous: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The manifest of this run; `models` is the gateway's description, `previous` the manifest of an earlier process."""
        config, this = self.config, session()
        official = getattr(type(self.environment).Config(), "max_steps", self.environment.max_steps)
        return {
            "schema_version": SCHEMA_VERSION,
            "memarena": harness.__version__,
            "name": config.run.name or config.default_name(),
            "identity": self.identity,
            "cell": self.description,
            "labels": {
                **{group: config.choices[group] for group in ("host", "method", "env", "models")},
                "models_label": config.models.label,
                "variant": config.variant,
                "experiment": config.experiment,
            },
            "versions": {
                "host": type(self.host).version,
                "method": self.memory_class.version,
                "env": self.environment.version,
            },
            "seed": config.run.seed,
            "tasks": {
                "n": max(len(self.tasks), previous["tasks"]["n"] if previous else 0),
                "total": len(self.order),
                "order": config.run.order,
                "ids_sha256": self.description["task_ids_sha256"],
            },
            "environment": {
                "version": self.environment.version,
                "max_steps": self.environment.max_steps,
                "official_max_steps": official,
                "data_digest": self.environment.data_digest,
                "provenance": dict(self.environment.provenance),
            },
            "models": dict(models),
            "packages": this["packages"],
            "python": this["python"],
            "platform": this["platform"],
            "git": this["git"],
            "created": previous["created"] if previous else this["started"],
            "sessions": [*(previous or {}).get("sessions", []), this],
            "run_options": {
                "replay": config.run.replay.mode,
                "infra_retries": config.run.infra_retries,
                "max_infra_failures": config.run.max_infra_failures,
                "stream_limits": identity_part(config.run.limits.stream),
            },
        }
