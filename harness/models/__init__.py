"""The only way to a model: gateway, usage ledger, limits, retries, record/replay, price file, back-ends."""
