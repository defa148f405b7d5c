"""The shop's back office: orders, products and their prices, a report to download."""

from __future__ import annotations

from flask import Blueprint, Response, abort, flash, redirect, render_template, request, session
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import log_in, members_only, world

pages = Blueprint("shopping_admin", __name__)
STATUSES = ("pending", "complete", "canceled")


@pages.route("/", methods=["GET", "POST"])
def dashboard() -> ResponseReturnValue:
    """The login form and, behind it, the dashboard: Magento's admin has one address for both."""
    if "visitor" in session:
        return render_template("shopping_admin/dashboard.html", title="Dashboard")
    return log_in("shopping_admin", "username", "/") or render_template(
        "shopping_admin/login.html", title="Welcome, please sign in"
    )


@pages.get("/sales/order/")
@members_only("/")
def orders() -> ResponseReturnValue:
    status = request.args.get("status", "")
    shown = [order for order in world().orders if status in ("", order.status)]
    return render_template("shopping_admin/orders.html", title="Orders", orders=shown, status=status, statuses=STATUSES)


@pages.get("/sales/order/export/orders.csv")
@members_only("/")
def export() -> ResponseReturnValue:
    rows = [f"{order.number:09d},{order.date},{order.customer},{order.status},{order.total:.2f}" for order in world().orders]
    text = "\n".join(["number,date,customer,status,total", *rows, ""])
    return Response(text, mimetype="text/csv", headers={"Content-Disposition": "attachment; filename=orders.csv"})


@pages.get("/catalog/product/")
@members_only("/")
def products() -> ResponseReturnValue:
    return render_template("shopping_admin/products.html", title="Products", products=world().products)


@pages.route("/catalog/product/edit/id/<int:number>/", methods=["GET", "POST"])
@members_only("/")
def edit(number: int) -> ResponseReturnValue:
    product = world().product(number) or abort(404)
    if request.method == "POST":
        try:
            price, stock = float(request.form["product[price]"]), int(request.form["product[qty]"])
        except (KeyError, ValueError):
            flash("Please enter a valid number.")
        else:
            product.price, product.stock = price, stock
            product.description = request.form.get("product[description]", product.description)
            flash("You saved the product.")
        return redirect(f"/catalog/product/edit/id/{number}/")
    return render_template("shopping_admin/product.html", title=product.name, product=product)
