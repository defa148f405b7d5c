"""Rooms to play in: which receptacles and objects there are, where they may lie, and one random room for a goal.

Our own tables of household sense, written for the six task families; names of things are ALFRED's, so that the domain file,
the goal sentences and a memory filled on one kind of game fit the other. Everything is drawn from generators that the caller
names, in an order that depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"})
LAMP = "DeskLamp"

# room → (receptacle, fewest, most)
ROOMS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "kitchen": (
        ("Cabinet", 3, 6),
        ("CoffeeMachine", 1, 1),
        ("CounterTop", 1, 3),
        ("DiningTable", 0, 1),
        ("Drawer", 2, 4),
        ("Fridge", 1, 1),
        ("GarbageCan", 1, 1),
        ("Microwave", 1, 1),
        ("Shelf", 0, 3),
        ("SinkBasin", 1, 1),
        ("StoveBurner", 2, 4),
        ("Toaster", 1, 1),
    ),
    "bedroom": (
        ("ArmChair", 0, 1),
        ("Bed", 1, 1),
        ("Desk", 1, 2),
        ("Drawer", 2, 5),
        ("Dresser", 0, 1),
        ("GarbageCan", 1, 1),
        ("LaundryHamper", 0, 1),
        ("Safe", 0, 1),
        ("Shelf", 2, 5),
        ("SideTable", 1, 2),
    ),
    "livingroom": (
        ("ArmChair", 1, 2),
        ("Cabinet", 0, 3),
        ("CoffeeTable", 1, 1),
        ("Desk", 1, 1),
        ("Drawer", 1, 4),
        ("Dresser", 0, 1),
        ("GarbageCan", 1, 1),
        ("Safe", 0, 1),
        ("Shelf", 1, 4),
        ("SideTable", 1, 2),
        ("Sofa", 1, 1),
    ),
    "bathroom": (
        ("BathtubBasin", 0, 1),
        ("Cabinet", 2, 4),
        ("CounterTop", 1, 2),
        ("Drawer", 0, 3),
        ("GarbageCan", 1, 1),
        ("HandTowelHolder", 1, 2),
        ("Shelf", 0, 2),
        ("SinkBasin", 1, 2),
        ("Toilet", 1, 1),
        ("ToiletPaperHanger", 1, 1),
        ("TowelHolder", 1, 1),
    ),
}

_WORKTOPS = ("CounterTop", "DiningTable", "SinkBasin")
_FURNITURE = ("Bed", "CoffeeTable", "Desk", "Dresser", "Drawer", "Shelf", "SideTable", "Sofa")
_WASHROOM = ("Cabinet", "CounterTop", "Drawer", "GarbageCan", "Shelf", "SinkBasin", "Toilet")
_LIVING = ("bedroom", "livingroom")

# (objects, rooms, receptacles that take them)
_PLACEMENT: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("Apple", "Bread", "Egg", "Potato", "Tomato"), ("kitchen",), (*_WORKTOPS, "Fridge", "GarbageCan", "Microwave")),
    (("Lettuce",), ("kitchen",), (*_WORKTOPS, "Fridge", "GarbageCan")),
    (("Mug",), ("kitchen",), (*_WORKTOPS, "Cabinet", "CoffeeMachine", "Fridge", "Microwave", "Shelf")),
    (("Bowl", "Cup", "Plate"), ("kitchen",), (*_WORKTOPS, "Cabinet", "Fridge", "Microwave", "Shelf")),
    (("Kettle", "Pan", "Pot"), ("kitchen",), (*_WORKTOPS, "Cabinet", "StoveBurner")),
    (("ButterKnife", "Fork", "Knife", "Ladle", "Spatula", "Spoon"), ("kitchen",), (*_WORKTOPS, "Drawer")),
    (("PepperShaker", "SaltShaker"), ("kitchen",), ("Cabinet", "CounterTop", "DiningTable", "Drawer", "Shelf")),
    (("DishSponge",), ("kitchen",), ("Cabinet", "CounterTop", "Drawer", "GarbageCan", "SinkBasin")),
    (("WineBottle",), ("kitchen",), ("Cabinet", "CounterTop", "DiningTable", "Fridge", "GarbageCan")),
    (("Book", "Laptop"), _LIVING, _FURNITURE),
    (("CellPhone", "CreditCard", "KeyChain", "Watch"), _LIVING, (*_FURNITURE, "ArmChair", "Safe")),
    (("CD", "Pen", "Pencil"), _LIVING, ("CoffeeTable", "Desk", "Drawer", "Dresser", "GarbageCan", "Safe", "Shelf", "SideTable")),
    (("AlarmClock",), ("bedroom",), ("Desk", "Dresser", "Shelf", "SideTable")),
    (("Pillow",), _LIVING, ("ArmChair", "Bed", "Sofa")),
    (("Newspaper", "RemoteControl"), ("livingroom",), ("ArmChair", "Cabinet", *_FURNITURE)),
    (("Statue", "Vase"), _LIVING, ("CoffeeTable", "Desk", "Dresser", "Safe", "Shelf", "SideTable")),
    (("Candle", "SoapBottle", "SprayBottle"), ("bathroom",), _WASHROOM),
    (("ToiletPaper",), ("bathroom",), ("Cabinet", "CounterTop", "Drawer", "Toilet", "ToiletPaperHanger")),
    (("Cloth", "SoapBar"), ("bathroom",), (*_WASHROOM, "BathtubBasin")),
    (("HandTowel",), ("bathroom",), ("HandTowelHolder",)),
)
ROOMS_OF = {thing: rooms for things, rooms, _ in _PLACEMENT for thing in things}
PLACES_OF = {thing: places for things, _, places in _PLACEMENT for thing in things}

CLEANABLE = frozenset(
    {
        "Apple",
        "Bowl",
        "ButterKnife",
        "Cloth",
        "Cup",
        "DishSponge",
        "Egg",
        "Fork",
        "Kettle",
        "Knife",
        "Ladle",
        "Lettuce",
        "Mug",
        "Pan",
        "Plate",
        "Pot",
        "Potato",
        "SoapBar",
        "Spatula",
        "Spoon",
        "Tomato",
    }
)
HEATABLE = frozenset({"Apple", "Bread", "Cup", "Egg", "Mug", "Plate", "Potato", "Tomato"})
COOLABLE = frozenset(
    {"Apple", "Bowl", "Bread", "Cup", "Egg", "Lettuce", "Mug", "Pan", "Plate", "Pot", "Potato", "Tomato", "WineBottle"}
)
SLICEABLE = frozenset({"Apple", "Bread", "Egg", "Lettuce", "Potato", "Tomato"})

# family → (what may be treated so, where it is treated); families without treatment are not listed
TREATMENTS: dict[str, tuple[frozenset[str], str]] = {
    "pick_clean_then_place_in_recep": (CLEANABLE, "SinkBasin"),
    "pick_heat_then_place_in_recep": (HEATABLE, "Microwave"),
    "pick_cool_then_place_in_recep": (COOLABLE, "Fridge"),
}
LOOK, TWO = "look_at_obj_in_light", "pick_two_obj_and_place"


@dataclass(frozen=True, order=True)
class Goal:
    """What is asked: `thing` into `target` (a receptacle; for LOOK the lamp) in a `room` of this kind."""

    family: str
    room: str
    thing: str
    target: str


@dataclass(frozen=True)
class Item:
    """A receptacle or an object: `kind` with the `number` that players see; an object lies at `place`, a receptacle's index."""

    kind: str
    number: int
    place: int = -1

    @property
    def name(self) -> str:
        return f"{self.kind.lower()} {self.number}"


@dataclass(frozen=True)
class World:
    """One room. `wanted` are indices of `things`, in the order in which the walkthrough takes them; `target` and `tool` are
    indices of `receptacles` (for LOOK the target is where the lamp stands; `tool` is -1 for families without treatment)."""

    goal: Goal
    receptacles: tuple[Item, ...]
    things: tuple[Item, ...]
    wanted: tuple[int, ...]
    target: int
    tool: int


def goals_of(family: str) -> list[Goal]:
    """All goals of a family that the tables allow, in a fixed order."""
    treated, tool = TREATMENTS.get(family, (frozenset(PLACES_OF), ""))
    goals = []
    for thing in sorted(treated):
        for room in ROOMS_OF[thing]:
            here = [kind for kind, _, _ in ROOMS[room] if kind in PLACES_OF[thing]]
            if family == LOOK and room in _LIVING and thing != "Pillow":
                goals.append(Goal(family, room, thing, LAMP))
            elif family != LOOK and (not tool or any(kind == tool for kind, _, _ in ROOMS[room])):
                goals += [Goal(family, room, thing, kind) for kind in here if kind != tool and _homes(room, thing, {kind, tool})]
    return sorted(goals)


def _homes(room: str, thing: str, not_in: set[str]) -> list[str]:
    """Receptacles that are sure to be in a room, where `thing` may lie at the start."""
    return [kind for kind, fewest, _ in ROOMS[room] if fewest and kind in PLACES_OF[thing] and kind not in not_in]


def _furnish(goal: Goal, rng: Random) -> tuple[Item, ...]:
    counts = {kind: max(rng.randint(fewest, most), int(kind == goal.target)) for kind, fewest, most in ROOMS[goal.room]}
    return tuple(Item(kind, number) for kind, count in counts.items() for number in range(1, count + 1))


def _spots(receptacles: Sequence[Item], thing: str, not_in: set[str]) -> list[int]:
    return [i for i, item in enumerate(receptacles) if item.kind in PLACES_OF[thing] and item.kind not in not_in]


def _numbered(placed: list[tuple[str, int]], rng: Random) -> tuple[Item, ...]:
    """Objects with their numbers, drawn at random within each kind so that a number tells nothing."""
    numbers: dict[str, list[int]] = {}
    for kind in dict.fromkeys(kind for kind, _ in placed):
        numbers[kind] = list(range(1, 1 + sum(other == kind for other, _ in placed)))
        rng.shuffle(numbers[kind])
    return tuple(Item(kind, numbers[kind].pop(), place) for kind, place in placed)


def build(goal: Goal, room_rng: Random, trial_rng: Random) -> World:
    """A room for `goal`. `room_rng` decides what all trials of the goal share: furniture, where the wanted objects lie, where
    they go; `trial_rng` decides the rest: the other objects, their places, and the numbers."""
    tool_kind = TREATMENTS.get(goal.family, (frozenset(), ""))[1]
    receptacles = _furnish(goal, room_rng)
    if goal.family == LOOK:
        target = room_rng.choice([i for i, item in enumerate(receptacles) if item.kind in ("Desk", "SideTable")])
        homes = [i for i in _spots(receptacles, goal.thing, set()) if i != target]
    else:
        target = room_rng.choice([i for i, item in enumerate(receptacles) if item.kind == goal.target])
        homes = _spots(receptacles, goal.thing, {goal.target, tool_kind})
    tool = room_rng.choice([i for i, item in enumerate(receptacles) if item.kind == tool_kind]) if tool_kind else -1
    wanted = 2 if goal.family == TWO else 1
    placed = [(goal.thing, room_rng.choice(homes)) for _ in range(wanted)]
    if goal.family == LOOK:
        placed.append((LAMP, target))

    # one more of the same kind now and then, and a roomful of other things; the goal must not hold at the start
    placed += [(goal.thing, trial_rng.choice(homes)) for _ in range(trial_rng.randint(0, 1))]
    others = sorted(thing for thing, rooms in ROOMS_OF.items() if goal.room in rooms and thing != goal.thing)
    for thing in trial_rng.sample(others, min(len(others), trial_rng.randint(6, 10))):
        spots = _spots(receptacles, thing, set())
        placed += [(thing, trial_rng.choice(spots)) for _ in range(trial_rng.choice((1, 1, 1, 2)) if spots else 0)]
    return World(goal, receptacles, _numbered(placed, trial_rng), tuple(range(wanted)), target, tool)


_TREAT = {
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
}


def walkthrough(world: World) -> list[str]:
    """Commands that win the game, in the new grammar, built from where things are."""
    commands: list[str] = []
    opened: set[int] = set()

    def reach(index: int, *, inside: bool = True) -> str:
        place = world.receptacles[index]
        commands.append(f"go to {place.name}")
        if inside and place.kind in OPENABLE and index not in opened:
            opened.add(index)
            commands.append(f"open {place.name}")
        return place.name

    for index in world.wanted:
        thing = world.things[index]
        home = reach(thing.place)
        commands.append(f"take {thing.name} from {home}")
        if world.tool >= 0:
            tool = reach(world.tool, inside=False)
            commands.append(f"{_TREAT[world.goal.family]} {thing.name} with {tool}")
        place = reach(world.target, inside=world.goal.family != LOOK)
        if world.goal.family == LOOK:
            commands.append(f"use {next(item.name for item in world.things if item.kind == LAMP)}")
        else:
            commands.append(f"move {thing.name} to {place}")
    return commands
