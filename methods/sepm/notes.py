"""What SEPM tells of a task in play besides its tables: the plan as it changes, and what diverged (see `MemoryServices.note`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Note
from methods.sepm.alignment import Correction
from methods.sepm.divergence import Divergence


@dataclass
class Notes:
    """Of one task. A plan is told whole when it is new, and by the status of its steps while it stays."""

    note: Note
    told: Mapping[str, Any] = field(default_factory=dict)

    def plan(self, step: int, plain: Mapping[str, Any]) -> None:
        """`plain` is the plan after `step` steps, as the coordination gives it."""
        before, self.told = self.told, plain
        if plain == before:
            return
        if "nodes" not in plain or before.get("version") != plain["version"]:
            self.note("graph", {"step": step, "graph": plain})
            return
        had = {node["id"]: node["status"] for node in before["nodes"]}
        changed = {node["id"]: node["status"] for node in plain["nodes"] if had.get(node["id"]) != node["status"]}
        if changed:
            self.note("graph_status", {"step": step, "changed": changed})

    def divergence(self, step: int, agent: str, found: Divergence) -> None:
        """Where something triggered: D_g and D_p as they were observed, and the keys in conflict."""
        if found.triggered:
            conflicts = [".".join(key) for key in found.conflicts]
            parts = {"goal": found.goal, "plan": found.plan, "conflicts": conflicts, "reasons": found.reasons}
            self.note("divergence", {"step": step, "agent": agent, **parts})

    def correction(self, step: int, sent: Correction) -> None:
        """When its agent hears of it."""
        self.note("correction", {"step": step, "agent": sent.agent, "reasons": sent.reasons, "text": sent.text})
