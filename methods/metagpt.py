"""MetaGPT in the form of the published comparison (METHODS.md 3.3): past successes by similarity, no model call.

Within a task every agent sees the whole shared trajectory, which the host's prompt has in any case; across tasks the nearest
successful trajectories are shown. The faithful publish/subscribe pool is another method.
"""

from __future__ import annotations

from dataclasses import dataclass

from methods.successes import PastSuccesses, SuccessConfig


class MetaGPT(PastSuccesses):
    """Nearest successes, straight from the store."""

    @dataclass
    class Config(SuccessConfig):
        """`successful_topk` past successes are shown; failures are stored and never shown."""

        name: str = "metagpt"

    name = "metagpt"
    version = "1-A"
