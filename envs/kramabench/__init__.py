"""KramaBench: 104 questions over data lakes of six domains, answered by running Python in a sandbox."""

from envs.kramabench.grading import grade

__all__ = ["grade"]
