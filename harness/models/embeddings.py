"""The ledger row of an embedder that works in this process."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.contracts import LocalEmbedder, Phase
from harness.models.attempts import Place
from harness.models.ledger import IN_PROCESS, LedgerRow, LedgerSink

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def embed_locally(
    local: LocalEmbedder, role: str, texts: Sequence[str], phase: Phase, agent: str | None, place: Place, sink: LedgerSink
) -> NDArray[np.float64]:
    """Compute in this process and write the row: tokens by the embedder's tokenizer, a cost of 0 since nobody bills it."""
    started = time.perf_counter()
    vectors = local.embed(texts)
    latency = time.perf_counter() - started
    digest = hashlib.sha256(json.dumps(["embedding", local.name, *texts]).encode()).hexdigest()
    row = LedgerRow(
        position=place.position,
        task_index=place.task_index,
        task_id=place.task_id,
        step=place.step,
        role=role,
        agent=agent,
        phase=phase,
        key="embed",
        kind="embedding",
        endpoint=IN_PROCESS,
        model=local.name,
        attempt=1,
        ok=True,
        input_tokens=local.count(texts),
        cached_input_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
        usage_source="tokenizer",
        cost_usd=0.0,
        latency_s=latency,
        replayed=False,
        constrained=False,
        digest=digest,
        occurrence=sink.occurrences(digest),
        error=None,
    )
    sink.write(row, {"texts": list(texts)})
    return vectors
