"""Values that make no sense are refused where the configuration is made, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from harness.registry import hosts, methods
from methods.ranges import check_range

NAN, INFINITE = float("nan"), float("inf")
HOSTS = ("autogen", "autogen_selector", "dylan", "dylan_original", "single")
BAD = [
    *[(host, "max_tokens", value) for host in HOSTS for value in (0, -1)],
    *[(host, "max_attempts", 0) for host in HOSTS],
    *[("dylan_original", "temperature", value) for value in (-0.1, NAN, INFINITE)],
    *[("gmemory", field, value) for field in ("threshold", "edge_cos") for value in (-1.1, 1.1, NAN, INFINITE, -INFINITE)],
    *[("generative_full", field, value) for field in ("recency", "importance", "relevance") for value in (-1.0, NAN, INFINITE)],
    ("metagpt_pool", "budget_tokens", -1),
    ("autogen_selector", "turns_per_step", 1), ("dylan", "nodes", 1), ("dylan_original", "agents", 0), ("chatdev", "every", 0),
    *[(name, "successful_topk", -1) for name in ("generative", "metagpt", "metagpt_pool", "gmemory", "voyager", "memorybank")],
]  # fmt: skip
GOOD = [
    *[(host, "max_tokens", value) for host in HOSTS for value in (None, 1)],
    *[("gmemory", field, value) for field in ("threshold", "edge_cos") for value in (-1.0, 0.0, 1.0)],
    ("dylan_original", "temperature", 0.0), ("metagpt_pool", "budget_tokens", None), ("metagpt_pool", "budget_tokens", 0),
]  # fmt: skip


def config(name: str) -> Any:
    kind: Any = hosts().load(name) if name in HOSTS else methods().load(name)
    return kind.Config


@pytest.mark.parametrize(("name", "field", "value"), BAD)
def test_a_bad_value_is_refused_by_name(name: str, field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{field} is {value}; it must be a number, ") as caught:
        config(name)(**{field: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "field", "value"), GOOD)
def test_the_ends_of_the_ranges_are_good(name: str, field: str, value: Any) -> None:
    assert getattr(config(name)(**{field: value}), field) == value


def test_the_message_tells_the_range() -> None:
    @dataclass
    class Some:
        low: int = 0
        high: float = 3.0

    with pytest.raises(ValueError, match=r"^low is 0; it must be a number, 1 or more$"):
        check_range(Some(), "low", least=1)
    with pytest.raises(ValueError, match=r"^high is 3\.0; it must be a number, from -1 to 1$"):
        check_range(Some(), "high", least=-1, most=1)
