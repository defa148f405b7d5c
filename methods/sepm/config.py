"""The configuration of SEPM: the paper's constants, the switches of its ablations, and the choices that the paper leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass

GRAPHS = ("explicit", "text")
TRIAL_POLICIES = ("probation", "source", "replay", "none")
CUE_MATCHES = ("substring", "word")


@dataclass
class SepmConfig:
    """Keys by section of the SEPM paper.

    Retrieval (B.1): `k` procedures, `adaptive` weights by cue, `cue_match` substring or word.
    Alignment (B.2): `beta`, thresholds `tau_g` and `tau_p` (exceeded strictly), `judge_calls` a task at most
    (a goal that it would take one more for is not observed).
    State (B.3): `conf`, the confidence from which evidence is eligible.
    Promotion (B.5): `lambda_cost`, `min_repro`, `causal`, `risk`; `trial_policy` probation, source, replay or none;
    `max_trials` after which a candidate that was not accepted is rejected.
    Components (5.4, 5.5): `blackboard`, `procedural`, `alignment`; `graph` explicit or text (the textual control).
    Execution (B.4): `gate_not_ready`; `replan_after` failed checks; `max_replans` a task.
    Budgets: `context_budget_chars` for procedures in a prompt, `text_calls` a task of the textual control.
    `retirement` proposes to retire procedures that do worse than their family.
    """

    name: str = "sepm"
    blackboard: bool = True
    procedural: bool = True
    alignment: bool = True
    graph: str = "explicit"
    k: int = 5
    adaptive: bool = True
    cue_match: str = "substring"
    context_budget_chars: int = 6000
    beta: float = 0.55
    tau_g: float = 0.35
    tau_p: float = 0.40
    conf: float = 0.70
    judge_calls: int = 6
    gate_not_ready: bool = True
    replan_after: int = 2
    max_replans: int = 2
    trial_policy: str = "probation"
    max_trials: int = 3
    lambda_cost: float = 1.0
    min_repro: int = 1
    causal: float = 0.65
    risk: float = 0.50
    retirement: bool = True
    text_calls: int = 12

    def __post_init__(self) -> None:
        for key, value, known in (
            ("graph", self.graph, GRAPHS),
            ("trial_policy", self.trial_policy, TRIAL_POLICIES),
            ("cue_match", self.cue_match, CUE_MATCHES),
        ):
            if value not in known:
                raise ValueError(f"{key} is {value!r}, known: {', '.join(known)}")
        for key in ("beta", "tau_g", "tau_p", "conf", "causal", "risk"):
            if not 0.0 <= getattr(self, key) <= 1.0:
                raise ValueError(f"{key} must lie in [0, 1]")
        for key, least in (("k", 1), ("min_repro", 1), ("replan_after", 1), ("max_trials", 1), ("context_budget_chars", 200)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be {least} or more")
        for key in ("judge_calls", "max_replans", "text_calls", "lambda_cost"):
            if not (math.isfinite(getattr(self, key)) and getattr(self, key) >= 0):
                raise ValueError(f"{key} must be a finite number, 0 or more")
        if not self.blackboard and (self.procedural or self.alignment):
            raise ValueError("blackboard: false needs procedural: false and alignment: false, which stand on it")
