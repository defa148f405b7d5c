"""The applications as the session reaches them: a server in the sandbox, started when first needed and after a time-out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envs.officebench.apps import WORKSPACE
from harness.sandbox.base import Channel, ChannelClosed, ChannelTimeout, Sandbox, SandboxError

_START = 30.0  # seconds in which the server must answer for the first time


@dataclass(frozen=True)
class Answer:
    """What an application says; `ok` is False where the action failed."""

    text: str
    ok: bool


class Office:
    """The applications of one workspace. `server` is the command that starts them, `seconds` the limit of one action."""

    def __init__(self, sandbox: Sandbox, server: list[str], workspace: str, seconds: float) -> None:
        self._sandbox, self._server, self._workspace, self._seconds = sandbox, server, workspace, seconds
        self._channel: Channel | None = None
        self._started = False

    def run(self, app: str, action: str, arguments: Mapping[str, Any]) -> Answer:
        """Carry out one action. Raises SandboxError where the sandbox fails."""
        channel = self._channel or self._open()
        if channel is None:
            return Answer("The applications do not start any more after what was done here.", False)
        request = json.dumps({"app": app, "action": action, "arguments": dict(arguments)})
        try:
            found = json.loads(channel.ask(request, timeout=self._seconds))
            return Answer(str(found["observation"]), bool(found["ok"]))
        except ChannelTimeout:
            self._channel = None
            text = f"The action was stopped: it took longer than {self._seconds:g} s. The current folder is {WORKSPACE} again."
            return Answer(text, False)
        except (ChannelClosed, ValueError, KeyError, TypeError):
            self.close()
            return Answer("The application ended before it answered.", False)

    def _open(self) -> Channel | None:
        """A server that answers. Where the first one does not, it is the sandbox's fault, not that of an action (SandboxError);
        a later one in a sandbox that still works was kept from it by an action (None)."""
        channel = self._sandbox.channel(self._server, workdir=self._workspace, env={"HOME": "/tmp", "LANG": "C.UTF-8"})
        try:
            json.loads(
                channel.ask(json.dumps({"app": "shell", "action": "command", "arguments": {"command": "true"}}), timeout=_START)
            )
        except (ChannelTimeout, ChannelClosed, ValueError) as error:
            channel.close()
            if self._started and self._sandbox.run(["true"], timeout=_START).ok:
                return None
            raise SandboxError(f"The applications do not start in the sandbox: {error}.") from error
        self._channel, self._started = channel, True
        return channel

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
