"""A task of the double as BrowserGym plays it. Imported in the browser worker only: BrowserGym reads WA_* when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from browsergym.webarena.task import GenericWebArenaTask


class LocalTask(GenericWebArenaTask):  # type: ignore[misc]
    """BrowserGym's WebArena task, unmodified in login, start pages and grading; only the configuration is not of its list."""

    def __init__(self, seed: int, config: Mapping[str, Any], **options: Any) -> None:
        super().__init__(seed, task_id=0, **options)
        self.task_configs = [dict(config)]
