"""A task of the double as BrowserGym plays it. Imported in the browser worker only: BrowserGym reads WA_* when it is made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from envs.webarena.task import WebArenaTask


class LocalTask(WebArenaTask):
    """The task of env=webarena: login, start pages and grading are BrowserGym's; only the configuration is not of its list.

    `grader_pause` bounds the seconds that the evaluators sleep after opening a page; it changes nothing of what they check.
    """

    def __init__(self, seed: int, config: Mapping[str, Any], grader_pause: float, **options: Any) -> None:
        super().__init__(seed, task_id=0, **options)
        self.task_configs = [dict(config)]
        self._pause = grader_pause

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        from webarena.evaluation_harness import evaluators

        evaluators.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, self._pause)))
        goal, info = super().setup(page)
        return str(goal), info
