"""Models may answer anything: what reads their answers ends soon on nonsense of any length, and no number is too long."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from harness.contracts import Member, MemoryServices, Outcome, Task
from harness.registry import methods
from methods.generative_full.scoring import parse_importances, parse_insight
from methods.gmemory.operations import parse_operations
from methods.hosts.dylan_importance import parse_best_two, parse_order, parse_ratings
from methods.rating import parse_rating
from methods.text.lists import integer, integers, list_items
from tests.support.fakes import FakeModels, trajectory

LENGTH = 200_000  # characters; a reading in quadratic time takes many minutes
TIMEOUT = 90  # seconds; all of them take less than one

READERS = {
    "list_items": "from methods.text.lists import list_items as f; read = lambda text: f(text, 5)",
    "one_line": "from methods.text.lists import one_line as f; read = lambda text: f(text, 2)",
    "operations": "from methods.gmemory.operations import parse_operations as read",
    "without_numbers": "from methods.gmemory.graphs import without_numbers as read",
    "importances": "from methods.generative_full.scoring import parse_importances as f; read = lambda text: f(text, 2)",
    "insight": "from methods.generative_full.scoring import parse_insight as f; read = lambda text: f(text, (1, 2))",
    "order": "from methods.hosts.dylan_importance import parse_order as f; read = lambda text: f(text, 3)",
    "ratings": "from methods.hosts.dylan_importance import parse_ratings as f; read = lambda text: f(text, 3)",
    "without_ratings": "from methods.hosts.dylan_importance import without_ratings as read",
    "best_two": "from methods.hosts.dylan_importance import parse_best_two as f; read = lambda text: f(text, 3)",
    "rating": "from methods.rating import parse_rating as read",
}
# beginning, what is repeated, end
NONSENSE = [
    ("", "\\n", "x"), ("", " ", "x"), ("", "\\t\\n", "x"), ("", "1", "x"), ("", "1 ", "x"), ("1", " ", "x"), ("", "-", "x"),
    ("- a", " ", "b"), ("1. a", " ", "b"), ("ADD", " ", "x"), ("ADD: a", " ", "b"), ("EDIT 1", "1", "x"), ("EDIT ", " 1", ":"),
    ("(", "1", ""), ("a (", "1", "x)"), ("(", "1 ", "x)"), ("(because of ", "1, ", "and"), ("", "(", "1)"), ("", "(1, ", "x"),
    ("", "1 > ", "x"), ("", "1 >", " "), ("", "1: ", "x"), ("", "[", "x"), ("[[", "1", "x"), ("[[", "1,", "]x"),
    ("[[1]]", ". ", "x"), ("", "[[1]] ", "x"), ("[", "1", "x"), ("[1", " ", "x"), ("[ ", "1 ,", "]"), ("", "#", "x"), ("", ".", "x"),
]  # fmt: skip
SCRIPT = """
{reader}
for beginning, middle, end in {nonsense!r}:
    read(beginning + (middle.encode().decode("unicode_escape") * {length})[:{length}] + end)
"""


@pytest.mark.parametrize("reader", READERS)
def test_nonsense_of_any_length_is_read_in_no_time(reader: str) -> None:
    """In a process of its own, because nothing else can end a regular expression at work."""
    script = SCRIPT.format(reader=READERS[reader], nonsense=NONSENSE, length=LENGTH)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=TIMEOUT)


class TestLongNumbers:
    """Python refuses to read a number of more than 4,300 digits."""

    LONG = "1" * 5000

    def test_they_are_cut_after_nine_digits(self) -> None:
        assert (integer(self.LONG), integer("-" + self.LONG), integer("42")) == (111111111, -111111111, 42)
        assert integers(f"1, -{self.LONG} and 3") == [1, -111111111, 3]

    def test_no_reader_stumbles_over_one(self) -> None:
        long = self.LONG
        assert parse_order(f"{long} > 1 > 2", 3) is None and parse_order(f"1 > {long}, or 2 > 1", 2) == (1, 0)
        assert parse_ratings(f"[[{long}, -{long}]]", 2) == (111111111, -111111111)
        assert parse_best_two(f"[{long}, 1] [2, 1]", 3) == (1, 0)
        assert parse_rating(long) == 111111111
        assert parse_importances(f"{long}: 3\n2: {long}", 2) == [1, 10] and parse_importances(f"[{long}, 2]", 2) == [10, 2]
        assert parse_insight(f"A ({long[:250]}, 1)", (7,)) == ("A", [7]) and parse_insight(f"A ({long})", (7,))[1] == []
        assert [operation.number for operation in parse_operations(f"EDIT {long}: A rule.")] == [111111111]


class TestWhatIsStillRead:
    """Forms of answer that models use."""

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            ("A (because of 1, 3).", ("A", [11, 13])), ("A (1 and 3)", ("A", [11, 13])), ("A (Evidence: 1 2 3 )", ("A", [11, 12, 13])),
            ("A (because of #1, #2, and 3)", ("A", [11, 12, 13])), ("A (b) (2,)", ("A (b)", [12])), ("A ()", ("A ()", [])),
            ("A (1) B", ("A (1) B", [])), ("A (1, two)", ("A (1, two)", [])), ("(3)", ("", [13])), ("", ("", [])), (")", (")", [])),
        ],
    )  # fmt: skip
    def test_insights(self, item: str, expected: tuple[str, list[int]]) -> None:
        assert parse_insight(item, (11, 12, 13)) == expected

    def test_lists(self) -> None:
        text = "Here:\r\n  1. one  \r\n\t2) two\n\n• three\n* one\n-four\n3.\n5: five\nsix"
        assert list_items(text, 9) == ["one", "two", "three", "four", "five"]

    def test_operations(self) -> None:
        found = parse_operations("**ADD :  A rule.  \n  - EDIT  2 : Other.\nREMOVE12: Third.")
        assert [(o.kind, o.number, o.text) for o in found] == [
            ("ADD", None, "A rule."),
            ("EDIT", 2, "Other."),
            ("REMOVE", 12, "Third."),
        ]

    def test_orders(self) -> None:
        assert parse_order("I say 2>1 >  3.", 3) == (1, 0, 2) and parse_order("12 > 1 > 2", 3) is None

    def test_importances(self) -> None:
        assert parse_importances("- **1**: 3\n(2) 9\n 2 = 4\n3. 5", 3) == [1, 4, 5]


@pytest.mark.parametrize("name", ["chatdev", "generative", "generative_full", "gmemory", "memorybank", "metagpt_pool", "voyager"])
def test_escapes_of_half_characters_stay_text(name: str) -> None:
    r"""These memories read plain text and decode no JSON, so that "\ud800" never becomes half a character, which no file can hold."""
    text = r'1. ADD: {"a": "\ud800"}, because \udfff.'
    models, db = FakeModels(lambda call: text), sqlite3.connect(":memory:", isolation_level=None)
    kind: Any = methods().load(name)
    special = {
        "gmemory": {"projector": True, "start": 1, "every": 1, "merge_every": 2},
        "generative_full": {"reflect_at": 1},
        "chatdev": {"every": 1},
    }
    method = kind(kind.Config(**special.get(name, {})), MemoryServices(db, models, 0))
    method.open()
    solver = Member("solver", "solver")
    for number in range(4):
        task = Task(f"t{number}", number, "goal", "clean mug", "family")
        guidance = method.on_task_start(task, frozenset(), (solver,))
        shown = repr((guidance, method.before_action(solver, 0), method.episode(solver, trajectory(("look", "ok")))))
        shown.encode("utf-8")
        method.on_task_end(task, trajectory(("look", "ok")), Outcome(1.0, True, "completed", "You won."))
    assert models.calls
    for call in models.calls:
        "".join(message["content"] for message in call.messages).encode("utf-8")
