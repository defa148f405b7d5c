"""MetaGPT's message pool: an environment that delivers what is published, and roles that watch for what concerns them (3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

EVERYBODY = "all"


@dataclass(frozen=True)
class Message:
    """`cause_by` is the action that brought it forth, `send_to` the names it is for ("all": everybody), `id` its number."""

    id: int
    content: str
    cause_by: str
    sent_from: str
    send_to: frozenset[str] = frozenset({EVERYBODY})


@dataclass
class RoleMemory:
    """What a role has taken note of, in order, with an index by the causing action."""

    storage: list[Message] = field(default_factory=list)
    index: dict[str, list[Message]] = field(default_factory=dict)

    def add(self, message: Message) -> None:
        self.storage.append(message)
        self.index.setdefault(message.cause_by, []).append(message)

    def get(self, last: int | None = None) -> list[Message]:
        """The `last` messages, all where None. (The published `get(k=0)` returns all as well, because -0 slices from the start;
        here 0 means none.)"""
        if last is None:
            return list(self.storage)
        return self.storage[-last:] if last > 0 else []

    def latest(self, cause_by: str) -> Message | None:
        """The latest message with that cause."""
        found = self.index.get(cause_by)
        return found[-1] if found else None


@dataclass
class Role:
    """A role with its private inbox: it wakes up for messages whose cause it watches or that are addressed to it."""

    name: str
    watch: frozenset[str]
    inbox: list[Message] = field(default_factory=list)
    memory: RoleMemory = field(default_factory=RoleMemory)

    def observe(self) -> list[Message]:
        """Drain the inbox; the news are what it watches or what is addressed to it by name and not in its memory yet."""
        known = {message.id for message in self.memory.storage}
        news = [
            message
            for message in self.inbox
            if message.id not in known and (message.cause_by in self.watch or self.name in message.send_to)
        ]
        self.inbox.clear()
        for message in news:
            self.memory.add(message)
        return news

    @property
    def idle(self) -> bool:
        """Whether nothing waits for it."""
        return not self.inbox


@dataclass
class Pool:
    """The shared environment. `history` keeps everything that was published."""

    roles: dict[str, Role] = field(default_factory=dict)
    history: list[Message] = field(default_factory=list)

    def enter(self, role: Role) -> Role:
        """Add a role; it hears what is published from now on, and what has been published to everybody."""
        self.roles[role.name] = role
        role.inbox.extend(message for message in self.history if EVERYBODY in message.send_to)
        return role

    def publish(self, content: str, cause_by: str, sent_from: str, send_to: Iterable[str] = (EVERYBODY,)) -> Message:
        """Deliver a message to the inbox of every role that it is for, its sender excepted."""
        message = Message(len(self.history) + 1, content, cause_by, sent_from, frozenset(send_to))
        self.history.append(message)
        for role in self.roles.values():
            if role.name != sent_from and (EVERYBODY in message.send_to or role.name in message.send_to):
                role.inbox.append(message)
        return message

    @property
    def idle(self) -> bool:
        return all(role.idle for role in self.roles.values())
