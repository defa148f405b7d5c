"""Keeps secrets and the places of this machine out of what is given away.

Three things are looked for: the values of environment variables that hold keys (by the configuration's `api_key_env`, or by
their names), text that has the shape of a key, and the folders of this machine.
"""

from __future__ import annotations

import json
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
LONGEST_WORD = 15  # letters of one case: a longer value is a passphrase and no switch
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|DSN", re.IGNORECASE)
# what a field is called that holds nothing but a secret, whatever it looks like
_FIELD = (
    r"(?:x[-_])?(?:api[-_]?key|(?:proxy[-_])?authorization|(?:access|auth)[-_]?token|token|pass(?:word|wd)"
    r"|(?:client[-_])?secret|(?:set[-_])?cookie)"
)
_FIELD_NAME = re.compile(_FIELD, re.IGNORECASE)
_FIELD_IN_JSON = re.compile(rf'"{_FIELD}"\s*:', re.IGNORECASE)
# a part of a value that is matched in the group `secret`
_LONG = r"[A-Za-z0-9._~+/=-]"


@dataclass(frozen=True)
class Shape:
    """What a kind of secret looks like, by the providers' own documentation. Looked for only in a text that holds one of `signs`
    (lower case), which is much quicker than trying the pattern at every letter of a transcript."""

    kind: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


_SHAPES = (
    Shape(
        "a key",
        (
            "sk-",
            "pk-",
            "rk-",
            "ghp_",
            "gho_",
            "ghs_",
            "ghu_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "akia",
            "asia",
            "aiza",
            "hf_",
            "xox",
            "eyj",
        ),
        re.compile(
            r"\b(?P<secret>(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}|gh[opsur]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}"
            r"|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[0-9A-Za-z_-]{35}|hf_[A-Za-z0-9]{30,}|xox[abeprs]-[A-Za-z0-9-]{10,}"
            r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
        ),
    ),
    Shape(
        "a private key",
        ("private key-----",),
        re.compile(r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))", re.DOTALL),
    ),
    Shape(
        "a password in an address",
        ("://",),
        re.compile(r"://(?P<secret>[^\s/@:'\"<>]+:[^\s/@'\"<>]+)(?=@)"),
    ),
    Shape(
        "a key in a header",
        ("authorization", "api-key", "api_key", "apikey"),
        re.compile(
            r"\b(?:proxy-authorization|authorization|x-api-key|api[-_]?key)\b[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic)\s+)?"
            rf"(?P<secret>{_LONG}{{16,}})",
            re.IGNORECASE,
        ),
    ),
    Shape("a key in a header", ("bearer",), re.compile(rf"\bbearer\s+(?P<secret>{_LONG}{{20,}})", re.IGNORECASE)),
)

_SIGNS = tuple(sign for shape in _SHAPES for sign in shape.signs)


@dataclass(frozen=True)
class Redactor:
    """`values`: secret (as it is, and as JSON writes it) → the variable's name; `places`: folder → what stands in its stead."""

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
        return cls(_as_written(_without_words(values)), _folders(environment, places))

    @property
    def of_several_lines(self) -> list[str]:
        """The values that no line of a text holds by itself."""
        return [value for value in self.values if "\n" in value]

    def secrets_in(self, text: str) -> list[str]:
        """What is secret in `text`: each in a few words, without the secret."""
        found = [f"the value of {name}" for value, name in self.values.items() if value in text]
        found += [f"text that looks like {shape.kind}" for shape in _signs_in(text) if shape.pattern.search(text)]
        return list(dict.fromkeys(found))

    def names_places(self, text: str) -> bool:
        return any(place in text for place in self.places) and self._folder.search(text) is not None

    def masked(self, text: str) -> str:
        """`text` without secrets and without folders of this machine."""
        for value in sorted(self.values, key=len, reverse=True):
            text = text.replace(value, f"[removed: {self.values[value]}]")
        for shape in _signs_in(text):
            text = shape.pattern.sub(lambda match, shape=shape: _without(match, shape.kind), text)  # type: ignore[misc]
        if any(place in text for place in self.places):
            text = self._folder.sub(lambda match: self.places[match.group()], text)
        return text

    def may_matter(self, line: str) -> bool:
        """Whether a line of JSON may hold something to be masked: a quick look that spares most lines the slow one."""
        lowered = line.lower()
        return (
            any(sign in lowered for sign in _SIGNS)
            or _FIELD_IN_JSON.search(line) is not None
            or any(value in line for value in self.values)
            or any(place in line for place in self.places)
        )

    def masked_tree(self, value: Any) -> Any:
        """Plain data with every text in it masked, keys included."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {
                self.masked(str(key)): f"[removed: {key}]" if holds_secret(str(key), item) else self.masked_tree(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.masked_tree(item) for item in value]
        return value

    @cached_property
    def _folder(self) -> re.Pattern[str]:
        longest = sorted(self.places, key=len, reverse=True)
        return re.compile(rf"(?<![\w.-])(?:{'|'.join(re.escape(place) for place in longest)})(?![\w.-])")


def holds_mask(text: str) -> bool:
    """Whether something was taken out of this text by `Redactor.masked`."""
    return "[removed: " in text or any(
        name in text for name in ("<runs>", "<here>", "<python>", "<data>", "<home>", "<memarena>")
    )


def holds_secret(name: str, value: Any) -> bool:
    """Whether a field of this name with this value is a secret by its name alone."""
    return isinstance(value, str) and value != "" and _FIELD_NAME.fullmatch(name) is not None


def _signs_in(text: str) -> list[Shape]:
    lowered = text.lower()
    return [shape for shape in _SHAPES if any(sign in lowered for sign in shape.signs)]


def _without(match: re.Match[str], kind: str) -> str:
    whole, start, end = match.group(), match.start("secret") - match.start(), match.end("secret") - match.start()
    return f"{whole[:start]}[removed: {kind}]{whole[end:]}"


def _without_words(values: dict[str, str]) -> dict[str, str]:
    """Values that are switches or files rather than secrets ("disabled", a number) would tear ordinary text apart."""
    plain = re.compile(rf"[a-z]{{1,{LONGEST_WORD}}}|[A-Z]{{1,{LONGEST_WORD}}}|\d{{1,8}}")
    return {value: name for value, name in values.items() if not plain.fullmatch(value) and not os.path.exists(value)}


def _as_written(values: Mapping[str, str]) -> dict[str, str]:
    """The values as they are, and as JSON writes them: once, and twice for JSON within JSON (a tool's arguments)."""
    found = dict(values)
    for value, name in values.items():
        for ascii_only in (False, True):
            written = value
            for _ in range(2):
                written = json.dumps(written, ensure_ascii=ascii_only)[1:-1]
                found.setdefault(written, name)
    return found


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
