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
    show_choices: bool,
) -> str:
    """The raw text of `member`'s next action, the memory's own lines removed.

    At most `max_attempts` calls while the model says nothing usable, then the environment's no-op (METHODS.md 1.1, HOST-AG
    R4: an empty answer can never loop for ever). A memory may block one reply per action; the agent is then asked once more.
    """
    note = memory.before_action(member, session.steps)
    may_block, attempts = True, 0
    while attempts < max_attempts:
        attempts += 1
        messages = assemble(instruction, member, session, memory.guidance, note, show_choices=show_choices)
        text = models.complete(
            Call(
                role=role,
                messages=messages,
                key="actor",
                phase="act",
                agent=member.name,
                max_tokens=max_tokens,
                # with lines of the memory's own before it, the action is not the first line
                stop=("\n",) if session.action_mode == "line" and not memory.guidance.reply_header else (),
                choices=session.choices,
            )
        ).text
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
