"""How an acting agent gets from its prompt to a proposal; shared by the hosts."""

from __future__ import annotations

from harness.contracts import Call, Member, Models, TaskSession, TeamMemory
from methods.hosts.prompt import assemble


def propose(
    role: str,
    instruction: str,
    member: Member,
    session: TaskSession,
    memory: TeamMemory,
    models: Models,
    *,
    max_attempts: int,
    max_tokens: int | None,
) -> str:
    """The raw text of `member`'s next action: at most `max_attempts` calls while the model says nothing usable, then the
    environment's no-op (METHODS.md 1.1, HOST-AG R4: an empty answer can never loop for ever).
    """
    note = memory.before_action(member, session.steps)
    messages = assemble(instruction, member, session, memory.guidance, note)
    call = Call(
        role=role,
        messages=messages,
        key="actor",
        phase="act",
        agent=member.name,
        max_tokens=max_tokens,
        stop=("\n",) if session.action_mode == "line" else (),
        choices=session.choices,
    )
    for _ in range(max_attempts):
        text = models.complete(call).text
        if session.normalise(text):
            return text
    return session.noop_action
