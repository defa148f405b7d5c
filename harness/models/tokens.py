"""Token counts where nobody reports them: four characters are taken for a token. Such counts carry the source `estimate`."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Message

CHARACTERS_PER_TOKEN = 4


def estimate_text(text: str) -> int:
    """Estimated tokens of `text`, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimate_messages(messages: Sequence[Message]) -> int:
    """Estimated tokens of a prompt, rounded up."""
    return -(-sum(len(m["content"]) for m in messages) // CHARACTERS_PER_TOKEN)


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """`text` up to the first stop string, for endpoints that reject `stop` (METHODS.md 1.1).

    Leading blank lines are skipped where a newline is among the stops: with stop ["\\n"] the first non-empty line remains.
    The cut is harmless where the endpoint has stopped by itself.
    """
    if not stop:
        return text
    if any(s.startswith("\n") for s in stop):
        text = text.lstrip("\r\n") if "\n" not in stop else _skip_blank_lines(text)
    cuts = [at for s in stop if s and (at := text.find(s)) >= 0]
    return text[: min(cuts)] if cuts else text


def _skip_blank_lines(text: str) -> str:
    while text:
        line, newline, rest = text.partition("\n")
        if line.strip() or not newline:
            return text
        text = rest
    return text
