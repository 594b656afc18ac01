"""What an upstream does wrong, and what the record says of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.gateway.clients import QUESTION
from tests.gateway.world import IMPATIENT, World, model_of
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

# What happens -> what is recorded. The words stand for rows of core.calls.failures: rule, advice.
RATE = ("rate_limited", "rate.limited", "retry_later")
FAILED = ("upstream_error", "upstream.http_5xx", "retry")
FULL = ("upstream_error", "upstream.overloaded", "retry_later")
KEY = ("auth_failed", "auth.failed", "fix_credentials")
MODEL = ("bad_request", "request.model", "other_model")
OVERFLOW = ("context_overflow", "context.error", "shorten_prompt")
NETWORK = ("unreachable", "network.unreachable", "retry_later")
SILENT = ("likely_timeout", "timeout.silent", "shorten_prompt")
EMPTY = ("empty_completion", "empty.reply", "retry")
UNREADABLE = ("upstream_error_in_200", "upstream.undecodable", "retry")
CUT = ("upstream_error", "upstream.closed_early", "retry")
IN_200 = ("upstream_error_in_200", "upstream.error_in_reply", "retry")
REASONED = ("reasoning_exhausted", "length.reasoning", "raise_output")
REFUSED = ("refused", "refusal.finish_reason", "other_model")
FILTERED = ("safety_filtered", "safety.finish_reason", "surface")
REDIRECTED = ("unreachable", "upstream.redirected", "surface")

REFUSALS = [
    # provider, behaviour, verdict, attempts, status for the client
    ("openai", "busy", RATE, 1, 429),  # asked to wait 30 s: told rather than waited for
    ("anthropic", "busy", RATE, 1, 429),
    ("gemini", "busy", RATE, 1, 429),
    ("ollama", "busy", RATE, 1, 429),
    ("openai", "fail", FAILED, 3, 500),
    ("anthropic", "fail", FAILED, 3, 500),
    ("openai", "html", FAILED, 3, 502),
    ("openai", "overloaded", FULL, 3, 503),
    ("anthropic", "overloaded", FULL, 3, 529),
    ("openai", "bad-key", KEY, 1, 401),
    ("anthropic", "bad-key", KEY, 1, 401),
    ("gemini", "bad-key", KEY, 1, 400),  # Gemini's own status for it
    ("openai", "no-such-model", MODEL, 1, 404),
    ("ollama", "no-such-model", MODEL, 1, 404),
    ("openai", "overflow", OVERFLOW, 1, 400),
    ("openai", "overflow-openrouter", OVERFLOW, 1, 400),
    ("openai", "overflow-groq", OVERFLOW, 1, 413),
    ("openai", "overflow-vllm", OVERFLOW, 1, 400),
    ("openai", "overflow-llamacpp", OVERFLOW, 1, 400),
    ("openai", "overflow-mistral", OVERFLOW, 1, 400),
    ("anthropic", "overflow", OVERFLOW, 1, 400),
    ("gemini", "overflow", OVERFLOW, 1, 400),
    ("ollama", "overflow", OVERFLOW, 1, 400),
    # Sent, and so not sent again.
    ("openai", "cut-at-once", NETWORK, 1, 502),
    ("openai", "redirect", REDIRECTED, 1, 502),
]
OUTCOMES = [
    # provider, behaviour, verdict, finish reason
    ("openai", "plain", None, "stop"),
    ("openai", "cut-short", None, "length"),  # a chat with text to show
    ("openai", "silent", SILENT, None),
    ("anthropic", "silent", SILENT, None),
    ("gemini", "silent", SILENT, None),
    ("openai", "nothing", SILENT, None),
    ("anthropic", "nothing", SILENT, None),
    ("gemini", "nothing", SILENT, None),
    ("ollama", "nothing", SILENT, None),
    ("openai", "silent-stop", EMPTY, "stop"),
    ("anthropic", "silent-stop", EMPTY, "stop"),
    ("gemini", "silent-stop", EMPTY, "stop"),
    ("ollama", "silent-stop", EMPTY, "stop"),
    ("openai", "error-in-200", IN_200, None),
    ("anthropic", "error-in-200", IN_200, None),
    ("gemini", "error-in-200", IN_200, None),
    ("ollama", "error-in-200", IN_200, None),
    ("openai", "garbled", UNREADABLE, None),
    ("anthropic", "garbled", UNREADABLE, None),
    ("ollama", "garbled", UNREADABLE, None),
    ("openai", "cut-midway", CUT, None),
    ("ollama", "cut-midway", CUT, None),
    ("openai", "reasoning-length", REASONED, "length"),
    ("anthropic", "reasoning-length", REASONED, "length"),
    ("gemini", "reasoning-length", REASONED, "length"),
    ("ollama", "reasoning-length", REASONED, "length"),
    ("openai", "refusal", REFUSED, "refusal"),
    ("anthropic", "refusal", REFUSED, "refusal"),
    ("openai", "filter", FILTERED, "content_filter"),
    ("gemini", "filter", FILTERED, "content_filter"),
    ("gemini", "blocked", FILTERED, "content_filter"),
]


@pytest.mark.parametrize(("provider", "behaviour", "verdict", "attempts", "status"), REFUSALS)
def test_a_refusal_and_its_cause(
    world: World,
    provider: str,
    behaviour: str,
    verdict: tuple[str, str, str],
    attempts: int,
    status: int,
    mark: str,
) -> None:
    answer = ask(world, model_of(provider, behaviour, mark))

    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    call = world.call_of(answer)
    assert verdict_of(call) == verdict
    assert call["status"] == "error"
    assert tried(call) == attempts == len(world.fleet[provider].seen(mark))
    assert call["cause"]["detail"]
    assert call["usage"]["prompt_tokens"] is None


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("provider", "behaviour", "verdict", "finish"), OUTCOMES)
def test_a_reply_and_its_cause(
    world: World,
    provider: str,
    behaviour: str,
    verdict: tuple[str, str, str] | None,
    finish: str | None,
    stream: bool,
    mark: str,
) -> None:
    model = model_of(provider, behaviour, mark)
    with suppress(httpx.TransportError):  # a stream breaks off where its upstream did
        ask(world, model, stream=stream)
    call = world.call(world.call_to(model)["id"])

    assert verdict_of(call) == verdict
    assert call["finish_reason"] == finish
    assert tried(call) == 1 == len(world.fleet[provider].seen(mark))


@pytest.mark.parametrize(
    ("provider", "behaviour", "attempts", "stream"),
    [
        ("openai", "busy-once", 2, True),
        ("anthropic", "busy-once", 2, False),
        ("openai", "fail-twice", 3, False),
        ("openai", "fail-twice", 3, True),
        ("ollama", "fail-once", 2, True),
    ],
)
def test_what_went_well_in_the_end_is_one_call_with_its_attempts(
    world: World, provider: str, behaviour: str, attempts: int, stream: bool, mark: str
) -> None:
    model = model_of(provider, behaviour, mark)

    answer = ask(world, model, stream=stream)

    assert answer.status_code == 200
    call = world.call_of(answer)
    assert (call["status"], call["cause"], call["http_status"]) == ("success", None, 200)
    assert [each["number"] for each in call["attempts"]] == list(range(1, attempts + 1))
    assert len(world.calls_to(model)) == 1
    if behaviour == "busy-once":
        first, second = world.fleet[provider].seen(mark)
        assert second.at - first.at >= 1.0, "Retry-After: 1"
        assert call["attempts"][0]["status"] == 429


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("behaviour", ["usage-missing", "usage-null", "usage-zero"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "ollama"])
def test_usage_that_says_nothing_is_unknown_and_never_zero(
    world: World, provider: str, behaviour: str, stream: bool, mark: str
) -> None:
    answer = ask(world, model_of(provider, behaviour, mark), stream=stream)

    call = world.call_of(answer)
    assert call["cause"] is None
    assert call["usage"]["prompt_tokens"] is None
    assert (call["health"]["level"], call["health"]["reason"]) == ("unknown", "usage_unavailable")
    if not stream:
        assert answer.json()["choices"][0]["message"]["content"] == WHOLE


def test_an_upstream_that_is_not_there(world: World, mark: str) -> None:
    answer = ask(world, f"groq/gpt-plain.{mark}")

    assert answer.status_code == 502
    call = world.call_of(answer)
    assert verdict_of(call) == NETWORK
    assert call["http_status"] is None
    assert tried(call) == 3


@pytest.mark.parametrize(
    ("behaviour", "stream", "status", "rule", "advice"),
    [
        ("hang", True, 504, "timeout.before_first_byte", "retry"),
        # it had begun
        ("hang-midway", True, 200, "timeout.real", "retry"),
        ("hang-thinking", True, 200, "timeout.reasoning", "other_model"),
    ],
)
def test_an_upstream_that_says_nothing_for_too_long(
    world: World, behaviour: str, stream: bool, status: int, rule: str, advice: str, mark: str
) -> None:
    answer = ask(world, f"{IMPATIENT}/gpt-{behaviour}.{mark}", stream=stream)

    assert answer.status_code == status
    call = world.call_of(answer)
    assert verdict_of(call) == ("timed_out", rule, advice)
    # It may be working, and charging: never asked twice.
    (seen,) = world.fleet.openai.seen(mark)
    assert seen.hung_up.wait(1)
    assert tried(call) == 1


def ask(world: World, model: str, *, stream: bool = False) -> Any:
    """One question in OpenAI's API."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": model, "messages": messages, "stream": stream}
    return world.post("/v1/chat/completions", body)


def verdict_of(call: dict[str, Any]) -> tuple[str, str, str] | None:
    cause = call["cause"]
    return (cause["name"], cause["rule"], cause["advice"]) if cause else None


def tried(call: dict[str, Any]) -> int:
    """How often the upstream was asked; a call that went well at once need not list it."""
    return len(call["attempts"]) or 1
