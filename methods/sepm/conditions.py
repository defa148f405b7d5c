"""Conditions on the state, as plans and procedures state them, and when an observed fact meets one.

A plan speaks of "mug" and "cabinet" where the environment reports "mug 1" and "cabinet 3": a name without a number stands for
any instance of its kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Key = tuple[str, str]  # entity, attribute

_INSTANCE = re.compile(r"\s*#?\d+$")


@dataclass(frozen=True)
class Condition:
    """`attribute` of `entity` has `value`; a value of None stands for any value."""

    entity: str
    attribute: str
    value: Any = None

    def plain(self) -> dict[str, Any]:
        return {"entity": self.entity, "attribute": self.attribute, "value": self.value}

    def text(self) -> str:
        return f"{self.entity}.{self.attribute}" + ("" if self.value is None else f"={plain_text(self.value)}")

    def met_by(self, key: Key, value: Any) -> bool:
        """Whether a fact (key, value) establishes this condition."""
        return self.about(key) and (self.value is None or value_matches(self.value, value))

    def about(self, key: Key) -> bool:
        """Whether a fact with this key says anything about the condition."""
        return self.attribute.casefold() == key[1].casefold() and entity_matches(self.entity, key[0])

    def bound(self, names: Mapping[str, str]) -> Condition:
        """With the words of `names` replaced (see `bind`)."""
        value = bind(self.value, names) if isinstance(self.value, str) else self.value
        return Condition(bind(self.entity, names), self.attribute, value)


def conditions_of(conditions: Iterable[Condition]) -> frozenset[tuple[str, str, str]]:
    """Conditions for comparison: without regard to their order and to case, "True" being true as in `value_matches`."""
    return frozenset(
        (c.entity.casefold(), c.attribute.casefold(), "" if c.value is None else f"={plain_text(c.value).casefold()}")
        for c in conditions
    )


def canonical(value: Any) -> str:
    """A value as canonical JSON: what makes two values equal (METHODS.md 4.4)."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


def plain_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)


def kind_of(entity: str) -> str:
    """An entity without the number of its instance: "mug 1" → "mug"."""
    return _INSTANCE.sub("", entity.strip())


def entity_matches(pattern: str, entity: str) -> bool:
    """Equal, or `pattern` names the kind of which `entity` is an instance; without regard to case."""
    wanted, given = pattern.strip().casefold(), entity.strip().casefold()
    return wanted == given or wanted == kind_of(given)


def value_matches(wanted: Any, given: Any) -> bool:
    """Equal as canonical JSON, or as text ("True" and true are what models write for each other), or as kind and instance."""
    if canonical(wanted) == canonical(given):
        return True
    if isinstance(given, str) and isinstance(wanted, str):
        return entity_matches(wanted, given)
    return plain_text(wanted).casefold() == plain_text(given).casefold()


def parse_conditions(given: Any) -> tuple[Condition, ...]:
    """The well-formed conditions of a model's list of {entity, attribute, value}; whatever else stands there is left out."""
    if not isinstance(given, list):
        return ()
    found = []
    for item in given[:20]:
        if not isinstance(item, dict):
            continue
        entity, attribute, value = item.get("entity"), item.get("attribute"), item.get("value")
        if isinstance(entity, str) and isinstance(attribute, str) and entity.strip() and attribute.strip():
            plain = isinstance(value, str | int | float | bool) or value is None
            found.append(Condition(entity.strip()[:80], attribute.strip()[:80], value if plain else canonical(value)))
    return tuple(dict.fromkeys(found))


def bind(text: str, names: Mapping[str, str]) -> str:
    """`text` with whole words replaced: abstract names of a procedure → the entities of a task."""
    if not names:
        return text
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"\b(?:{words})\b", lambda found: names[found[0]], text)


def binding(facts: Iterable[str]) -> dict[str, str]:
    """What the facts "kind=value" say a kind stands for, where they name one value only ("object=mug": object → mug)."""
    values: dict[str, set[str]] = {}
    for fact in facts:
        kind, separator, value = fact.partition("=")
        if separator and kind.isidentifier() and value:
            values.setdefault(kind, set()).add(value)
    return {kind: next(iter(found)) for kind, found in sorted(values.items()) if len(found) == 1}
