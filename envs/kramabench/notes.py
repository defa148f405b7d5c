"""What is known to be doubtful in KramaBench's golds. They are flagged in results and never changed."""

from __future__ import annotations

from types import MappingProxyType

DUBIOUS = MappingProxyType(
    {
        "archeology-easy-8": "gold in doubt",
        "archeology-hard-12": "gold in doubt",
        "environment-easy-3": "gold in doubt",
        "legal-hard-1": "gold in doubt",
        "legal-hard-2": "gold in doubt",
        "legal-hard-15": "gold in doubt",
        "environment-hard-12": "declared numeric_exact, the gold is a text; graded as text",
        "environment-hard-20": "declared string_exact, the gold is a list; graded as a list",
    }
)
