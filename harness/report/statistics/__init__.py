"""Statistics of runs (ARCHITECTURE.md rule 8): intervals, paired tests, power, pooling, curves and sequential comparison.

All are two-sided; `confidence` is a fraction, 0.95 throughout. scipy and numpy do the work where they have it and are
imported when a function is called, never with the package. Every random draw is seeded by a path (`harness.seeds`), so that
the same results give the same figures.
"""

from harness.report.statistics.curve import Block, Trend, blocks, trend
from harness.report.statistics.intervals import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    bootstrap,
    interaction,
    paired_bootstrap,
    paired_proportions,
    unweighted_mean,
    wilson,
)
from harness.report.statistics.paired import (
    McNemar,
    OddsRatio,
    Permutation,
    cohens_h,
    holm,
    mcnemar,
    odds_ratio,
    permutation,
    spread,
    standardised,
)
from harness.report.statistics.pooled import Learning, Pooled, cochran_q, learning, pooled
from harness.report.statistics.power import ALPHA, POWER, mcnemar_power, paired_power, tasks_needed, tasks_needed_graded
from harness.report.statistics.sequential import Sequential, e_values, sequential

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "POWER",
    "RESAMPLES",
    "Block",
    "Interval",
    "Learning",
    "McNemar",
    "OddsRatio",
    "Permutation",
    "Pooled",
    "Sequential",
    "Trend",
    "blocks",
    "bootstrap",
    "cochran_q",
    "cohens_h",
    "e_values",
    "holm",
    "interaction",
    "learning",
    "mcnemar",
    "mcnemar_power",
    "odds_ratio",
    "paired_bootstrap",
    "paired_power",
    "paired_proportions",
    "permutation",
    "pooled",
    "sequential",
    "spread",
    "standardised",
    "tasks_needed",
    "tasks_needed_graded",
    "trend",
    "unweighted_mean",
    "wilson",
]
