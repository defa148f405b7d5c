"""Seeds by path: every random choice draws from a generator named after what it is for, never from a global one."""

from __future__ import annotations

import hashlib
import json
import random


def derive(seed: int, *path: str | int) -> int:
    """A 63-bit seed for `path` under `seed`, the same on every machine and in every process (RUN-R4)."""
    text = json.dumps([seed, *path], separators=(",", ":"), ensure_ascii=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def rng(seed: int, *path: str | int) -> random.Random:
    """A private generator for `path` under `seed`."""
    return random.Random(derive(seed, *path))


def case_seed(base: int, index: int) -> int:
    """RUN-R3, SEPM paper C.2: `s_i = s_base * 1000003 + i` with the official 0-based task index `i`."""
    return base * 1_000_003 + index
