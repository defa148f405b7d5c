from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envs.alfworld.actions import normalise, to_command

ADMISSIBLE_NEW = ["go to desk 1", "move mug 1 to desk 1", "look"]
ADMISSIBLE_OLD = ["go to desk 1", "put mug 1 in/on desk 1", "look"]


def test_normalise_keeps_the_first_line_without_markers() -> None:
    assert normalise("  > go to <desk 1>\nYou arrive") == "go to desk 1"
    assert normalise("OK. take mug 1 from desk 1 OK") == "take mug 1 from desk 1"
    assert normalise("go to desk 1.") == "go to desk 1."
    assert normalise("think: OK, where is the mug?") == "think: OK, where is the mug?"
    assert normalise(" \n ") == normalise("OK.\nlook") == normalise("<>") == ""


@given(st.text() | st.text(alphabet="OK. <>\n\r\x0b\x1f\u2028a"))
def test_normalise_is_idempotent_and_gives_one_clean_line(text: str) -> None:
    action = normalise(text)
    assert normalise(action) == action
    assert action == action.strip() and len(action.splitlines()) <= 1
    assert not set(action) & set("<>") and not {"OK", "OK."} & set(action.split())


def test_either_grammar_becomes_what_the_game_admits() -> None:
    for said in ("move mug 1 to desk 1", "put mug 1 in/on desk 1", "put mug 1 in desk 1", "put mug 1 on desk 1"):
        assert to_command(said, ADMISSIBLE_NEW) == "move mug 1 to desk 1"
        assert to_command(said, ADMISSIBLE_OLD) == "put mug 1 in/on desk 1"


@given(st.text())
def test_what_is_not_admissible_in_any_grammar_is_left_as_it_is(text: str) -> None:
    assert to_command(text, ADMISSIBLE_NEW) == text or to_command(text, ADMISSIBLE_NEW) in ADMISSIBLE_NEW
    assert to_command("put mug 2 in/on desk 1", ADMISSIBLE_NEW) == "put mug 2 in/on desk 1"
