"""Procedures: reusable steps with their prerequisites, conditions of use and warnings (SEPM paper 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from methods.sepm.conditions import Condition, conditions_of, parse_conditions
from methods.sepm.graph import Edge, GraphError, check, normal

MAX_WARNINGS = 10


@dataclass(frozen=True)
class Step:
    """A step of Π: what to do, the conditions before and after it."""

    id: str
    instruction: str
    pre: tuple[Condition, ...] = ()
    post: tuple[Condition, ...] = ()
    requires_confirmation: bool = False
    safety_critical: bool = False


@dataclass(frozen=True)
class ConditionalWarning:
    """A conditional lesson of 𝒲: when `trigger` holds, mind `text`. `evidence` names records as "task:seq"."""

    text: str
    trigger: str = ""
    evidence: tuple[str, ...] = ()
    signature: str = ""


@dataclass(frozen=True)
class Procedure:
    """S = (M, Π, G, 𝒲) of one revision. The identifier and version are the store's and not part of the content."""

    title: str
    description: str = ""
    family: str = ""
    applicability: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    warnings: tuple[ConditionalWarning, ...] = ()
    variant_of: str | None = None
    safety_class: str = "normal"
    prose: bool = field(default=False)  # the textual control: prerequisites stand in the instructions, edges are empty

    def __post_init__(self) -> None:
        try:
            check([step.id for step in self.steps], self.edges)
        except GraphError as error:
            raise ValueError(f"not a procedure: {error}") from error

    def document(self) -> str:
        """The indexed text (SEPM-R13): everything but the exclusions."""
        parts = [self.title, self.description, self.family, *self.applicability, *self.tags, *self.conditions]
        parts += [f"{warning.text} {warning.trigger}" for warning in self.warnings]
        parts += [step.instruction for step in self.steps]
        return " ".join(part for part in parts if part)

    def structure(self) -> tuple[Any, ...]:
        """What makes two procedures the same in structure: steps, their conditions and the edges, whatever the ids."""
        number = {step.id: i for i, step in enumerate(self.steps)}
        steps = tuple(
            (
                normal(s.instruction),
                s.requires_confirmation,
                s.safety_critical,
                tuple(sorted(conditions_of(s.pre))),
                tuple(sorted(conditions_of(s.post))),
            )
            for s in self.steps
        )
        return steps, frozenset((number[u], number[w]) for u, w in self.edges)

    def digest(self) -> str:
        """The same for two procedures of a family with the same structure and conditions."""
        steps, edges = self.structure()
        content = [self.family, steps, sorted(edges), sorted(set(self.conditions))]
        return blake2b(json.dumps(content, ensure_ascii=True).encode(), digest_size=16).hexdigest()

    def plain(self) -> dict[str, Any]:
        """JSON-able; `from_plain` reads it back."""
        return {
            "title": self.title,
            "description": self.description,
            "family": self.family,
            "applicability": list(self.applicability),
            "tags": list(self.tags),
            "conditions": list(self.conditions),
            "exclusions": list(self.exclusions),
            "steps": [
                {
                    "id": s.id,
                    "instruction": s.instruction,
                    "pre": [c.plain() for c in s.pre],
                    "post": [c.plain() for c in s.post],
                    "requires_confirmation": s.requires_confirmation,
                    "safety_critical": s.safety_critical,
                }
                for s in self.steps
            ],
            "edges": [list(edge) for edge in self.edges],
            "warnings": [
                {"text": w.text, "trigger": w.trigger, "evidence": list(w.evidence), "signature": w.signature}
                for w in self.warnings
            ],
            "variant_of": self.variant_of,
            "safety_class": self.safety_class,
            "prose": self.prose,
        }

    def json(self) -> str:
        return json.dumps(self.plain(), sort_keys=True, ensure_ascii=False)

    def with_warnings(self, warnings: Sequence[ConditionalWarning]) -> Procedure:
        return replace(self, warnings=tuple(warnings))


def from_plain(values: Mapping[str, Any]) -> Procedure:
    """The inverse of `Procedure.plain`."""
    return Procedure(
        title=values["title"],
        description=values["description"],
        family=values["family"],
        applicability=tuple(values["applicability"]),
        tags=tuple(values["tags"]),
        conditions=tuple(values["conditions"]),
        exclusions=tuple(values["exclusions"]),
        steps=tuple(
            Step(
                s["id"],
                s["instruction"],
                parse_conditions(s["pre"]),
                parse_conditions(s["post"]),
                s["requires_confirmation"],
                s["safety_critical"],
            )
            for s in values["steps"]
        ),
        edges=tuple((u, w) for u, w in values["edges"]),
        warnings=tuple(
            ConditionalWarning(w["text"], w["trigger"], tuple(w["evidence"]), w["signature"]) for w in values["warnings"]
        ),
        variant_of=values["variant_of"],
        safety_class=values["safety_class"],
        prose=values["prose"],
    )


def render(procedure: Procedure, label: str, *, note: str = "") -> str:
    """How agents and the planner see a procedure: title, conditions, numbered steps with ids, order, confirmations, warnings.

    `label` identifies the revision ("c3 v2"); `note` is put after the title ("provisional").
    """
    lines = [f"Procedure: {procedure.title} [{label}]" + (f" ({note})" if note else "")]
    if procedure.description and normal(procedure.description) != normal(procedure.title):
        lines.append(f"About: {procedure.description}")
    for name, values in (
        ("Use when", procedure.applicability),
        ("Holds for", procedure.conditions),
        ("Not for", procedure.exclusions),
    ):
        if values:
            lines.append(f"{name}: {'; '.join(values)}")
    for number, step in enumerate(procedure.steps, 1):
        lines.append(f"{number}. {step.instruction}" + ("" if procedure.prose else f" [{step.id}]"))
    if procedure.edges:
        lines.append("Prerequisites: " + ", ".join(f"{u} -> {w}" for u, w in procedure.edges))
    for step in procedure.steps:
        if step.pre:
            lines.append(f"Before {step.id}: {'; '.join(c.text() for c in step.pre)}")
        if step.requires_confirmation:
            lines.append(f"Confirm {step.id} before doing it.")
    lines += [f"Warning: {w.text}" + (f" (when: {w.trigger})" if w.trigger else "") for w in procedure.warnings]
    return "\n".join(lines)


def render_all(entries: Sequence[tuple[Procedure, str, str]], budget: int) -> tuple[str, ...]:
    """(procedure, label, note) rendered best first, as many as fit into `budget` characters; the first is cut to fit."""
    found: list[str] = []
    used = 0
    for procedure, label, note in entries:
        text = render(procedure, label, note=note)
        if used + len(text) > budget:
            if not found:
                found.append(text[:budget])
            break
        found.append(text)
        used += len(text)
    return tuple(found)
