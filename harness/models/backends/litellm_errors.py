"""litellm's exceptions as ours: by HTTP status and by the provider's error code, by text only where there is neither."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any

from harness.errors import ContentRefused, ContextOverflow, ModelSetupError, ProviderError, ProviderTimeout, RateLimited
from harness.models.backends.base import Request, UnsupportedParameter
from harness.models.config import TOKEN_PARAMETERS, EndpointConfig
from harness.models.intake import one_line
from harness.models.tokens import estimate_messages

FILTERED = ("content_filter", "content_policy_violation")
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")
TOO_LONG = ("context_length_exceeded", "exceed_context_size_error")
SETUP_STATUS = (401, 402, 403, 404)
UNSUPPORTED_CODES = ("unsupported_parameter", "unsupported_value")
UNSUPPORTED_WORDS = ("support", "unrecognized", "unexpected", "not permitted")


def translate(error: Exception, config: EndpointConfig, request: Request, key: str | None = None) -> Exception:
    """The harness' error for what a litellm call raised (ProviderError for whatever is unknown).

    `key` is blotted out of the text: some servers repeat it, and the text goes into the ledger.
    """
    kind = type(error).__name__
    body = _body(error)
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    code = str(body.get("code") or body.get("type") or "")
    text = str(body.get("message") or error)
    message = one_line(text.replace(key, "***") if key else text)  # blotted out first: a cut key is still half a key
    if kind == "Timeout":
        return ProviderTimeout(f"{config.model} did not answer within {request.timeout_s:.1f} s.")
    if kind == "ContextWindowExceededError" or code in TOO_LONG:
        used = body.get("n_prompt_tokens") or estimate_messages(request.call.messages)
        return ContextOverflow(config.model, used, body.get("n_ctx") or config.context_window)
    if kind == "ContentPolicyViolationError" or code in FILTERED:
        return ContentRefused(f"The content filter of {config.model} refused the prompt: {message}")
    if code in NO_CREDIT:
        return ModelSetupError(
            f"The account for {config.model} has no credit: {message}", "Top it up; the same command continues."
        )
    if status == 429:
        return RateLimited(f"429 from {config.model}: {message}", retry_after=retry_after(_headers(error)))
    if status in SETUP_STATUS:
        return ModelSetupError(f"{config.model} refuses every call ({status}): {message}", _setup_hint(status, config))
    if status in (400, 422):
        unsupported = _unsupported(kind, body, message, request.parameters)
        if unsupported is not None:
            return unsupported
    return ProviderError(f"{config.model} failed ({status or kind}): {message}", status=status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks to wait (`retry-after-ms`; `retry-after`, in seconds or as a date); None if it does not."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        value = headers["retry-after"]
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _unsupported(kind: str, body: Mapping[str, Any], message: str, sent: Mapping[str, Any]) -> UnsupportedParameter | None:
    """The sent parameter that a 400 names as unsupported, if it does. litellm says so itself for models that it knows."""
    named = body.get("param")
    says_so = body.get("code") in UNSUPPORTED_CODES or any(word in message.lower() for word in UNSUPPORTED_WORDS)
    if not says_so and kind != "UnsupportedParamsError":
        return None
    # a message may name a second parameter as the remedy ("use 'max_completion_tokens' instead"): the first named is meant
    found = named if named in sent else min((p for p in sent if p in message), key=message.index, default=None)
    if found is None:
        return None
    other = next((p for p in TOKEN_PARAMETERS if p != found and found in TOKEN_PARAMETERS), None)
    return UnsupportedParameter(str(found), other)


def _body(error: BaseException) -> Mapping[str, Any]:
    """The provider's error object, which litellm keeps on the exception or on the one that it replaced."""
    seen: BaseException | None = error
    while seen is not None:
        body = getattr(seen, "body", None)
        if isinstance(body, Mapping):
            inner = body.get("error")
            return inner if isinstance(inner, Mapping) else body
        seen = seen.__cause__ or seen.__context__
    return {}


def _headers(error: Exception) -> Mapping[str, str]:
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not headers:
        headers = getattr(error, "litellm_response_headers", None)
    return {str(k).lower(): str(v) for k, v in dict(headers or {}).items()}


def _setup_hint(status: int | None, config: EndpointConfig) -> str:
    if status == 404:
        return "Check the model's name (and api_base)."
    return (
        f"Check the key in {config.api_key_env}." if config.api_key_env else "Set api_key_env to the variable that holds the key."
    )
