"""Reading an accessibility tree as BrowserGym writes it, for scripts that solve tasks.

[13] button 'Click Me!', center="(110,254)"      → Node("13", "button", "Click Me!", depth, line, …)
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_LINE = re.compile(r"""^(\t*)(?:\[(\w+)\] )?(\w+)(?: ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))?(.*)$""")
_VALUE = re.compile(r"""\bvalue=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,\s]+)""")
_CENTER = re.compile(r'center="\((-?[\d.]+),(-?[\d.]+)\)"')


@dataclass(frozen=True)
class Node:
    """A line of the tree. `bid` is empty where the element cannot be acted on; `rest` holds its properties."""

    bid: str
    role: str
    name: str
    depth: int
    rest: str

    @property
    def value(self) -> str:
        found = _VALUE.search(self.rest)
        if found is None:
            return ""
        return str(ast.literal_eval(found[1])) if found[1][0] in "'\"" else found[1]

    @property
    def center(self) -> tuple[float, float] | None:
        """Where the element is, in pixels of the page, if the tree says so."""
        found = _CENTER.search(self.rest)
        return (float(found[1]), float(found[2])) if found else None


def read(tree: str) -> list[Node]:
    """The nodes of a tree in order."""
    nodes = []
    for line in tree.splitlines():
        if found := _LINE.match(line):
            name = str(ast.literal_eval(found[4])) if found[4] else ""
            nodes.append(Node(found[2] or "", found[3], name, len(found[1]), found[5]))
    return nodes


def find(tree: str, role: str, name: str | None = None, *, nth: int = 0) -> Node | None:
    """The `nth` node of `role` (and `name`, compared without blanks around it) that can be acted on; None where there is none."""
    matching = [n for n in read(tree) if n.bid and n.role == role and (name is None or n.name.strip() == name.strip())]
    return matching[nth] if -len(matching) <= nth < len(matching) else None
