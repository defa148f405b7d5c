"""The map: places, search, and routes along straight lines; with OpenStreetMap's addresses and form fields."""

from __future__ import annotations

import math

from flask import Blueprint, abort, render_template, request
from flask.typing import ResponseReturnValue

from envs.webarena_local.site.app import world
from envs.webarena_local.site.world import Place

pages = Blueprint("map", __name__)
# engine → (what it is called, km/h)
ENGINES = {
    "fossgis_osrm_car": ("Car (OSRM)", 60.0),
    "fossgis_osrm_bike": ("Bicycle (OSRM)", 15.0),
    "fossgis_osrm_foot": ("Foot (OSRM)", 5.0),
}


@pages.get("/")
def home() -> ResponseReturnValue:
    return render_template("map/home.html", title="OpenStreetMap")


@pages.get("/search")
def search() -> ResponseReturnValue:
    text = request.args.get("query", "")
    return render_template("map/search.html", title="Search Results", text=text, places=world().places_with(text))


@pages.get("/node/<int:number>")
def node(number: int) -> ResponseReturnValue:
    place = next((place for place in world().places if place.id == number), None) or abort(404)
    return render_template("map/place.html", title=place.name, place=place)


@pages.get("/directions")
def directions() -> ResponseReturnValue:
    engine = request.args.get("engine", "fossgis_osrm_car")
    if engine not in ENGINES:
        engine = "fossgis_osrm_car"
    names = request.args.get("route_from", ""), request.args.get("route_to", "")
    start, end = (world().place(name) if name.strip() else None for name in names)
    found = _route(start, end, ENGINES[engine][1]) if start and end else None
    problem = "Couldn't locate the places." if all(names) and found is None else ""
    return render_template(
        "map/directions.html", title="Directions", engines=ENGINES, engine=engine, names=names, route=found, problem=problem
    )


def _route(start: Place, end: Place, speed: float) -> dict[str, str]:
    """Distance and time of a straight way at `speed` km/h."""
    distance = math.hypot(end.x - start.x, end.y - start.y)
    minutes = round(60 * distance / speed)
    return {"start": start.name, "end": end.name, "distance": f"{distance:.1f}km", "time": f"{minutes // 60}:{minutes % 60:02d}"}
