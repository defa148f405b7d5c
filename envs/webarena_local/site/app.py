"""One Flask application a site: sessions, the login that BrowserGym fills in, and the failures that a test may plant."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, cast

from flask import Flask, Response, abort, current_app, redirect, request, session
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from envs.webarena_local.site.world import SERVED, World

# The accounts that libwebarena logs in with (webarena.browser_env.env_config.ACCOUNTS), by site.
ACCOUNTS: dict[str, tuple[str, str]] = {
    "shopping": ("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": ("admin", "admin1234"),
    "reddit": ("MarvelsGrantMan136", "test1234"),
    "gitlab": ("byteblaze", "hello1234"),
}
HANG_SECONDS = 3600.0  # longer than any limit of a run

View = Callable[..., ResponseReturnValue]


def create_app(site: str, world: World, urls: Mapping[str, str]) -> Flask:
    """The application of one of SERVED. `urls` (site → address) may be filled in after the call: pages link to each other."""
    if site not in SERVED:
        raise ValueError(f"{site!r} is no site of the double")
    app = Flask(__name__)
    app.secret_key = f"double of {site}"  # guards nothing: the server listens on the loopback interface for one browser
    app.config["SESSION_COOKIE_NAME"] = f"session_{site}"  # the sites share a host, and browsers send cookies to all its ports
    app.extensions["world"] = world
    app.register_blueprint(import_module(f"envs.webarena_local.site.{site}").pages)
    app.context_processor(lambda: {"urls": urls, "site": site, "visitor": session.get("visitor"), "money": money})
    app.before_request(lambda: _misbehave(site, world))
    app.after_request(lambda response: _alert(site, world, response))
    app.register_error_handler(HTTPException, _error_page)
    return app


def world() -> World:
    """The world behind the request in hand."""
    return cast(World, current_app.extensions["world"])


def money(amount: float) -> str:
    return f"${amount:,.2f}"


def log_in(site: str, field: str, home: str) -> ResponseReturnValue | None:
    """Check a submitted login form (`field` and password); the way home, or None where it must be shown again."""
    if request.method != "POST":
        return None
    fault = world().faults.get(site)
    given = (request.form.get(field, ""), request.form.get("password", ""))
    if given != ACCOUNTS[site] or (fault is not None and fault.kind == "login"):
        return None
    session["visitor"] = given[0]
    return redirect(home)


def members_only(login: str) -> Callable[[View], View]:
    """A page that sends strangers to the login page at `login`."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> ResponseReturnValue:
            return view(*args, **kwargs) if "visitor" in session else redirect(login)

        return guarded

    return guard


def _misbehave(site: str, world: World) -> None:
    fault = world.faults.get(site)
    if fault is None or not request.path.startswith(fault.path):
        return
    if fault.kind == "error":
        abort(500)
    if fault.kind in ("hang", "slow"):
        time.sleep(HANG_SECONDS if fault.kind == "hang" else fault.seconds)


def _alert(site: str, world: World, response: Response) -> Response:
    fault = world.faults.get(site)
    if fault is not None and fault.kind == "alert" and request.path.startswith(fault.path) and response.mimetype == "text/html":
        response.set_data(
            response.get_data(as_text=True).replace("</body>", "<script>alert('Hello from the shop!')</script></body>")
        )
    return response


def _error_page(error: HTTPException) -> ResponseReturnValue:
    from flask import render_template

    return render_template("error.html", title=error.name, text=error.description), error.code or 500
