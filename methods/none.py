"""No memory: the host's own within-task trajectory is all there is (METHODS.md 3.1). Zero calls, zero tokens."""

from __future__ import annotations

from dataclasses import dataclass

from methods.base import MemoryMethod


class NoMemory(MemoryMethod):
    """The baseline of every comparison."""

    @dataclass
    class Config:
        name: str = "none"

    name = "none"
    version = "1-A"
