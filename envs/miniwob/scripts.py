"""Solutions of MiniWoB++ kinds as scripts that read goal and accessibility tree, as an agent would.

Kinds without a script here need more than ten steps, eyes (shapes, colours), hands (dragging) or a reader's judgement. A script
yields one action a page; see envs.browser.session.Script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence

from envs.browser.plan import Page
from envs.browser.session import Script
from envs.browser.tree import Node, find, read

Moves = Generator[str, Page, None]


def click(node: Node | None) -> str:
    return f"click({node.bid!r})" if node is not None else "noop()"


def fill(node: Node | None, text: str) -> str:
    return f"fill({node.bid!r}, {text!r})" if node is not None else "noop()"


def quoted(goal: str) -> list[str]:
    """What stands in quotation marks in the goal."""
    return re.findall(r'"([^"]*)"', goal)


def listed(goal: str, pattern: str) -> list[str]:
    """The items of a list in the goal, separated by commas; `pattern` has one group."""
    found = re.search(pattern, goal)
    return [item.strip() for item in found[1].split(",")] if found else []


def boxes(page: Page, role: str = "textbox") -> list[Node]:
    return [node for node in read(page.tree) if node.role == role and node.bid]


def texts(page: Page) -> list[str]:
    return [node.name for node in read(page.tree) if node.role == "StaticText"]


def ordinal(goal: str) -> int:
    """The number in "3rd", from 0."""
    found = re.search(r"(\d+)(?:st|nd|rd|th)", goal)
    return int(found[1]) - 1 if found else 0


# --- one click --------------------------------------------------------------------------------------------------------
def press(role: str, name: Callable[[str], str | None]) -> Script:
    """Click the element of `role` that the goal names."""

    def script(page: Page) -> Moves:
        yield click(find(page.tree, role, name(page.goal)))

    return script


def first_quoted(goal: str) -> str | None:
    return next(iter(quoted(goal)), None)


def after(pattern: str) -> Callable[[str], str | None]:
    def named(goal: str) -> str | None:
        found = re.search(pattern, goal)
        return found[1] if found else None

    return named


def hit(page: Page, name: str, other: str) -> str:
    """A click on the corner of button `name` that is farthest from the button `other`, which may lie on it."""
    places = [node.center or (0.0, 0.0) for node in (find(page.tree, "button", n) for n in (name, other)) if node is not None]
    (x, y), (over_x, over_y) = places
    return f"mouse_click({x + (22 if x > over_x else -22):g}, {y + (9 if y > over_y else -9):g})"


def one_of_two(page: Page) -> Moves:
    name = "TWO" if "TWO" in page.goal else "ONE"
    yield hit(page, name, "ONE" if name == "TWO" else "TWO")


def click_sequence(page: Page) -> Moves:
    page = yield hit(page, "ONE", "TWO")
    yield hit(page, "TWO", "ONE")


def focus(page: Page) -> Moves:
    yield click(boxes(page)[ordinal(page.goal)])


def cheapest(page: Page) -> Moves:
    """Of the tickets, the cheapest or the shortest."""
    buttons = [node for node in boxes(page, "button") if node.name.startswith("Book for $")]
    times = [int(h) * 60 + int(m) for h, m in re.findall(r"'(\d+)h (\d+)m'", page.tree)]
    prices = [int(re.sub(r"\D", "", node.name)) for node in buttons]
    values, best = (times, min) if re.search("duration|shortest|longest", page.goal) else (prices, min)
    if re.search("most expensive|longest|highest", page.goal):
        best = max
    yield click(buttons[values.index(best(values))])


def dialog(page: Page) -> Moves:
    yield click(find(page.tree, "button", "Close"))


def labelled_dialog(page: Page) -> Moves:
    name = quoted(page.goal)[0]
    yield click(find(page.tree, "button", "Close" if name == "x" else name))


# --- choices and a button ---------------------------------------------------------------------------------------------
def check(role: str, pattern: str, submit: str = "Submit") -> Script:
    """Choose the elements of `role` that the goal lists, then submit."""

    def script(page: Page) -> Moves:
        for name in listed(page.goal, pattern):
            if name != "nothing":
                page = yield click(find(page.tree, role, name))
        yield click(find(page.tree, "button", submit))

    return script


def choose_from_list(page: Page) -> Moves:
    """A drop-down list takes what is typed while it has the focus."""
    wanted = listed(page.goal, r"Select (.+) from the list")[0]
    page = yield click(boxes(page, "combobox")[0])
    page = yield f"keyboard_type({wanted!r})"
    page = yield "keyboard_press('Enter')"
    yield click(find(page.tree, "button", "Submit"))


# --- text fields ------------------------------------------------------------------------------------------------------
def fields(values: Callable[[Page], Sequence[str]], submit: str = "Submit") -> Script:
    """Fill the text boxes in order, then press the button."""

    def script(page: Page) -> Moves:
        for place, text in enumerate(values(page)):
            page = yield fill(boxes(page)[place], text)
        yield click(find(page.tree, "button", submit))

    return script


def cased(page: Page) -> list[str]:
    text = quoted(page.goal)[0]
    return [text.upper() if "upper" in page.goal else text.lower()]


def date_iso(page: Page) -> Moves:
    found = re.search(r"(\d\d)/(\d\d)/(\d{4})", page.goal)
    month, day, year = found.groups() if found else ("01", "01", "2000")
    page = yield fill(find(page.tree, "Date"), f"{year}-{month}-{day}")
    yield click(find(page.tree, "button", "Submit"))


def time_iso(page: Page) -> Moves:
    found = re.search(r"(\d+):(\d\d) (AM|PM)", page.goal)
    hour, minute, half = found.groups() if found else ("1", "00", "AM")
    page = yield fill(find(page.tree, "InputTime"), f"{int(hour) % 12 + 12 * (half == 'PM'):02d}:{minute}")
    yield click(find(page.tree, "button", "Submit"))


def copy(page: Page) -> Moves:
    full, empty = sorted(boxes(page), key=lambda node: not node.value)
    page = yield fill(empty, full.value)
    yield click(find(page.tree, "button", "Submit"))


def copy_third(page: Page) -> Moves:
    page = yield fill(boxes(page)[-1], boxes(page)[ordinal(page.goal)].value)
    yield click(find(page.tree, "button", "Submit"))


def nth_word(page: Page) -> list[str]:
    words = " ".join(texts(page)).split()
    return [re.sub(r"[,.?!]", "", words[ordinal(page.goal)])]


def cells(page: Page) -> dict[str, str]:
    """A table of two columns."""
    names = [node.name for node in read(page.tree) if node.role == "cell"]
    return dict(zip(names[::2], names[1::2], strict=False))


def table_value(page: Page) -> list[str]:
    return [cells(page)[listed(page.goal, r"value of (.+?) into")[0]]]


def table_values(page: Page) -> list[str]:
    nodes = read(page.tree)
    labels = [nodes[i + 1].name for i, node in enumerate(nodes[:-1]) if node.role == "LabelText"]
    return [cells(page)[label.strip(" :")] for label in labels]


def login(page: Page) -> Moves:
    """Name and password; a popup in between is closed."""
    submit = boxes(page, "button")[-1].name
    for place, text in enumerate(quoted(page.goal)[:2]):
        page = yield fill(boxes(page)[place], text)
        while (cancel := find(page.tree, "button", "Cancel")) is not None:
            page = yield click(cancel)
            page = yield fill(boxes(page)[place], text)
    yield click(find(page.tree, "button", submit))


def arithmetic(page: Page) -> list[str]:
    """a + b, a - b, a x b; an unknown is what makes the equation true."""
    problem = texts(page)[0].replace(" ", "")
    found = re.match(r"(-?\w+)([-+x])(-?\w+)=(-?\w*)", problem)
    if found is None:
        return ["0"]
    a, sign, b, result = found.groups()
    if "x" not in (a, b):
        left, right = int(a), int(b)
        return [str({"+": left + right, "-": left - right}.get(sign, left * right))]
    total = int(result)
    known = int(b if a == "x" else a)
    if sign == "+":
        return [str(total - known)]
    if sign == "-":
        return [str(total + known if a == "x" else known - total)]
    return [str(total // known)]


# --- pages that change ------------------------------------------------------------------------------------------------
def collapsible(page: Page) -> Moves:
    page = yield click(find(page.tree, "tab"))
    yield click(find(page.tree, "button", "Submit"))


def phone_book(page: Page) -> Moves:
    """Turn the pages until the name comes, then click what is asked for: link 0 phone, 1 mail, 2 address."""
    found = re.search(r"Find (\w+) in .* click on their (\w+)", page.goal)
    name, what = found.groups() if found else ("", "")
    for _ in range(8):
        if find(page.tree, "heading", name) is not None:
            break
        page = yield click(find(page.tree, "link", ">"))
    place = {"phone": 0, "email": 1}.get(what, 2)
    yield click(boxes(page, "link")[place])


def odd_or_even(page: Page) -> Moves:
    numbers = [int(text) for text in texts(page) if re.fullmatch(r"-?\d+", text)]
    for place, number in enumerate(numbers):
        page = yield click(find(page.tree, "button", "Odd" if number % 2 else "Even", nth=place))
    yield click(find(page.tree, "button", "Submit"))


def generate(page: Page) -> Moves:
    """Draw until the number is of the asked kind."""
    for _ in range(8):
        page = yield click(find(page.tree, "button", "Generate"))
        number = next((int(text) for text in texts(page) if re.fullmatch(r"-?\d+", text)), 0)
        limit = re.search(r"(greater|less|more|smaller) than (-?\d+)", page.goal)
        if limit is not None:
            right = number > int(limit[2]) if limit[1] in ("greater", "more") else number < int(limit[2])
        else:
            right = bool(number % 2) == ("odd" in page.goal)
        if right:
            break
    yield click(find(page.tree, "button", "Submit"))


def guess(page: Page) -> Moves:
    """Halve the range by the feedback."""
    low, high = 0, 9
    while low <= high:
        middle = (low + high) // 2
        page = yield fill(boxes(page, "spinbutton")[0], str(middle))
        page = yield click(find(page.tree, "button", "Submit"))
        told = " ".join(texts(page))
        low, high = (middle + 1, high) if "higher" in told else (low, middle - 1)


SELECT = r"^Select (.+) and click Submit"

SCRIPTS: tuple[tuple[str, Script], ...] = (
    ("buy-ticket", cheapest),
    ("choose-list", choose_from_list),
    ("click-button", press("button", first_quoted)),
    ("click-button-sequence", click_sequence),
    ("click-checkboxes", check("checkbox", SELECT)),
    ("click-checkboxes-transfer", check("checkbox", SELECT)),
    ("click-collapsible", collapsible),
    ("click-collapsible-nodelay", collapsible),
    ("click-dialog", dialog),
    ("click-dialog-2", labelled_dialog),
    ("click-option", check("radio", SELECT)),
    ("click-tab", press("link", after(r"Click on (Tab #\d+)"))),
    ("click-test", press("button", lambda goal: None)),
    ("click-test-2", one_of_two),
    ("click-test-transfer", one_of_two),
    ("copy-paste", copy),
    ("copy-paste-2", copy_third),
    ("enter-date", date_iso),
    ("enter-password", fields(lambda page: quoted(page.goal) * 2)),
    ("enter-text", fields(lambda page: quoted(page.goal))),
    ("enter-text-2", fields(cased)),
    ("enter-text-dynamic", fields(lambda page: quoted(page.goal))),
    ("enter-time", time_iso),
    ("find-word", fields(nth_word)),
    ("focus-text", focus),
    ("focus-text-2", focus),
    ("generate-number", generate),
    ("guess-number", guess),
    ("login-user", login),
    ("login-user-popup", login),
    ("odd-or-even", odd_or_even),
    ("phone-book", phone_book),
    ("read-table", fields(table_value)),
    ("read-table-2", fields(table_values)),
    ("simple-algebra", fields(arithmetic)),
    ("simple-arithmetic", fields(arithmetic)),
)
