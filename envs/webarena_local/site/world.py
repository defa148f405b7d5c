"""What the sites show and what visitors change: one object a server, which a reset makes anew from world.json.

There is no clock and no chance in it, so that the same clicks always lead to the same pages. No locks either: a server has one
visitor, whose requests and whose grader's follow one another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "wikipedia", "map", "homepage")
SERVED = (*SITES, "reset")  # the reset server has an address of its own, which is no site for agents
TODAY = "2023-06-01"  # the day on which everything happens
FaultKind = Literal["error", "login", "hang", "slow", "alert"]


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass
class Review:
    nickname: str
    stars: int
    title: str
    detail: str


@dataclass
class Product:
    id: int
    sku: str
    name: str
    category: str
    price: float
    stock: int
    description: str
    reviews: list[Review] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/{slug(self.name)}.html"


@dataclass
class Order:
    number: int
    date: str
    status: str
    customer: str
    lines: list[tuple[str, float]]  # (product, price)

    @property
    def total(self) -> float:
        return sum(price for _, price in self.lines)


@dataclass
class Comment:
    author: str
    body: str


@dataclass
class Post:
    id: int
    forum: str
    title: str
    author: str
    body: str
    votes: int
    choice: int = 0  # the visitor's own vote: 1, −1 or none
    comments: list[Comment] = field(default_factory=list)

    @property
    def score(self) -> int:
        return self.votes + self.choice

    @property
    def path(self) -> str:
        return f"/f/{self.forum}/{self.id}/{slug(self.title)}"


@dataclass
class Issue:
    number: int
    title: str
    author: str
    body: str
    labels: list[str]
    state: str = "opened"


@dataclass
class Project:
    owner: str
    name: str
    description: str
    members: dict[str, str]  # account → role
    issues: list[Issue]

    @property
    def path(self) -> str:
        return f"/{self.owner}/{self.name}"


@dataclass
class Article:
    title: str
    paragraphs: list[str]
    facts: dict[str, str]

    @property
    def path(self) -> str:
        return f"/wiki/{self.title.replace(' ', '_')}"


@dataclass
class Place:
    """`x` and `y` are kilometres east and north of the map's corner."""

    id: int
    name: str
    kind: str
    address: str
    x: float
    y: float


@dataclass
class Fault:
    """A failure that a test plants: at `path` and below of one site. `seconds` is how long a slow page takes."""

    kind: FaultKind
    path: str = "/"
    seconds: float = 0.0


class World:
    """Everything behind the pages. `faults` (site → fault) survives a reset: it belongs to the test, not to the visitor."""

    def __init__(self) -> None:
        self.faults: dict[str, Fault] = {}
        self.resets = 0
        self.reset()

    def reset(self) -> None:
        """Back to the state of world.json."""
        data: dict[str, Any] = json.loads(resources.files(__package__).joinpath("world.json").read_text(encoding="utf-8"))
        self.products = [
            Product(**{**row, "reviews": [Review(**review) for review in row["reviews"]]}) for row in data["products"]
        ]
        self.orders = [Order(**{**row, "lines": [(name, price) for name, price in row["lines"]]}) for row in data["orders"]]
        self.cart: list[int] = []
        self.wishlist: list[int] = list(data["wishlist"])
        self.posts = [Post(**{**row, "comments": [Comment(**c) for c in row["comments"]]}) for row in data["posts"]]
        self.biography: str = data["biography"]
        self.projects = [Project(**{**row, "issues": [Issue(**issue) for issue in row["issues"]]}) for row in data["projects"]]
        self.accounts: dict[str, str] = dict(data["accounts"])  # GitLab account → full name
        self.todos: list[str] = list(data["todos"])
        self.status = ""
        self.articles = [Article(**row) for row in data["articles"]]
        self.places = [Place(**row) for row in data["places"]]
        self.resets += 1

    # --- shop
    def product(self, key: int | str) -> Product | None:
        """A product by id, or by the path of its page, or by SKU."""
        return next((p for p in self.products if key in (p.id, p.path, p.sku)), None)

    def order(self, number: int) -> Order | None:
        return next((order for order in self.orders if order.number == number), None)

    def place_order(self, customer: str) -> Order:
        """Buy what is in the cart, which must hold something."""
        bought = [p for p in map(self.product, self.cart) if p is not None]
        number = max(order.number for order in self.orders) + 1
        order = Order(number, TODAY, "pending", customer, [(p.name, p.price) for p in bought])
        self.orders.append(order)
        self.cart.clear()
        return order

    # --- forum
    def forums(self) -> list[str]:
        return sorted({post.forum for post in self.posts})

    def post(self, number: int) -> Post | None:
        return next((post for post in self.posts if post.id == number), None)

    # --- projects
    def project(self, owner: str, name: str) -> Project | None:
        return next((project for project in self.projects if (project.owner, project.name) == (owner, name)), None)

    # --- encyclopedia and map
    def article(self, title: str) -> Article | None:
        return next((article for article in self.articles if article.title.lower() == title.replace("_", " ").lower()), None)

    def place(self, text: str) -> Place | None:
        """The place that `text` names: the same name, else the first whose name or address holds it."""
        exact = [place for place in self.places if place.name.lower() == text.strip().lower()]
        return next(iter(exact or self.places_with(text)), None)

    def places_with(self, text: str) -> list[Place]:
        return [place for place in self.places if matches(text, (place.name, place.kind, place.address))]


def matches(text: str, fields: Iterable[str]) -> bool:
    """Whether every word of `text` stands in `fields`; never for no words."""
    words, whole = text.lower().split(), " ".join(fields).lower()
    return bool(words) and all(word in whole for word in words)
