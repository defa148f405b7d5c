"""The reset server that BrowserGym's WA_FULL_RESET names."""

from __future__ import annotations

from flask import Blueprint
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import world

pages = Blueprint("reset", __name__)


@pages.get("/reset")
def reset() -> ResponseReturnValue:
    world().reset()
    return "Reset initiated, check status page"


@pages.get("/status")
def status() -> ResponseReturnValue:
    """The very words that BrowserGym waits for."""
    return "Ready for duty!"
