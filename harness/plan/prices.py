"""Which prices a cell pays. Apart from the rest of the plan, since every `memarena run` looks here and should be quick."""

from __future__ import annotations

from harness.cell import Cell
from harness.models.prices import Price, PriceBook


def price_of(cell: Cell, prices: PriceBook, key: str) -> Price | None:
    models = cell.config.models
    name = models.endpoint_for(key) if key != "embed" else models.keys.get(key)
    return None if name is None else prices.find(models.endpoints[name].model)


def listed_prices(cell: Cell, prices: PriceBook) -> list[Price | None]:
    used = set(cell.config.models.keys.values())
    return [prices.find(cell.config.models.endpoints[name].model) for name in sorted(used)]


def free(cell: Cell, prices: PriceBook) -> bool:
    """Nothing can be billed: answers are replayed, or every endpoint is listed with the price 0."""
    if cell.config.run.replay.mode == "replay":
        return True
    return all(price is not None and price.input == price.output == 0 for price in listed_prices(cell, prices))
