"""The safety rules that a candidate must pass (METHODS.md 4.7). Words are matched as words: "pay" is not in "display"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from methods.sepm.graph import normal
from methods.sepm.procedure import Procedure, Step

SENSITIVE = (
    "payment", "pay", "delete", "remove", "drop table", "migration", "credential", "credentials", "permission", "permissions",
    "allergy", "medical", "transfer", "authorize",
)  # fmt: skip
IRREVERSIBLE = ("pay", "payment", "delete", "drop", "transfer")
PROTECTED_CLASSES = ("sensitive", "critical")
PER_SENSITIVE, PER_VIOLATION, DELETE_RISK = 0.15, 0.55, 0.25


@dataclass(frozen=True)
class SafetyReport:
    """`risk` in [0, 1]; `violations` say in words what is forbidden."""

    risk: float
    violations: tuple[str, ...]

    def allowed(self, threshold: float = 0.50) -> bool:
        """No violation, and a risk strictly below the threshold (SEPM-R28)."""
        return not self.violations and self.risk < threshold


def has_word(text: str, words: Iterable[str]) -> bool:
    return any(re.search(rf"\b{re.escape(word)}\b", text.lower()) for word in words)


def assess(candidate: Procedure, base: Procedure | None = None, *, specialises: bool = False) -> SafetyReport:
    """Rules on the steps, and on what an update of `base` must keep. A specialisation is a new entry beside its base."""
    sensitive = [s for s in candidate.steps if _sensitive(s)]
    violations = [
        f"step {s.id} cannot be undone and asks for no confirmation"
        for s in candidate.steps
        if has_word(s.instruction, IRREVERSIBLE) and not s.requires_confirmation
    ]
    if any(has_word(s.instruction, ("migration",)) for s in candidate.steps) and not any(
        has_word(s.instruction, ("backup", "snapshot")) for s in candidate.steps
    ):
        violations.append("a migration needs a step that makes a backup or snapshot")
    if base is not None:
        violations += _lost(candidate, base)
        if not specialises and set(candidate.conditions) != set(base.conditions):
            violations.append("the context conditions of a procedure change only in a variant")
    return SafetyReport(min(1.0, PER_SENSITIVE * len(sensitive) + PER_VIOLATION * len(violations)), tuple(violations))


def assess_delete(target: Procedure) -> SafetyReport:
    """Whether a procedure may be retired."""
    if target.safety_class in PROTECTED_CLASSES or any(s.safety_critical or s.requires_confirmation for s in target.steps):
        return SafetyReport(1.0, ("a procedure with safety-critical steps is not retired",))
    return SafetyReport(DELETE_RISK, ())


def _sensitive(step: Step) -> bool:
    return step.safety_critical or step.requires_confirmation or has_word(step.instruction, SENSITIVE)


def _lost(candidate: Procedure, base: Procedure) -> list[str]:
    """What of the protected steps of `base` the candidate does not keep (SEPM-R33)."""
    found = []
    for step in base.steps:
        if not (step.safety_critical or step.requires_confirmation):
            continue
        kept = next((s for s in candidate.steps if s.id == step.id or normal(s.instruction) == normal(step.instruction)), None)
        if kept is None or normal(kept.instruction) != normal(step.instruction):
            found.append(f"the protected step {step.id} is missing or changed")
        elif (step.safety_critical and not kept.safety_critical) or (
            step.requires_confirmation and not kept.requires_confirmation
        ):
            found.append(f"step {step.id} lost its protection")
        elif not set(step.pre) <= set(kept.pre):
            found.append(f"step {step.id} lost a precondition")
    return found
