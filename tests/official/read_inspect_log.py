"""Run by an interpreter that has inspect-ai (`$INSPECT_PYTHON`): reads logs with Inspect's own reader and prints what it saw."""

from __future__ import annotations

import json
import sys

from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries  # type: ignore[import-not-found]

found = []
for path in sys.argv[1:]:
    log = read_eval_log(path)
    found.append(
        {
            "status": log.status,
            "task": log.eval.task,
            "model": log.eval.model,
            "mean": log.results.scores[0].metrics["mean"].value if log.results.scores[0].metrics else None,
            "usage": {name: usage.total_tokens for name, usage in log.stats.model_usage.items()},
            "cached": {name: usage.input_tokens_cache_read for name, usage in log.stats.model_usage.items()},
            "summaries": [str(item.id) for item in read_eval_log_sample_summaries(path)],
            "samples": [
                {
                    "id": sample.id,
                    "score": sample.scores["memarena"].value if sample.scores else None,
                    "events": [event.event for event in sample.events],
                    "roles": [message.role for message in sample.messages],
                    "tokens": sum(usage.total_tokens for usage in sample.model_usage.values()),
                    "error": sample.error.message if sample.error else None,
                    "retries": len(sample.error_retries or []),
                    "seconds": sample.total_time,
                }
                for sample in log.samples or []
            ],
        }
    )
print(json.dumps(found))
