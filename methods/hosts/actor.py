"""How an acting agent gets from its prompt to a proposal; shared by the hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.contracts import Call, Member, Message, Models, TaskSession, TeamMemory
from methods.hosts.prompt import assemble

Prompt = Callable[[str], tuple[Message, ...]]
Reading = Callable[[str], str]


@dataclass(frozen=True)
class Table:
    """What the agents of one task sit around: the session, the memory as the team sees it, the models, and the bounds that the
    host's configuration sets. `max_tokens` and `temperature` None: the endpoint's own."""

    session: TaskSession
    memory: TeamMemory
    models: Models
    max_attempts: int
    max_tokens: int | None = None
    temperature: float | None = None
    show_choices: bool = False


def propose(table: Table, role: str, instruction: str, member: Member, *, note: str = "", read: Reading | None = None) -> str:
    """The raw text of `member`'s next action from the common prompt; `note` is what the host adds to it for this action."""

    def prompt(memory_note: str) -> tuple[Message, ...]:
        notes = "\n".join(part for part in (note, memory_note) if part)
        episode = table.memory.episode(member, table.session.trajectory())
        return assemble(
            instruction,
            member,
            table.session,
            table.memory.guidance,
            notes,
            show_choices=table.show_choices,
            episode=episode,
        )

    return ask(table, role, member, prompt, read=read)


def ask(table: Table, role: str, member: Member, prompt: Prompt, *, read: Reading | None = None) -> str:
    """The raw text of `member`'s next action, the memory's own lines removed; `prompt` makes the messages from the memory's note.

    `read` takes what is the host's own out of a reply before the memory sees it; a reply then has more than one line.
    At most `max_attempts` calls while the model says nothing usable, then the environment's no-op (METHODS.md 1.1, HOST-AG
    R4: an empty answer can never loop for ever). A memory may block one reply per action; the agent is then asked once more.
    """
    session, memory = table.session, table.memory
    note = memory.before_action(member, session.steps)
    # with lines of the memory's or the host's own beside it, the action is not the only line
    one_line = session.action_mode == "line" and not memory.guidance.reply_header and read is None
    may_block, attempts = True, 0
    while attempts < table.max_attempts:
        attempts += 1
        text = table.models.complete(
            Call(
                role=role,
                messages=prompt(note),
                key="actor",
                phase="act",
                agent=member.name,
                max_tokens=table.max_tokens,
                temperature=table.temperature,
                stop=("\n",) if one_line else (),
                choices=session.choices,
            )
        ).text
        text = read(text) if read is not None else text
        if not text.strip():
            continue
        review = memory.review(member, session.steps, text)
        if not session.normalise(review.text):
            continue
        if review.blocked and may_block:
            may_block, attempts = False, attempts - 1
            note = "\n".join(part for part in (note, review.blocked) if part)
            continue
        return review.text
    return session.noop_action
