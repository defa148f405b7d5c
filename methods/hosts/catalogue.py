"""The hosts of this project: name → "module:class"."""

CATALOGUE: dict[str, str] = {"autogen": "methods.hosts.autogen:AutoGen", "single": "methods.hosts.single:SingleAgent"}
