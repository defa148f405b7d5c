"""How many tasks the query graph links a new one with (METHODS.md 3.4: the ten nearest)."""

from __future__ import annotations

from tests.methods.test_gmemory import memory, play, rows


def test_a_task_is_linked_with_ten_at_most() -> None:
    """The task itself is not one of its ten nearest, however many are as near as it."""
    method = memory()
    for number in range(13):
        play(method, number, "clean mug")
    links = rows(method, "SELECT newer, count(*) FROM memory_gmemory_edge GROUP BY newer ORDER BY newer")
    assert links == [(newer, min(newer - 1, 10)) for newer in range(2, 14)]
