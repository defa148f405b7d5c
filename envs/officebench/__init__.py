"""OfficeBench: 300 office tasks over one to three applications, graded by what the files look like afterwards."""

from envs.officebench.grading import grade

__all__ = ["grade"]
