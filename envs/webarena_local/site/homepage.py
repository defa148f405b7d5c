"""The page that lists the sites and their passwords."""

from __future__ import annotations

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import ACCOUNTS

pages = Blueprint("homepage", __name__)


@pages.get("/")
def home() -> ResponseReturnValue:
    return render_template("homepage/home.html", title="Homepage")


@pages.get("/password.html")
def passwords() -> ResponseReturnValue:
    return render_template("homepage/passwords.html", title="Accounts", accounts=ACCOUNTS)
