"""Ranges of the values in a configuration of a host or a memory, checked where it is made."""

from __future__ import annotations

import math
from typing import Any


def check_range(config: Any, *names: str, least: float, most: float | None = None) -> None:
    """Raise ValueError, naming the first field of `config` among `names` whose value is no finite number from `least` to `most`
    (None: no upper bound). A field that is None is right: where it may be is a matter of its type."""
    for name in names:
        value = getattr(config, name)
        if value is None or (math.isfinite(value) and least <= value and (most is None or value <= most)):
            continue
        wanted = f"{least:g} or more" if most is None else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} is {value}; it must be a number, {wanted}")
