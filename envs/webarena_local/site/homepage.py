"""The page that lists the sites and their passwords, and the reset server that BrowserGym's WA_FULL_RESET names."""

from __future__ import annotations

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import ACCOUNTS, world

pages = Blueprint("homepage", __name__)


@pages.get("/")
def home() -> ResponseReturnValue:
    return render_template("homepage/home.html", title="Homepage")


@pages.get("/password.html")
def passwords() -> ResponseReturnValue:
    return render_template("homepage/passwords.html", title="Accounts", accounts=ACCOUNTS)


@pages.get("/reset")
def reset() -> ResponseReturnValue:
    world().reset()
    return "Reset initiated, check status page"


@pages.get("/status")
def status() -> ResponseReturnValue:
    """The very words that BrowserGym waits for."""
    return "Ready for duty!"
