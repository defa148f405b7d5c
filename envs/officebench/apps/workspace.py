"""What all apps share: where files lie, what an argument may be, and how an action fails."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKSPACE = "/testbed"
_NAME_BYTES = 200  # of a file name, below the usual 255 with room for an ending


class Refused(Exception):
    """An action that cannot be done as asked; its text is what the model sees."""


@dataclass(frozen=True)
class Workspace:
    """The folder that a task's files lie in. Models call it /testbed; relative paths start at the current folder."""

    root: Path

    def path(self, arguments: Mapping[str, Any], name: str) -> Path:
        """The path that an argument names. Raises Refused where it is no path."""
        given = text(arguments, name).strip()
        if not given or "\0" in given:
            raise Refused(f"{name} must be a path.")
        path = Path(given)
        if path.is_absolute() and path.is_relative_to(WORKSPACE):
            return self.root / path.relative_to(WORKSPACE)
        return Path(os.getcwd()) / path

    def existing(self, arguments: Mapping[str, Any], name: str) -> Path:
        """The file that an argument names. Raises Refused where there is none."""
        path = self._file(arguments, name)
        if not path.exists():
            raise Refused(f"The file {self.shown(path)} does not exist.")
        return path

    def new(self, arguments: Mapping[str, Any], name: str) -> Path:
        """A path to write to, with its folder made where it is missing. Raises Refused where something else has its name."""
        path = self._file(arguments, name)
        self.folder(path.parent)
        return path

    def _file(self, arguments: Mapping[str, Any], name: str) -> Path:
        path = self.path(arguments, name)
        if path.is_dir():
            raise Refused(f"{self.shown(path)} is a folder, not a file.")
        if path.exists() and not path.is_file():  # reading a device or a pipe may never end
            raise Refused(f"{self.shown(path)} is no ordinary file.")
        return path

    def folder(self, *parts: str | Path) -> Path:
        """A folder of the workspace, made where it is missing. Raises Refused where a file has its name."""
        path = self.root.joinpath(*parts)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"The folder {self.shown(path)} cannot be made: {error.strerror}.") from error
        return path

    def shown(self, path: Path) -> str:
        """How a path is called towards the model."""
        return f"{WORKSPACE}/{path.relative_to(self.root)}" if path.is_relative_to(self.root) else str(path)


def text(arguments: Mapping[str, Any], name: str) -> str:
    """An argument as text; a list becomes lines. Raises Refused where it is None or a mapping."""
    value = arguments[name]
    if isinstance(value, list | tuple) and not any(isinstance(part, list | tuple | dict) or part is None for part in value):
        return "\n".join(str(part) for part in value)
    if value is None or isinstance(value, list | tuple | dict):
        raise Refused(f"{name} must be text, not {'nothing' if value is None else 'a nested value'}.")
    return str(value)


def one_user(arguments: Mapping[str, Any], name: str) -> str:
    """The name of one user; of an address, what stands before the @. Raises Refused for lists and for names with a slash."""
    if isinstance(arguments[name], list | tuple):
        raise Refused(f"{name} must be a single name; do it for one after the other.")
    user = text(arguments, name).strip().split("@")[0].strip()
    if not user or user in (".", "..") or "/" in user or "\0" in user or "\n" in user:
        raise Refused(f"{name} must be a user's name, without slashes.")
    if len(user.encode()) > _NAME_BYTES:
        raise Refused(f"{name} is too long for a user's name.")
    return user


def file_name(title: str) -> str:
    """`title` as a file's name: slashes become underscores, and what is too long for a file system is cut."""
    name = title.replace("/", "_").replace("\0", "_")
    return name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")
