"""Figures of runs: what is drawn is taken from a table's cells, reported and measured in panels of their own.

matplotlib (extra `paper`) is imported by the function that draws, never with the package.
"""
