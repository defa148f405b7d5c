"""A generated room as the files that ALFWorld's own loader reads: the PDDL problem, the game, the trajectory's header."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from envs.alfworld import generate_world as world_module
from envs.alfworld.engine import INSTALL
from envs.alfworld.generate_world import LAMP, OPENABLE, Goal, Item, World
from harness.errors import SetupError

# Object types that the domain's actions name must be declared whether or not the room has such things.
_NAMED_BY_DOMAIN = ("KnifeType", "ButterKnifeType")
_NAMED_PLACES = ("FridgeType", "MicrowaveType", "SinkBasinType")

_SENTENCES = {
    "pick_and_place_simple": ("put a {thing} in {target}", "put some {thing} on {target}"),
    "look_at_obj_in_light": ("look at {thing} under the {target}", "examine the {thing} with the {target}"),
    "pick_clean_then_place_in_recep": ("put a clean {thing} in {target}", "clean some {thing} and put it in {target}"),
    "pick_heat_then_place_in_recep": ("put a hot {thing} in {target}", "heat some {thing} and put it in {target}"),
    "pick_cool_then_place_in_recep": ("put a cool {thing} in {target}", "cool some {thing} and put it in {target}"),
    "pick_two_obj_and_place": ("put two {thing} in {target}", "find two {thing} and put them in {target}"),
}
_GOAL_STATES = {
    "pick_clean_then_place_in_recep": "(cleanable ?o) (isClean ?o)",
    "pick_heat_then_place_in_recep": "(heatable ?o) (isHot ?o)",
    "pick_cool_then_place_in_recep": "(coolable ?o) (isCool ?o)",
}


@dataclass(frozen=True)
class Domain:
    """ALFWorld's domain and grammar, from the installed package; `sha256` is over both."""

    pddl: str
    grammar: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(f"{self.pddl}\0{self.grammar}".encode()).hexdigest()

    @classmethod
    def load(cls) -> Domain:
        """Read the files without importing the package, whose import has side effects. Raises SetupError where it is missing."""
        spec = importlib.util.find_spec("alfworld")
        if spec is None or not spec.submodule_search_locations:
            raise SetupError(
                "The package alfworld is not installed; its domain files are needed to make games.", f"Run: {INSTALL}"
            )
        folder = Path(spec.submodule_search_locations[0]) / "data"
        return cls((folder / "alfred.pddl").read_text(encoding="utf-8"), (folder / "alfred.twl2").read_text(encoding="utf-8"))


def sentence(goal: Goal, rng: Random) -> str:
    """The goal in one of its two wordings."""
    return rng.choice(_SENTENCES[goal.family]).format(thing=goal.thing.lower(), target=goal.target.lower())


def _identifiers(items: tuple[Item, ...]) -> list[str]:
    """Ids from which ALFWorld's demangler makes just our numbers: it sorts the ids of a kind and counts *down*."""
    totals: dict[str, int] = {}
    for item in items:
        totals[item.kind] = totals.get(item.kind, 0) + 1
    ids = []
    for item in items:
        stem, basin, _ = item.kind.partition("Basin")
        ids.append(f"{stem}_bar_{totals[item.kind] - item.number + 1:02d}" + (f"_bar_{item.kind}" if basin else ""))
    return ids


def _goal_pddl(goal: Goal) -> str:
    thing, target = f"{goal.thing}Type", f"{goal.target}Type"
    if goal.family == world_module.LOOK:
        return (
            "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and"
            f" (objectType ?ot {target}) (toggleable ?ot) (isToggled ?ot)"
            " (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))"
            f" (exists (?o - object ?a - agent) (and (objectType ?o {thing}) (holds ?a ?o))))"
        )
    if goal.family == world_module.TWO:
        return (
            f"(exists (?r - receptacle ?o - object ?p - object) (and (receptacleType ?r {target})"
            f" (objectType ?o {thing}) (objectType ?p {thing}) (not (= ?o ?p)) (inReceptacle ?o ?r) (inReceptacle ?p ?r)))"
        )
    state = _GOAL_STATES.get(goal.family, "")
    return (
        f"(exists (?r - receptacle ?o - object) (and (receptacleType ?r {target})"
        f" (objectType ?o {thing}) {state} (inReceptacle ?o ?r)))"
    )


def _initial_facts(world: World, receptacles: list[str], things: list[str], locations: list[str]) -> Iterator[str]:
    kinds = sorted({item.kind for item in world.things})
    for kind in sorted({item.kind for item in world.receptacles}):
        yield from (f"(canContain {kind}Type {thing}Type)" for thing in kinds if kind in world_module.PLACES_OF.get(thing, ()))
    for item, name, location in zip(world.receptacles, receptacles, locations, strict=False):
        yield f"(receptacleType {name} {item.kind}Type)"
        yield f"(receptacleAtLocation {name} {location})"
        if item.kind in OPENABLE:
            yield f"(openable {name})"
    for item, name in zip(world.things, things, strict=True):
        yield f"(objectType {name} {item.kind}Type)"
        yield f"(inReceptacle {name} {receptacles[item.place]})"
        yield f"(objectAtLocation {name} {locations[item.place]})"
        yield f"({'toggleable' if item.kind == LAMP else 'pickupable'} {name})"
        for predicate in ("cleanable", "heatable", "coolable", "sliceable"):
            if item.kind in getattr(world_module, predicate.upper()):
                yield f"({predicate} {name})"
    yield f"(atLocation agent1 {locations[-1]})"


def problem(world: World, trial: str) -> str:
    """The room as a PDDL problem of ALFRED's domain. The agent starts at a place of its own, where there is no receptacle."""
    receptacles, things = _identifiers(world.receptacles), _identifiers(world.things)
    locations = [f"loc_bar_{i:02d}" for i in range(len(receptacles) + 1)]
    places = sorted({f"{item.kind}Type" for item in world.receptacles} | set(_NAMED_PLACES))
    kinds = sorted({f"{item.kind}Type" for item in world.things} | set(_NAMED_BY_DOMAIN))
    objects = ["agent1 - agent"]
    for names, sort in (
        (kinds, "otype"),
        (places, "rtype"),
        (things, "object"),
        (receptacles, "receptacle"),
        (locations, "location"),
    ):
        objects += [f"{name} - {sort}" for name in names]
    facts = _initial_facts(world, receptacles, things, locations)
    body = ["(:objects", *objects, ")", "(:init", *facts, ")", f"(:goal {_goal_pddl(world.goal)})"]
    return f"(define (problem plan_{trial})\n(:domain alfred)\n" + "\n".join(body) + "\n)\n"


def game_files(world: World, trial: str, said: str, domain: Domain) -> dict[str, bytes]:
    """File name → content of one game; the same world gives the same bytes."""
    goal = world.goal
    look = goal.family == world_module.LOOK
    game = {
        "pddl_domain": domain.pddl,
        "grammar": domain.grammar.replace("UNKNOWN GOAL", said),
        "pddl_problem": problem(world, trial),
        "solvable": True,
        "walkthrough": world_module.walkthrough(world),
    }
    header = {
        "task_type": goal.family,
        "task_id": trial,
        "pddl_params": {
            "object_target": goal.thing,
            "parent_target": "" if look else goal.target,
            "toggle_target": goal.target if look else "",
            "mrecep_target": "",
            "object_sliced": False,
        },
        "scene": {"room": goal.room},
        "turk_annotations": {"anns": [{"task_desc": said, "high_descs": []}]},
    }
    return {
        name: (json.dumps(content, indent=0) + "\n").encode()
        for name, content in (("game.tw-pddl", game), ("traj_data.json", header))
    }
