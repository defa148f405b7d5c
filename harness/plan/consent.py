"""`run.confirm_above`: nothing that may cost more is begun without a yes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.cell import Cell
from harness.errors import UserError
from harness.models.prices import PriceBook
from harness.plan.prices import free

_HINT = "Say yes with --yes, raise run.confirm_above, or switch the question off with run.confirm_above=null."


def require_consent(cells: Sequence[Cell], *, yes: bool = False) -> None:
    """Ask where the cells together may cost more than `run.confirm_above`. Raises UserError for no, or if nobody can be asked.

    A cost that is not known is said and asks nothing: there is no figure to compare.
    """
    bounds = [cell.config.run.confirm_above for cell in cells]
    prices = PriceBook.load()
    bound = min((bound for bound in bounds if bound is not None), default=None)
    if bound is None or yes or all(free(cell, prices) for cell in cells):
        return
    # these read runs and load numpy and scipy: not for a stream that costs nothing
    from harness.plan.estimate import plan_cells
    from harness.plan.text import money, render
    from harness.report.text import dollars, plural

    found = plan_cells(cells)
    if unknown := found.unknown("usd"):
        print(f"The cost of {plural(unknown, 'cell')} is not known (`memarena plan` says why).", file=sys.stderr)
    if found.usd is None or found.usd[1] <= bound:
        return
    cost = f"This may cost {money(found.usd)}, more than run.confirm_above ({dollars(bound)})"
    if not sys.stdin.isatty():
        raise UserError(f"{cost}, and nobody can be asked here.", _HINT)
    print(render(found), file=sys.stderr)
    print(f"{cost}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("Nothing was begun, nothing was spent.", _HINT)
