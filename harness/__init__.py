"""MemArena: does a memory make a team of LLM agents better, and at what cost?

The package imports nothing at import time; see `harness.contracts` for the types that a host, a memory method or an
environment is written against, and docs/ for the guides.
"""

__version__ = "0.1.0"
