"""One configured endpoint at work: what a call becomes on its way to the model, and what identifies it."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import Any, Literal

from harness.contracts import Call
from harness.limits import Estimate
from harness.models.backends import backends
from harness.models.config import EndpointConfig
from harness.models.limiter import AdaptiveLimiter
from harness.models.prices import PriceBook
from harness.models.tokens import estimate_messages
from harness.seeds import derive

_SEED_BITS = 0x7FFFFFFF  # providers take a signed 32-bit seed


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call with its request digest, the parameters as configured, and what is known of its cost beforehand."""

    call: Call
    digest: str
    parameters: dict[str, Any]
    constrained: bool
    estimate: Estimate
    kind: Literal["chat", "embedding"] = "chat"


class Endpoint:
    """An endpoint of the model set with its back-end, its limiter, and what was learned about it in this run."""

    def __init__(self, name: str, config: EndpointConfig, *, seed: int, constrain: bool, prices: PriceBook) -> None:
        self.name, self.config, self.seed = name, config, seed
        backend_class = backends().load(config.backend)
        self.backend = backend_class(name, config, seed)
        self.constrain = constrain and backend_class.constrains
        self.concurrency = config.max_concurrency if backend_class.concurrent else 1
        self.limiter = AdaptiveLimiter(self.concurrency)
        self.price = prices.find(config.model)
        self._learned: dict[str, str] = {}
        self._lock = threading.Lock()
        self._prefixes: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}

    # --- request ----------------------------------------------------------------------------------------------------------
    def prepare(self, call: Call) -> Prepared:
        """Digest and estimate of `call`.

        The digest is over the request *as configured* (model, parameters, seed, schema, choices if constrained, messages),
        not over what is left of it after a rejected parameter was dropped: that would differ between a run and its resumption.
        """
        constrained = self.constrain and bool(call.choices)
        prefix, parameters = self._prefix(call, constrained)
        digest = prefix.copy()
        for message in call.messages:
            content = message["content"].encode("utf-8", "surrogatepass")
            digest.update(b"\0%s\0%d\0" % (message["role"].encode(), len(content)))
            digest.update(content)
        return Prepared(call, digest.hexdigest(), parameters, constrained, self._estimate(call))

    def prepare_embedding(self, call: Call) -> Prepared:
        """Like `prepare`, for the texts of an embedding call (its messages)."""
        digest = hashlib.sha256(
            json.dumps(["embedding", 1, self.config.backend, self.config.model, self.config.extra_body]).encode()
        )
        for message in call.messages:
            content = message["content"].encode("utf-8", "surrogatepass")
            digest.update(b"\0%d\0" % len(content))
            digest.update(content)
        tokens = estimate_messages(call.messages)
        usd = None if self.price is None else self.price.least_for_prompt(tokens)
        estimate = Estimate(tokens, 0, usd, usd, self.config.model)
        return Prepared(call, digest.hexdigest(), {}, False, estimate, "embedding")

    def parameters_to_send(self, prepared: Prepared, occurrence: int) -> dict[str, Any]:
        """The parameters of one attempt, under the names the endpoint wants and without those it rejects.

        Repetitions of the same request get seeds of their own, so that asking again can bring another answer.
        """
        sent = dict(prepared.parameters)
        if "seed" in sent:
            sent["seed"] = derive(self.seed, "models", prepared.digest, occurrence) & _SEED_BITS
        for parameter, instead in list(self._learned.items()):
            if parameter in sent:
                value = sent.pop(parameter)
                if instead:
                    sent[instead] = value
        return sent

    def learn(self, parameter: str, instead: str | None) -> None:
        """Remember for this run that the endpoint rejects `parameter`, and takes `instead` (if anything) in its place."""
        with self._lock:
            if instead == parameter or instead in self._learned:
                instead = None  # rejected too; so no name is ever sent again, and asking again comes to an end
            self._learned.setdefault(parameter, instead or "")

    @property
    def learned(self) -> dict[str, str]:
        """Parameters that the endpoint rejected in this run, with what was sent instead (empty: nothing)."""
        with self._lock:
            return dict(sorted(self._learned.items()))

    def describe(self) -> dict[str, Any]:
        """What the manifest says about the endpoint; the name of the key's variable, never the key."""
        config = self.config
        return {
            "backend": config.backend,
            "model": config.model,
            "scripted": self.backend.scripted,
            "api_base": config.api_base,
            "api_key_env": config.api_key_env,
            "parameters": _json_safe(self._configured(config.max_tokens, config.temperature, ())),
            "unsupported": list(config.unsupported),
            "learned": self.learned,
            "constrained": self.constrain,
            "priced": self.price is not None,
            "details": self.backend.describe(),
        }

    # --- parts ------------------------------------------------------------------------------------------------------------
    def _prefix(self, call: Call, constrained: bool) -> tuple[Any, dict[str, Any]]:
        """The hash over all but the messages (computed once for calls of the same form), and the parameters."""
        variable = call.choices if constrained else None
        key = (call.max_tokens, call.temperature, call.stop)
        cached = self._prefixes.get(key) if variable is None and call.schema is None else None
        if cached is not None:
            return cached
        max_tokens = self.config.max_tokens if call.max_tokens is None else call.max_tokens
        temperature = self.config.temperature if call.temperature is None else call.temperature
        parameters = self._configured(max_tokens, temperature, call.stop)
        if call.schema is not None and "response_format" not in self.config.unsupported:
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(call.schema)},
            }
        parts = {
            "version": 1,
            "backend": self.config.backend,
            "model": self.config.model,
            "parameters": parameters,
            "stop": call.stop,  # it shapes the answer even where it is emulated
            "extra_body": self.config.extra_body,
            "choices": variable,
            "schema": call.schema,
        }
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
        made = (hashlib.sha256(text.encode()), parameters)
        if variable is None and call.schema is None:
            self._prefixes[key] = made
        return made

    def _configured(self, max_tokens: int, temperature: float | None, stop: tuple[str, ...]) -> dict[str, Any]:
        config = self.config
        wanted = {
            "temperature": temperature,
            "top_p": config.top_p,
            "stop": list(stop) or None,
            "seed": derive(self.seed, "models") & _SEED_BITS,
        }
        sent = {k: v for k, v in wanted.items() if v is not None and k not in config.unsupported}
        return {config.token_parameter: max_tokens} | sent

    def _estimate(self, call: Call) -> Estimate:
        prompt = estimate_messages(call.messages)
        output = self.config.max_tokens if call.max_tokens is None else call.max_tokens
        if self.price is None:
            return Estimate(prompt, output, None, None, self.config.model)
        most = (prompt * self.price.input + output * self.price.output) / 1e6
        return Estimate(prompt, output, self.price.least_for_prompt(prompt), most, self.config.model)


def _json_safe(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
