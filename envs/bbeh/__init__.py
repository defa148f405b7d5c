"""BBEH-mini: 460 single-answer reasoning questions of 23 kinds (BIG-Bench Extra Hard)."""

from envs.bbeh.grading import grade

__all__ = ["grade"]
