"""The forum, with the addresses and form fields of Postmill."""

from __future__ import annotations

from flask import Blueprint, abort, jsonify, redirect, render_template, request
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import ACCOUNTS, log_in, members_only, world
from envs.webarena_local.site.world import Comment, Post

pages = Blueprint("reddit", __name__)
LOGIN = "/login"
USER = ACCOUNTS["reddit"][0]


@pages.get("/")
def home() -> ResponseReturnValue:
    return render_template("reddit/home.html", title="Postmill", forums=world().forums(), prefix="/f")


@pages.route(LOGIN, methods=["GET", "POST"])
def login() -> ResponseReturnValue:
    return log_in("reddit", "_username", "/") or render_template("reddit/login.html", title="Log in")


@pages.get("/f/<forum>")
@pages.get("/f/<forum>/<any(hot, new, top):order>")
def listing(forum: str, order: str = "hot") -> ResponseReturnValue:
    posts = [post for post in world().posts if post.forum == forum]
    if not posts:
        abort(404)
    if order == "top":
        posts = sorted(posts, key=lambda post: post.score, reverse=True)
    elif order == "new":
        posts = posts[::-1]
    return render_template("reddit/forum.html", title=f"/f/{forum}", forum=forum, posts=posts)


@pages.get("/f/<forum>/<int:number>/")
@pages.get("/f/<forum>/<int:number>/<slug>")
def submission(forum: str, number: int, slug: str = "") -> ResponseReturnValue:
    post = _post(number, forum)
    return render_template("reddit/post.html", title=post.title, post=post)


@pages.post("/f/<forum>/<int:number>/-/comment")
@members_only(LOGIN)
def comment(forum: str, number: int) -> ResponseReturnValue:
    post = _post(number, forum)
    text = request.form.get(f"reply_to_submission_{number}[comment]", "").strip()
    if text:
        post.comments.append(Comment(USER, text))
    return redirect(post.path)


@pages.get("/submit")
@members_only(LOGIN)
def choose_forum() -> ResponseReturnValue:
    return render_template("reddit/home.html", title="Create submission", forums=world().forums(), prefix="/submit")


@pages.route("/submit/<forum>", methods=["GET", "POST"])
@members_only(LOGIN)
def submit(forum: str) -> ResponseReturnValue:
    if forum not in world().forums():
        abort(404)
    title = request.form.get("submission[title]", "").strip()
    if request.method == "POST" and title:
        number = max(post.id for post in world().posts) + 1
        post = Post(number, forum, title, USER, request.form.get("submission[body]", ""), 1)
        world().posts.append(post)
        return redirect(post.path)
    return render_template("reddit/submit.html", title="Create submission", forum=forum)


@pages.post("/sv/<int:number>.json")
@members_only(LOGIN)
def vote(number: int) -> ResponseReturnValue:
    """Vote as Postmill's buttons do; a form without JavaScript is sent back to the submission."""
    post = _post(number)
    post.choice = {"1": 1, "-1": -1}.get(request.form.get("choice", ""), 0)
    return redirect(post.path) if request.accept_mimetypes.accept_html else jsonify(netScore=post.score)


@pages.get("/user/<name>")
def user(name: str) -> ResponseReturnValue:
    if name != USER:
        abort(404)
    return render_template("reddit/user.html", title=name, biography=world().biography)


@pages.route("/user/<name>/edit_biography", methods=["GET", "POST"])
@members_only(LOGIN)
def biography(name: str) -> ResponseReturnValue:
    if name != USER:
        abort(403)
    if request.method == "POST":
        world().biography = request.form.get("user_biography[biography]", "")
        return redirect(f"/user/{USER}")
    return render_template("reddit/biography.html", title="Edit biography", biography=world().biography)


def _post(number: int, forum: str | None = None) -> Post:
    post = world().post(number)
    if post is None or forum not in (None, post.forum):
        abort(404)
    return post
