"""Candidates, their trials, and the five gates of promotion (SEPM paper 4.4 and B.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Op = Literal["create", "update", "specialize", "delete"]
CandidateStatus = Literal["pending", "safety_rejected", "needs_evidence", "validated", "promoted", "rejected", "superseded"]


@dataclass(frozen=True)
class Trial:
    """A reproduction trial: rewards in [0, 1], `cost` as a share of the step budget (AMB-3).

    `no_baseline` says that there was no run to compare with and the baseline reward is 0 for want of one.
    """

    task_id: str
    success: bool
    r_candidate: float
    r_baseline: float
    cost: float
    state_verified: bool
    causal_supported: bool
    environment: str = ""
    no_baseline: bool = False

    @property
    def qualified(self) -> bool:
        return self.success and self.state_verified and self.causal_supported

    def utility(self, weight: float = 1.0) -> float:
        """u_t of equation 13."""
        return self.r_candidate - self.r_baseline - weight * self.cost


@dataclass(frozen=True)
class Thresholds:
    risk: float = 0.50
    causal: float = 0.65
    reproductions: int = 1
    weight: float = 1.0  # λ


@dataclass(frozen=True)
class Verdict:
    """The five gates of equation 9, the net benefit over all trials, and the reason of a refusal."""

    safety: bool
    state: bool
    causal: bool
    reproduction: bool
    benefit: bool
    net_benefit: float  # −∞ without trials
    qualified: int

    @property
    def accepted(self) -> bool:
        return self.safety and self.state and self.causal and self.reproduction and self.benefit

    @property
    def failed(self) -> tuple[str, ...]:
        gates = ("safety", "state", "causal", "reproduction", "benefit")
        return tuple(gate for gate in gates if not getattr(self, gate))


def claimed_utility(benefit: float, cost: float, weight: float = 1.0) -> float:
    """u_claim of equation 12: a screen before any trial, never a substitute for one."""
    return benefit - weight * cost


def net_benefit(trials: Sequence[Trial], weight: float = 1.0) -> float:
    """ū of equation 14 over all trials, failed ones included; −∞ without any."""
    return sum(t.utility(weight) for t in trials) / len(trials) if trials else -math.inf


def judge(trials: Sequence[Trial], *, safe: bool, state_verified: bool, causal_confidence: float, at: Thresholds) -> Verdict:
    """Equation 9. A net benefit of exactly 0 passes."""
    qualified = [t for t in trials if t.qualified]
    mean = net_benefit(trials, at.weight)
    return Verdict(
        safety=safe,
        state=state_verified and all(t.state_verified for t in qualified),
        causal=causal_confidence >= at.causal and all(t.causal_supported for t in qualified),
        reproduction=len(qualified) >= max(1, at.reproductions),
        benefit=mean >= 0.0,
        net_benefit=mean,
        qualified=len(qualified),
    )


def summary_score(causal_confidence: float, qualified: int, reproductions: int, risk: float) -> float:
    """v_summary of equation 15: stored with the version, never a gate."""
    share = qualified / max(reproductions, qualified) if qualified else 0.0
    return min(1.0, 0.4 * causal_confidence + 0.3 * share + 0.3 * (1.0 - risk))
