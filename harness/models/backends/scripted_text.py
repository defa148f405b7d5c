"""What a scripted model says where no action is wanted: short, parseable, the same for the same request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Call
from harness.models.backends.scripted_roles import role_answer
from harness.models.backends.scripted_sepm import sepm_answer
from harness.models.tokens import estimate_messages

LONGEST_SUMMARY = 12  # lines


def utility_answer(call: Call, digest: str) -> str:
    """An answer for a rating, ranking, judging, insight or summary role, or an instance of the call's JSON schema."""
    if call.schema is not None:
        import json

        return json.dumps(instance_of(call.schema, digest), sort_keys=True)
    for answer in (role_answer(call, digest), sepm_answer(call)):
        if answer is not None:
            return answer
    purpose = call.role.rsplit(".", 1)[-1]
    if any(word in purpose for word in ("rate", "rating", "importance", "relevance")):
        return f"Score: {int(digest[:8], 16) % 10 + 1}"
    if "rank" in purpose:
        return "1 > 2 > 3"
    if "judge" in purpose:
        return "Score: 1"
    if any(word in purpose for word in ("insight", "rule", "contrast", "finetune")):
        return "ADD: Look for the needed object before anything else, because every other step depends on it."
    return _summary(call)


def _summary(call: Call) -> str:
    """The actions that stand in the prompt as a numbered list, or one line about its length."""
    lines = [line[2:].strip() for m in call.messages for line in m["content"].splitlines() if line.startswith("> ")]
    if not lines:
        return f"Nothing to add to a prompt of about {estimate_messages(call.messages)} tokens."
    return "\n".join(f"{n}. {line}" for n, line in enumerate(lines[-LONGEST_SUMMARY:], 1))


def instance_of(schema: Mapping[str, Any], digest: str) -> Any:
    """A small value that fits `schema` (the common subset of JSON schema), chosen by `digest`."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][int(digest[:8], 16) % len(schema["enum"])]
    for choice in ("anyOf", "oneOf"):
        if schema.get(choice):
            return instance_of(schema[choice][0], digest)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: instance_of(properties.get(name, {}), digest) for name in schema.get("required", list(properties))}
    if kind == "array":
        return [instance_of(schema.get("items", {}), digest) for _ in range(schema.get("minItems", 0))]
    if kind in ("number", "integer"):
        low = schema.get("minimum", 0)
        return low if kind == "integer" else float(schema.get("maximum", low))
    if kind == "boolean":
        return True
    return None if kind == "null" else "scripted".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
