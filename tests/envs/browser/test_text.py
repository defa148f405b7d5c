"""What goes between a model and a page as text: the call in an answer, the page within its budget, the tree's lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.browser.actions import normalise
from envs.browser.guard import check_call
from envs.browser.plan import Page
from envs.browser.session import cut_to, view
from envs.browser.tree import find, read

NAMES = ("click", "fill", "noop", "goto", "send_msg_to_user", "select_option")


@pytest.mark.parametrize(
    ("answer", "call"),
    [
        ("click('12')", "click('12')"),
        ("I click it.\n```\nclick('12')\n```", "click('12')"),
        ("```python\nclick('12')\n```\nor rather\n```\nclick('13')\n```\nDone.", "click('13')"),
        ("First I thought of click('1').\nBut no: click('2')", "click('2')"),
        ("click('1') then click('2')", "click('1')\nclick('2')"),
        ("click('1')\nclick('2')", "click('1')\nclick('2')"),
        ("```\nclick('1')\nclick('2')\n```", "click('1')\nclick('2')"),
        ("fill('a1', 'it\\'s (really) \"so\"')", "fill('a1', 'it\\'s (really) \"so\"')"),
        ("fill('a1', '''two\nlines''')", "fill('a1', '''two\nlines''')"),
        ("select_option('a48', ['red', 'green'])", "select_option('a48', ['red', 'green'])"),
        ("Action: click(bid='12', button='right').", "click(bid='12', button='right')"),
        ("I will click(the button)", "I will click(the button)"),
        ("no idea\n\n  what to do  ", "what to do"),
        ("click('12'", "click('12'"),
        ("my_click('12')", "my_click('12')"),
        ("```\n```", ""),
        ("  \n ", ""),
    ],
)
def test_the_call_in_an_answer(answer: str, call: str) -> None:
    assert normalise(answer, NAMES) == call


@given(
    st.lists(
        st.sampled_from(
            ["click('1')", "noop()", "fill('2', \"a ) b\")", "```", "\n", " ", "text", "(", ")", "'", '"', "click(", "\\"]
        )
    )
)
def test_normalising_twice_is_normalising_once(parts: list[str]) -> None:
    once = normalise("".join(parts), NAMES)
    assert normalise(once, NAMES) == once


@given(st.text())
def test_any_text_can_be_normalised(text: str) -> None:
    once = normalise(text, NAMES)
    assert normalise(once, NAMES) == once and len(once) <= max(200, len(text))


def test_a_page_within_its_budget_is_whole_and_a_longer_one_says_what_is_missing() -> None:
    assert cut_to("one\ntwo", None) == ("one\ntwo", 0)
    assert cut_to("one\ntwo", 2) == ("one\ntwo", 0)
    assert cut_to("12345678\nabcdefg\nend", 4) == ("12345678", 3)
    text, cut = view(Page(tree="12345678\nabcdefg\nend", url="http://a/"), 4)
    assert (text, cut) == ("URL: http://a/\n12345678\n[cut: 3 of about 5 tokens of this page are not shown]", 3)


def test_what_happened_beside_the_page_stands_before_it() -> None:
    page = Page(
        tree="RootWebArea 'x'",
        url="http://a/2",
        tabs=(("One", "http://a/1"), ("Two", "http://a/2")),
        active=1,
        error="ValueError: no\n such element",
        dialogs=(("alert", "Hello"),),
        downloads=("a.pdf",),
    )
    assert view(page, None)[0].splitlines() == [
        "Tabs: 0: One <http://a/1>; 1 (current): Two <http://a/2>",
        "URL: http://a/2",
        "Dialog (alert), dismissed: Hello",
        "Downloaded: a.pdf",
        "Error of the last action: ValueError: no such element",
        "RootWebArea 'x'",
    ]


TREE = """RootWebArea 'Shop', focused
\t[13] button "It's", center="(110,254)"
\t[a14] textbox 'Name' value='Ann \\'B\\'', focused
\t\tStaticText 'Ann'
\t[15] spinbutton '' value=4, valuemin=0
\t[16] button "It's\""""


def test_a_tree_is_read_line_by_line() -> None:
    nodes = read(TREE)
    assert [(n.bid, n.role, n.name, n.depth) for n in nodes] == [
        ("", "RootWebArea", "Shop", 0),
        ("13", "button", "It's", 1),
        ("a14", "textbox", "Name", 1),
        ("", "StaticText", "Ann", 2),
        ("15", "spinbutton", "", 1),
        ("16", "button", "It's", 1),
    ]
    assert (nodes[1].center, nodes[2].value, nodes[4].value, nodes[3].value) == ((110.0, 254.0), "Ann 'B'", "4", "")


def test_elements_are_found_by_role_and_name() -> None:
    assert [node.bid for n in (0, 1, -1) if (node := find(TREE, "button", "It's", nth=n))] == ["13", "16", "16"]
    assert find(TREE, "StaticText", "Ann") is None and find(TREE, "button", "It's", nth=2) is None


@pytest.mark.parametrize("opening", ["noop(", "noop(' ", "noop(\\' ", "```\nnoop(noop(\n```\n"])
def test_an_answer_of_openings_without_an_end_comes_to_an_end(opening: str) -> None:
    normalise(opening * 40_000, NAMES)  # took its square: half an hour


@pytest.mark.parametrize(
    "address", ["file:///etc/hosts", " FILE:///x", "fi\nle:///x", "javascript:1", "data:text/html,x", "Data:,x", "blob:null/1"]
)
def test_a_page_of_the_agents_own_and_a_file_of_this_machine_are_not_opened(address: str) -> None:
    with pytest.raises(ValueError, match="cannot be opened"):
        check_call(f"goto({address!r})")


def test_other_addresses_are_opened() -> None:
    for address in ("http://a.example/data:x", "about:blank", "a.example"):
        check_call(f"goto({address!r})")


@pytest.mark.parametrize("call", ["mouse_click(1e39, 5)", "mouse_move(3, -1e300)", "scroll(delta_x=0, delta_y=1e7)"])
def test_a_place_that_no_browser_can_reach_is_an_error_of_the_action(call: str) -> None:
    with pytest.raises(ValueError, match="numbers go up to 1000000"):
        check_call(call)


def test_typing_for_longer_than_the_limit_is_an_error_of_the_action() -> None:
    check_call(f"keyboard_type({'x' * 2000!r})")
    check_call(f"fill('1', {'x' * 2001!r})")
    check_call("mouse_click(-5, 1e6)")
    with pytest.raises(ValueError, match="2000 characters at most"):
        check_call(f"keyboard_type({'x' * 2001!r})")
