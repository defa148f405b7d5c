"""28 training and 76 held-out tasks (EMMA, Tables 8 and 9), stratified by domain and difficulty (METHODS.md 5.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


def train_count(n: int) -> int:
    """Training tasks of a stratum of `n`: max(min(2, n // 3), n // 4) reproduces 4/4/3/5/7/5 of Table 9."""
    return max(min(2, n // 3), n // 4)


def train_ids(ids: Sequence[str]) -> frozenset[str]:
    """The training tasks among `ids` ("<domain>-<easy|hard>-<number>"): evenly spaced in each sorted stratum."""
    strata: dict[str, list[str]] = defaultdict(list)
    for task_id in ids:
        domain, level, number = task_id.rsplit("-", 2)
        strata[f"{domain}-{level}"].append(f"{int(number):04d} {task_id}")
    chosen: set[str] = set()
    for members in strata.values():
        ordered = [entry.split(" ", 1)[1] for entry in sorted(members)]
        count = train_count(len(ordered))
        chosen.update(ordered[(2 * j + 1) * len(ordered) // (2 * count)] for j in range(count))
    return frozenset(chosen)
