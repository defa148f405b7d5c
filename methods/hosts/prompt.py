"""The prompt that every host assembles, whatever the memory, so that conditions differ only in what the memory adds.

METHODS.md 1.4: the system message is the role's instruction and the environment's; the user message has, in this order, the
environment's examples, the team's past successes, numbered insights, and the task with the trajectory so far, ending in a
prompt marker. The sections of the common form are present even when they are empty; what only some memories have
(procedures, a brief, a note for the next action) is left out when empty. The growing part stands last, so that a
provider's prefix cache keeps the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Guidance, Member, Message, TaskSession, TrajectoryCard

EXAMPLES = "## Examples"
SUCCESSES = "## Past successes of the team"
INSIGHTS = "## Insights from past tasks"
PROCEDURES = "## Procedures"
BRIEF = "## Briefing"
TASK = "## Current task"
CHOICES = "Possible actions now"
MARKER = ">"


def assemble(
    instruction: str,
    member: Member,
    session: TaskSession,
    guidance: Guidance,
    note: str = "",
    *,
    show_choices: bool = False,
    episode: str | None = None,
) -> tuple[Message, ...]:
    """System and user message for `member`'s next action. `note` is what memory or team add for this action alone;
    `show_choices` lists the admissible actions, which the published comparison does not; `episode` is the text of the
    episode so far where a memory shortens it."""
    insights = guidance.insights_for(member.role)
    sections = [
        _section(EXAMPLES, session.few_shots),
        _section(SUCCESSES, [_card(card) for card in guidance.cards]),
        _section(INSIGHTS, [f"{number}. {text}" for number, text in enumerate(insights, 1)], "\n"),
    ]
    if guidance.procedures:
        sections.append(_section(PROCEDURES, guidance.procedures))
    if guidance.brief:
        sections.append(_section(BRIEF, [guidance.brief]))
    current = [session.trajectory().text() if episode is None else episode]
    if note:
        current.append(f"[Note: {note}]")
    if show_choices and session.choices:
        current.append(f"[{CHOICES}: {'; '.join(session.choices)}]")
    sections.append(f"{TASK}\n" + "\n".join([*current, MARKER]))
    rules = "\n\n".join(part for part in (instruction, session.instructions, guidance.reply_header) if part)
    system: Message = {"role": "system", "content": rules}
    user: Message = {"role": "user", "content": "\n\n".join(sections)}
    return system, user


def _section(heading: str, parts: Sequence[str], separator: str = "\n\n") -> str:
    return "\n".join([heading, separator.join(parts)]).rstrip()


def _card(card: TrajectoryCard) -> str:
    """A past episode; the line of key steps is left out where the memory has none (the published code prints "None")."""
    lines = [f"Task: {card.task}"]
    if card.key_steps:
        lines.append(f"Key steps: {card.key_steps}")
    return "\n".join([*lines, card.trajectory])
