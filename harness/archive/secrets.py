"""Keeps secrets and the places of this machine out of what is given away.

Three things are looked for: the values of environment variables that hold keys (by the configuration's `api_key_env`, or by
their names), text that has the shape of a key, and the folders of this machine.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.compose import conf_dir

LEAST_LENGTH = 8  # characters: a shorter value of a variable would be found in ordinary words
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|DSN", re.IGNORECASE)
# what providers' keys look like by their own documentation; `(?P<user>)` is the part of an address before the host
_SHAPES = re.compile(
    r"""
      (?P<key>
        \b(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}
      | \bgh[opsur]_[A-Za-z0-9]{30,} | \bgithub_pat_\w{30,} | \bglpat-[\w-]{20,}
      | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[0-9A-Za-z_-]{35} | \bhf_[A-Za-z0-9]{30,}
      | \bxox[abeprs]-[A-Za-z0-9-]{10,} | \beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}
      | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)
      )
    | (?<=://)(?P<user>[^\s/@:'"<>]+:[^\s/@'"<>]+)(?=@)
    | (?i:\b(?:proxy-authorization|authorization|x-api-key|api[-_]?key)\b["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?)
      (?P<header>[A-Za-z0-9._~+/=-]{16,})
    | (?i:\bbearer\s+)(?P<bearer>[A-Za-z0-9._~+/=-]{20,})
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"key": "a key", "user": "a password in an address", "header": "a key in a header", "bearer": "a key in a header"}


@dataclass(frozen=True)
class Redactor:
    """`values`: secret → the variable's name; `places`: folder → what stands in its stead."""

    values: Mapping[str, str]
    places: Mapping[str, str]

    @classmethod
    def of_this_machine(cls, key_variables: Iterable[str], *places: Path, environ: Mapping[str, str] | None = None) -> Redactor:
        """`key_variables` are the variables that a configuration names; `places` are folders beside the usual ones."""
        environment = os.environ if environ is None else environ
        named = set(key_variables)
        values = {}
        for name, value in environment.items():
            if value.strip() and (name in named or (len(value) >= LEAST_LENGTH and _SECRET_NAME.search(name))):
                values[value.strip()] = name
        return cls(_without_words(values), _folders(environment, places))

    def secrets_in(self, text: str) -> list[str]:
        """What is secret in `text`: each in a few words, without the secret."""
        found = [f"the value of {self.values[match.group()]}" for match in self._exact.finditer(text)] if self.values else []
        for match in _SHAPES.finditer(text):
            found.append(f"text that looks like {_KINDS[str(match.lastgroup)]}")
        return list(dict.fromkeys(found))

    def names_places(self, text: str) -> bool:
        return bool(self.places) and self._folder.search(text) is not None

    def masked(self, text: str) -> str:
        """`text` without secrets and without folders of this machine."""
        if self.values:
            text = self._exact.sub(lambda match: f"[removed: {self.values[match.group()]}]", text)
        text = _SHAPES.sub(_masked_shape, text)
        if self.places:
            text = self._folder.sub(lambda match: self.places[match.group()], text)
        return text

    def masked_tree(self, value: Any) -> Any:
        """Plain data with every text in it masked, keys included."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {self.masked(str(key)): self.masked_tree(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.masked_tree(item) for item in value]
        return value

    @cached_property
    def _exact(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(value) for value in sorted(self.values, key=len, reverse=True)))

    @cached_property
    def _folder(self) -> re.Pattern[str]:
        longest = sorted(self.places, key=len, reverse=True)
        return re.compile(rf"(?<![\w.-])(?:{'|'.join(re.escape(place) for place in longest)})(?![\w.-])")


def _masked_shape(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    start = match.start(kind) - match.start()
    return f"{match.group()[:start]}[removed: {_KINDS[kind]}]"


def _without_words(values: dict[str, str]) -> dict[str, str]:
    """Values that are switches or files rather than secrets ("disabled", a number) would tear ordinary text apart."""
    plain = re.compile(r"[a-z]+|[A-Z]+|\d{1,8}")
    return {value: name for value, name in values.items() if not plain.fullmatch(value) and not os.path.exists(value)}


def _folders(environment: Mapping[str, str], more: Iterable[Path]) -> dict[str, str]:
    """Folders of this machine and the names that replace them; the root of the file system and short ones are left alone."""
    known: dict[str, str] = {str(place.absolute()): "<runs>" for place in more}
    known[str(Path.cwd())] = "<here>"
    known[sys.prefix] = "<python>"
    if environment.get("HARNESS_DATA"):
        known[str(Path(environment["HARNESS_DATA"]).absolute())] = "<data>"
    if environment.get("HOME"):
        known[environment["HOME"].rstrip("/")] = "<home>"
    known[str(conf_dir().parent)] = "<memarena>"
    return {place: name for place, name in known.items() if place.startswith("/") and len(place) > 3}
