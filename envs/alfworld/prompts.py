"""The rules of the game and one short worked example a family, in our own words, in the grammar that the game's data speaks.

An example is about 150 tokens long, so that it fits beside a whole episode in a context of 2,000 tokens. It shows no `think:`
line: thinking costs a step, and a small model that sees it once does nothing else.
"""

from __future__ import annotations

from envs.alfworld.data import Grammar

_PUT_FORMS = {"move": "move <object> to <receptacle>", "put": "put <object> in/on <receptacle>"}

_INSTRUCTIONS = """\
You control a robot in a house through text commands. You can carry one object at a time.
Answer with exactly one command on one line and nothing else. The commands are:
go to <receptacle>
open <receptacle>
close <receptacle>
take <object> from <receptacle>
{put}
clean <object> with <sinkbasin>
heat <object> with <microwave>
cool <object> with <fridge>
use <lamp>
examine <object or receptacle>
look
inventory
Write every name with its number, as in "cabinet 2". Go to a receptacle before you use it, and open it if it is closed.
"Nothing happens." means that the command was not possible; try another one.
You may write "think: <your reasoning>" instead of a command, but it uses up one of your {max_steps} steps."""

# (goal, room, steps); a step is (command, feedback), and in a command "A => B" stands for putting A in or on B.
_Example = tuple[str, str, tuple[tuple[str, str], ...]]

_EXAMPLES: dict[str, _Example] = {
    "pick_and_place_simple": (
        "put some fork on countertop",
        "a countertop 1, a drawer 2, a drawer 1, and a garbagecan 1",
        (
            ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."),
            ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see a fork 1."),
            ("take fork 1 from drawer 1", "You pick up the fork 1 from the drawer 1."),
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a bread 1."),
            ("fork 1 => countertop 1", ""),
        ),
    ),
    "look_at_obj_in_light": (
        "look at pen under the desklamp",
        "a bed 1, a desk 1, a shelf 2, and a shelf 1",
        (
            ("go to shelf 2", "You arrive at shelf 2. On the shelf 2, you see a pen 1, and a statue 1."),
            ("take pen 1 from shelf 2", "You pick up the pen 1 from the shelf 2."),
            ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a desklamp 1."),
            ("use desklamp 1", "You turn on the desklamp 1."),
        ),
    ),
    "pick_clean_then_place_in_recep": (
        "put a clean ladle in drawer",
        "a countertop 1, a drawer 1, a fridge 1, and a sinkbasin 1",
        (
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a ladle 1."),
            ("take ladle 1 from countertop 1", "You pick up the ladle 1 from the countertop 1."),
            ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."),
            ("clean ladle 1 with sinkbasin 1", "You clean the ladle 1 using the sinkbasin 1."),
            ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."),
            ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see nothing."),
            ("ladle 1 => drawer 1", ""),
        ),
    ),
    "pick_heat_then_place_in_recep": (
        "heat some bread and put it in diningtable",
        "a cabinet 1, a countertop 1, a diningtable 1, and a microwave 1",
        (
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a bread 1, and a kettle 1."),
            ("take bread 1 from countertop 1", "You pick up the bread 1 from the countertop 1."),
            ("go to microwave 1", "You arrive at microwave 1. The microwave 1 is closed."),
            ("heat bread 1 with microwave 1", "You heat the bread 1 using the microwave 1."),
            ("go to diningtable 1", "You arrive at diningtable 1. On the diningtable 1, you see nothing."),
            ("bread 1 => diningtable 1", ""),
        ),
    ),
    "pick_cool_then_place_in_recep": (
        "put a cool plate in shelf",
        "a diningtable 1, a fridge 1, a shelf 1, and a sinkbasin 1",
        (
            ("go to diningtable 1", "You arrive at diningtable 1. On the diningtable 1, you see a plate 1."),
            ("take plate 1 from diningtable 1", "You pick up the plate 1 from the diningtable 1."),
            ("go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."),
            ("cool plate 1 with fridge 1", "You cool the plate 1 using the fridge 1."),
            ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a vase 1."),
            ("plate 1 => shelf 1", ""),
        ),
    ),
    "pick_two_obj_and_place": (
        "find two candle and put them in toilet",
        "a cabinet 1, a countertop 1, a sinkbasin 1, and a toilet 1",
        (
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a candle 2, and a candle 1."),
            ("take candle 2 from countertop 1", "You pick up the candle 2 from the countertop 1."),
            ("go to toilet 1", "You arrive at toilet 1. On the toilet 1, you see nothing."),
            ("candle 2 => toilet 1", ""),
            ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a candle 1."),
            ("take candle 1 from countertop 1", "You pick up the candle 1 from the countertop 1."),
            ("go to toilet 1", "You arrive at toilet 1. On the toilet 1, you see a candle 2."),
            ("candle 1 => toilet 1", ""),
        ),
    ),
}


def instructions(grammar: Grammar, max_steps: int) -> str:
    """The rules of the action format, for the system message."""
    return _INSTRUCTIONS.format(put=_PUT_FORMS[grammar], max_steps=max_steps)


def _put(thing: str, place: str, grammar: Grammar) -> tuple[str, str]:
    if grammar == "move":
        return f"move {thing} to {place}", f"You move the {thing} to the {place}."
    return f"put {thing} in/on {place}", f"You put the {thing} in/on the {place}."


def few_shots(family: str, grammar: Grammar, number: int) -> tuple[str, ...]:
    """`number` (0 or 1) worked examples of `family`, as an episode's text."""
    goal, room, steps = _EXAMPLES[family]
    lines = [f"You are in the middle of a room. Looking quickly around you, you see {room}.\n", f"Your task is to: {goal}."]
    for command, feedback in steps:
        thing, arrow, place = command.partition(" => ")
        said, heard = _put(thing, place, grammar) if arrow else (command, feedback)
        lines += [f"> {said}", heard]
    return ("\n".join(lines),)[:number]
