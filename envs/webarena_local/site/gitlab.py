"""The code host: projects, issues, members, to-dos, the status line; with GitLab's addresses and the markup that graders read."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import ACCOUNTS, log_in, members_only, world
from envs.webarena_local.site.world import Issue, Project

pages = Blueprint("gitlab", __name__)
LOGIN = "/users/sign_in"
USER = ACCOUNTS["gitlab"][0]
ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")


@pages.get("/")
@pages.get("/dashboard/projects")
@members_only(LOGIN)
def home() -> ResponseReturnValue:
    return render_template("gitlab/home.html", title="Projects", projects=world().projects)


@pages.route(LOGIN, methods=["GET", "POST"])
def login() -> ResponseReturnValue:
    return log_in("gitlab", "user[login]", "/") or render_template("gitlab/login.html", title="GitLab")


@pages.get("/dashboard/todos")
@members_only(LOGIN)
def todos() -> ResponseReturnValue:
    return render_template("gitlab/todos.html", title="To-Do List", todos=world().todos)


@pages.route("/-/profile", methods=["GET", "POST"])
@members_only(LOGIN)
def profile() -> ResponseReturnValue:
    if request.method == "POST":
        world().status = request.form.get("user[status][message]", "").strip()
        flash("Status was successfully updated.")
        return redirect("/-/profile")
    return render_template("gitlab/profile.html", title="Edit Profile", status=world().status)


@pages.get(f"/{USER}")
@members_only(LOGIN)
def user() -> ResponseReturnValue:
    return render_template("gitlab/user.html", title=world().accounts[USER], status=world().status)


@pages.get("/<owner>/<name>")
@members_only(LOGIN)
def project(owner: str, name: str) -> ResponseReturnValue:
    found = _project(owner, name)
    return render_template("gitlab/project.html", title=found.name, project=found)


@pages.route("/<owner>/<name>/-/issues", methods=["GET", "POST"])
@members_only(LOGIN)
def issues(owner: str, name: str) -> ResponseReturnValue:
    found = _project(owner, name)
    title = request.form.get("issue[title]", "").strip()
    if request.method == "POST" and title:
        number = max((issue.number for issue in found.issues), default=0) + 1
        found.issues.append(Issue(number, title, USER, request.form.get("issue[description]", ""), []))
        return redirect(f"{found.path}/-/issues/{number}")
    label, state = request.args.get("label_name[]", ""), request.args.get("state", "opened")
    shown = [i for i in found.issues[::-1] if state in ("all", i.state) and (not label or label in i.labels)]
    labels = sorted({label for issue in found.issues for label in issue.labels})
    return render_template("gitlab/issues.html", title="Issues", project=found, issues=shown, labels=labels)


@pages.get("/<owner>/<name>/-/issues/new")
@members_only(LOGIN)
def new_issue(owner: str, name: str) -> ResponseReturnValue:
    return render_template("gitlab/new_issue.html", title="New Issue", project=_project(owner, name))


@pages.get("/<owner>/<name>/-/issues/<int:number>")
@members_only(LOGIN)
def issue(owner: str, name: str, number: int) -> ResponseReturnValue:
    found = _project(owner, name)
    one = next((issue for issue in found.issues if issue.number == number), None)
    if one is None:
        abort(404)
    return render_template("gitlab/issue.html", title=one.title, project=found, issue=one)


@pages.route("/<owner>/<name>/-/project_members", methods=["GET", "POST"])
@members_only(LOGIN)
def members(owner: str, name: str) -> ResponseReturnValue:
    found = _project(owner, name)
    if request.method == "POST":
        account, role = request.form.get("account", "").strip().lstrip("@"), request.form.get("role", "")
        if account in world().accounts and role in ROLES:
            found.members[account] = role
            flash(f"{world().accounts[account]} is now a member.")
        else:
            flash("There is no such account.")
        return redirect(f"{found.path}/-/project_members")
    return render_template("gitlab/members.html", title="Project members", project=found, accounts=world().accounts, roles=ROLES)


def _project(owner: str, name: str) -> Project:
    return world().project(owner, name) or abort(404)
