"""Measurements of the harness's own cost: `make bench`. Nothing here is asserted; machines differ, so read the ratios."""
