"""The shop: catalogue, search, cart, orders, wish list, reviews, and the part of Magento's REST interface that graders ask."""

from __future__ import annotations

from flask import Blueprint, abort, flash, jsonify, redirect, render_template, request
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import ACCOUNTS, log_in, members_only, world
from envs.webarena_local.site.world import Product, Review, matches

pages = Blueprint("shopping", __name__)
LOGIN = "/customer/account/login/"
CUSTOMER = "Emma Lopez"
TOKEN = "double-admin-token"
STARS = (1, 2, 3, 4, 5)


@pages.get("/")
def home() -> ResponseReturnValue:
    categories = sorted({product.category for product in world().products})
    return render_template("shopping/home.html", title="One Stop Market", categories=categories)


@pages.route(LOGIN, methods=["GET", "POST"])
def login() -> ResponseReturnValue:
    return log_in("shopping", "email", "/") or render_template("shopping/login.html", title="Customer Login")


@pages.get("/<name>.html")
def product_or_category(name: str) -> ResponseReturnValue:
    if found := world().product(f"/{name}.html"):
        return render_template("shopping/product.html", title=found.name, product=found, stars=STARS)
    return _listing(name.title(), [product for product in world().products if product.category == name])


@pages.get("/catalogsearch/result/")
def search() -> ResponseReturnValue:
    text = request.args.get("q", "")
    found = [p for p in world().products if matches(text, (p.name, p.description, p.category))]
    return render_template("shopping/listing.html", title=f"Search results for: '{text}'", products=found, sortable=False)


def _listing(title: str, products: list[Product]) -> ResponseReturnValue:
    if not products:
        abort(404)
    order = request.args.get("product_list_order", "position")
    if order == "price":
        products = sorted(products, key=lambda product: product.price, reverse=request.args.get("product_list_dir") == "desc")
    elif order == "name":
        products = sorted(products, key=lambda product: product.name)
    return render_template("shopping/listing.html", title=title, products=products, sortable=True)


@pages.post("/checkout/cart/add/product/<int:number>/")
def add_to_cart(number: int) -> ResponseReturnValue:
    product = _product(number)
    world().cart.append(number)
    flash(f"You added {product.name} to your shopping cart.")
    return redirect("/checkout/cart/")


@pages.get("/checkout/cart/")
def cart() -> ResponseReturnValue:
    products = [product for product in map(world().product, world().cart) if product is not None]
    total = sum(product.price for product in products)
    return render_template("shopping/cart.html", title="Shopping Cart", products=products, total=total)


@pages.post("/checkout/onepage/")
@members_only(LOGIN)
def check_out() -> ResponseReturnValue:
    if not world().cart:
        return redirect("/checkout/cart/")
    order = world().place_order(CUSTOMER)
    return render_template("shopping/success.html", title="Thank you for your purchase!", order=order)


@pages.get("/customer/account/")
@members_only(LOGIN)
def account() -> ResponseReturnValue:
    return render_template("shopping/account.html", title="My Account", customer=CUSTOMER, email=ACCOUNTS["shopping"][0])


@pages.get("/sales/order/history/")
@members_only(LOGIN)
def history() -> ResponseReturnValue:
    own = [order for order in world().orders if order.customer == CUSTOMER]
    return render_template("shopping/history.html", title="My Orders", orders=own[::-1])


@pages.get("/sales/order/view/order_id/<int:number>/")
@members_only(LOGIN)
def order(number: int) -> ResponseReturnValue:
    found = world().order(number)
    if found is None or found.customer != CUSTOMER:
        abort(404)
    return render_template("shopping/order.html", title=f"Order # {found.number:09d}", order=found)


@pages.post("/wishlist/index/add/product/<int:number>/")
@members_only(LOGIN)
def add_to_wishlist(number: int) -> ResponseReturnValue:
    product = _product(number)
    if number not in world().wishlist:
        world().wishlist.append(number)
    flash(f"{product.name} has been added to your Wish List.")
    return redirect("/wishlist/")


@pages.get("/wishlist/")
@members_only(LOGIN)
def wishlist() -> ResponseReturnValue:
    products = [product for product in map(world().product, world().wishlist) if product is not None]
    return render_template("shopping/wishlist.html", title="My Wish List", products=products)


@pages.post("/review/product/post/id/<int:number>/")
@members_only(LOGIN)
def review(number: int) -> ResponseReturnValue:
    product, form = _product(number), request.form
    stars = form.get("stars", "")
    if stars not in map(str, STARS) or not form.get("nickname", "").strip():
        flash("Please choose a rating and a nickname.")
        return redirect(product.path)
    product.reviews.append(Review(form["nickname"].strip(), int(stars), form.get("title", ""), form.get("detail", "")))
    flash("You submitted your review.")
    return redirect(product.path)


def _product(number: int) -> Product:
    return world().product(number) or abort(404)


# --- what libwebarena's helper functions call -------------------------------------------------------------------------
@pages.post("/rest/default/V1/integration/admin/token")
def token() -> ResponseReturnValue:
    given = request.get_json(silent=True) or {}
    if (given.get("username"), given.get("password")) != ACCOUNTS["shopping_admin"]:
        abort(401)
    return jsonify(TOKEN)


@pages.get("/rest/V1/orders")
def rest_orders() -> ResponseReturnValue:
    """The newest orders first; the helper asks for one."""
    _authorised()
    size = request.args.get("searchCriteria[pageSize]", default=20, type=int)
    newest = sorted(world().orders, key=lambda order: order.number, reverse=True)[:size]
    return jsonify(items=[{"increment_id": f"{order.number:09d}", "status": order.status} for order in newest])


@pages.get("/rest/V1/products/<sku>/reviews")
def rest_reviews(sku: str) -> ResponseReturnValue:
    _authorised()
    product = world().product(sku) or abort(404)
    rows = [
        {"nickname": review.nickname, "title": review.title, "ratings": [{"rating_name": "Rating", "percent": 20 * review.stars}]}
        for review in product.reviews
    ]
    return jsonify(rows)


def _authorised() -> None:
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        abort(401)
