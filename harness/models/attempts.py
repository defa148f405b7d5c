"""One call from the first attempt to the last: limits, replay, retries, and a ledger row for every attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.contracts import Reply, Usage
from harness.errors import (
    AgentError,
    ContentRefused,
    MemArenaError,
    ProviderError,
    ProviderTimeout,
    RateLimited,
)
from harness.limits import Limits
from harness.models.backends.base import Answer, Request, UnsupportedParameter
from harness.models.counters import Counters
from harness.models.endpoint import Endpoint, Prepared
from harness.models.intake import clean, take_in
from harness.models.ledger import LedgerRow
from harness.models.replay import Recorder, Recording
from harness.models.retry import give_up_message, is_transient, retrying
from harness.models.tokens import cut_at_stop
from harness.seeds import rng

Emit = Callable[[LedgerRow, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Place:
    """Where in the stream a call is made."""

    position: int
    task_index: int
    task_id: str
    step: int


@dataclass(frozen=True)
class Services:
    """What all calls of a gateway share."""

    limits: Limits
    replay: Recorder
    counters: Counters
    sleep: Callable[[float], None]


class CallRun:
    """The run of one prepared call; `emit` takes its ledger rows in the order of its attempts."""

    def __init__(
        self, endpoint: Endpoint, prepared: Prepared, occurrence: int, place: Place, services: Services, emit: Emit
    ) -> None:
        self.endpoint, self.prepared, self.occurrence, self.place = endpoint, prepared, occurrence, place
        self.services, self.emit = services, emit
        self.attempts = 0
        self._refused: Answer | None = None  # an answer that the content filter stopped; it was billed

    def run(self) -> Reply:
        """The reply. Raises what `harness.contracts.Models.complete` promises."""
        call, services = self.prepared.call, self.services
        with services.limits.reserve(self.prepared.estimate):
            found = services.replay.find(self.prepared.digest, self.occurrence, role=call.role, task_id=self.place.task_id)
            if found is not None:
                return self._replayed(found)
            try:
                answer = self._answer()
            except AgentError as error:
                # the model's own refusal is part of the result: it replays
                self._save(Recording.of_error(self.endpoint.config.model, error, self._refused))
                raise
            return self._reply(answer)

    # --- attempts -----------------------------------------------------------------------------------------------------------
    def _answer(self) -> Answer:
        started = time.monotonic()
        try:
            return self._attempt()
        except ProviderError as error:
            if not is_transient(error):
                raise
            failure = error
        return self._retry(failure, started)

    def _retry(self, failure: ProviderError, started: float) -> Answer:
        """Attempts after the first failed one, which is handed to the policy as attempt 1."""
        config, limits = self.endpoint.config, self.services.limits
        jitter = rng(self.endpoint.seed, "retry", self.prepared.digest, self.occurrence)
        pending: list[ProviderError] = [failure]

        def attempt() -> Answer:
            if pending:
                raise pending.pop()
            limits.check_time()
            return self._attempt()

        try:
            return retrying(config, jitter, limits.remaining_seconds, self.services.sleep)(attempt)
        except ProviderError as error:
            if not is_transient(error):
                raise
            waited = time.monotonic() - started
            raise give_up_message(error, self.endpoint.name, self.attempts, waited) from error

    def _attempt(self) -> Answer:
        """One attempt; repeated at once without a parameter that the endpoint turns out to reject."""
        while True:
            sent = self.endpoint.parameters_to_send(self.prepared, self.occurrence)
            try:
                return self._send(sent)
            except UnsupportedParameter as error:
                if error.parameter not in sent:
                    raise ProviderError(
                        f"Endpoint '{self.endpoint.name}' rejects the parameter '{error.parameter}', which was not sent.",
                        status=400,
                    ) from error
                self.endpoint.learn(error.parameter, error.instead)

    def _send(self, sent: Mapping[str, Any]) -> Answer:
        endpoint, prepared = self.endpoint, self.prepared
        embeds = prepared.kind == "embedding"
        self.attempts += 1
        with endpoint.limiter.slot() as slot_started:
            remaining = self.services.limits.remaining_seconds()
            timeout = endpoint.config.timeout_s if remaining is None else min(endpoint.config.timeout_s, remaining)
            request = Request(prepared.call, sent, prepared.constrained, timeout, self.place.step, prepared.digest)
            started = time.perf_counter()
            try:
                answer = (endpoint.backend.embed if embeds else endpoint.backend.complete)(request)
                answer = take_in(answer, prepared.call, constrained=prepared.constrained)
            except RateLimited as error:
                endpoint.limiter.throttled(slot_started)
                self._failed(error, sent, started)
                raise
            except (MemArenaError, UnsupportedParameter) as error:
                self._failed(error, sent, started)
                if isinstance(error, ProviderTimeout):
                    self.services.limits.check_time()  # the time-out was the limit's: say so
                raise
            latency = time.perf_counter() - started
        endpoint.limiter.answered()
        return self._settle(answer, sent, latency)

    def _settle(self, answer: Answer, sent: Mapping[str, Any], latency: float) -> Answer:
        self.services.counters.count_answer(self.endpoint.name, answer)
        failure = self._failure_in(answer)
        if failure is not None:
            self._refused = answer
            self._write(answer, ok=False, latency=latency, sent=sent, error=failure)
            raise failure
        try:
            self._save(Recording(answer))  # first of all: it was paid for
        finally:
            self._write(answer, ok=True, latency=latency, sent=sent)  # even if it could not be recorded
        return answer

    def _failure_in(self, answer: Answer) -> MemArenaError | None:
        """What is wrong with an answer that came in good order and was billed."""
        if answer.refused:
            return ContentRefused(f"The content filter of endpoint '{self.endpoint.name}' stopped the answer.")
        if answer.unusable:
            return ProviderError(f"The answer of endpoint '{self.endpoint.name}' cannot be used: {answer.unusable}.")
        return None

    # --- replay -------------------------------------------------------------------------------------------------------------
    def _replayed(self, found: Recording) -> Reply:
        """A recorded end of the call, as one ledger row: no latency, and what it cost when it was made, by this price file."""
        self.attempts = 1
        error = found.to_error()
        if found.answer.raw_usage or error is None:
            self.services.counters.count_answer(self.endpoint.name, found.answer)
        self._write(found.answer, ok=error is None, latency=None, sent=self.prepared.parameters, error=error, replayed=True)
        if error is not None:
            raise error
        return self._reply(found.answer)

    def _save(self, recording: Recording) -> None:
        self.services.replay.save(self.prepared.digest, self.occurrence, recording)

    # --- ledger -------------------------------------------------------------------------------------------------------------
    def _reply(self, answer: Answer) -> Reply:
        return Reply(cut_at_stop(answer.text, self.prepared.call.stop), answer.usage, answer.model, answer.finish_reason)

    def _failed(self, error: Exception, sent: Mapping[str, Any], started: float) -> None:
        """A row for an attempt that brought no usage (TOK-R4)."""
        self._write(None, ok=False, latency=time.perf_counter() - started, sent=sent, error=error)

    def _write(
        self,
        answer: Answer | None,
        *,
        ok: bool,
        latency: float | None,
        sent: Mapping[str, Any],
        error: Exception | None = None,
        replayed: bool = False,
    ) -> None:
        call, place, endpoint = self.prepared.call, self.place, self.endpoint
        usage = answer.usage if answer is not None and (ok or answer.raw_usage) else None
        counted = usage or Usage()
        row = LedgerRow(
            position=place.position,
            task_index=place.task_index,
            task_id=place.task_id,
            step=place.step,
            role=call.role,
            agent=call.agent,
            phase=call.phase,
            key="embed" if self.prepared.kind == "embedding" else call.key,
            kind=self.prepared.kind,
            endpoint=endpoint.name,
            model=answer.model if answer is not None else endpoint.config.model,
            attempt=self.attempts,
            ok=ok,
            input_tokens=counted.input,
            cached_input_tokens=counted.cached_input,
            output_tokens=counted.output,
            reasoning_tokens=counted.reasoning,
            usage_source=usage.source if usage else None,
            cost_usd=endpoint.price.cost(counted) if endpoint.price is not None else None,
            latency_s=latency,
            replayed=replayed,
            constrained=self.prepared.constrained,
            digest=self.prepared.digest,
            occurrence=self.occurrence,
            error=None if error is None else clean(f"{type(error).__name__}: {error}"),
        )
        self.services.limits.add(row)
        self.services.counters.count_row(row)
        self.emit(row, _transcript(self.prepared, answer, sent))


def _transcript(prepared: Prepared, answer: Answer | None, sent: Mapping[str, Any]) -> dict[str, Any]:
    """What the event log keeps of an attempt, beside its row. Vectors are left out: they can be computed again."""
    call = prepared.call
    note = {"usage_note": answer.note} if answer is not None and answer.note else {}
    if prepared.kind == "embedding":
        return {"texts": [message["content"] for message in call.messages], **note}
    return {
        "messages": call.messages,
        "parameters": dict(sent),
        "text": None if answer is None else answer.text,
        "finish_reason": None if answer is None else answer.finish_reason,
        **note,
    }
