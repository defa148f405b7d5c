"""The encyclopedia: a search, articles with a table of facts, links to the map that open in a new tab."""

from __future__ import annotations

from flask import Blueprint, abort, render_template, request
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import world
from envs.webarena_local.site.world import matches

pages = Blueprint("wikipedia", __name__)


@pages.get("/")
def home() -> ResponseReturnValue:
    return render_template("wikipedia/home.html", title="Encyclopedia", articles=world().articles)


@pages.get("/search")
def search() -> ResponseReturnValue:
    text = request.args.get("pattern", "")
    found = [article for article in world().articles if matches(text, (article.title, *article.paragraphs))]
    return render_template("wikipedia/search.html", title="Search results", articles=found, text=text)


@pages.get("/wiki/<title>")
def article(title: str) -> ResponseReturnValue:
    found = world().article(title) or abort(404)
    return render_template("wikipedia/article.html", title=found.title, article=found)
