"""What a host, a memory method, an environment and the models promise each other.

A *stream* plays an ordered sequence of tasks under one cell (host, memory method, environment, models, seed). The
environment opens a *session* per attempt; the host owns the orchestration of the team inside it; the memory is called
at four hooks, inside the stream's transaction; the models are the only way to a language model. A host does not know
which memory it runs with, a memory does not know which host calls it.
"""

from harness.contracts.environments import ActionMode, Environment, Guided, Idle, Judged, Probed, Problem, Session, Unrepeatable
from harness.contracts.hosts import Host, TaskInfo, TaskSession, TeamMemory
from harness.contracts.memory import (
    Guidance,
    Inspectable,
    Member,
    Memory,
    MemoryServices,
    Note,
    Rehearse,
    Review,
    TrajectoryCard,
    unnoted,
)
from harness.contracts.models import MODEL_KEYS, Call, LocalEmbedder, Message, ModelKey, Models, Phase, Reply, Usage, UsageSource
from harness.contracts.tasks import (
    TIER_ARTIFACT,
    TIER_ENVIRONMENT,
    TIER_INFERENCE,
    TIER_TOOL,
    Evidence,
    Outcome,
    StepResult,
    Task,
    TaskStatus,
    Trajectory,
    Turn,
)

__all__ = [
    "MODEL_KEYS",
    "TIER_ARTIFACT",
    "TIER_ENVIRONMENT",
    "TIER_INFERENCE",
    "TIER_TOOL",
    "ActionMode",
    "Call",
    "Environment",
    "Evidence",
    "Guidance",
    "Guided",
    "Host",
    "Idle",
    "Inspectable",
    "Judged",
    "LocalEmbedder",
    "Member",
    "Memory",
    "MemoryServices",
    "Message",
    "ModelKey",
    "Models",
    "Note",
    "Outcome",
    "Phase",
    "Probed",
    "Problem",
    "Rehearse",
    "Reply",
    "Review",
    "Session",
    "StepResult",
    "Task",
    "TaskInfo",
    "TaskSession",
    "TaskStatus",
    "TeamMemory",
    "Trajectory",
    "TrajectoryCard",
    "Turn",
    "Unrepeatable",
    "Usage",
    "UsageSource",
    "unnoted",
]
