"""Which cell a run is: sha256 of the resolved configuration without run options, the data digest and the code versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any


def digest(value: Any) -> str:
    """sha256 of the canonical JSON of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=str):
            yield from leaves(value[key], f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Human-readable lines `key: old → new` for every leaf that differs, sorted by key."""
    before, after = dict(leaves(old)), dict(leaves(new))
    missing = "(absent)"
    return [
        f"{key}: {before.get(key, missing)!r} → {after.get(key, missing)!r}"
        for key in sorted(before.keys() | after.keys())
        if key not in before or key not in after or before[key] != after[key]
    ]
