"""Conditions: questions about the facts of one call, asked by the rules in `failures`.

Each takes a call's Facts and says yes or no; which answer makes which cause is the table there.
"""

from __future__ import annotations

from helmdash.core.calls.capture import HTTP_CLIENT_CLOSED
from helmdash.core.calls.error_words import ErrorKind, is_about_json_mode
from helmdash.core.calls.facts import (
    Facts,
    purpose_of,
    telling_message,
    uses_json_mode,
)
from helmdash.core.calls.finish import FinishReason, is_orderly

# Statuses that mean the upstream has no room just now: 503, and Anthropic's 529.
_OVERLOADED = (503, 529)
# 408 and 504, and Cloudflare's 522 and 524 in front of many providers.
_TIMEOUTS = (408, 504, 522, 524)


# --- what the transport says


def has_begun(facts: Facts) -> bool:
    """Whether anything of a reply is known to have come: a first byte, or a part of the reply."""
    capture = facts.capture
    return (
        capture.ttft_ms is not None
        or facts.is_empty is False
        or bool(capture.raw_content_len or capture.reasoning_len or capture.tool_calls)
    )


def has_not_begun(facts: Facts) -> bool:
    """Whether nothing of a reply is known to have come.

    Only a gateway sees that. A caller that reports no time to the first byte may not have measured
    it, so of its calls this stays unknown.
    """
    was_watched = facts.capture.overhead_ms is not None or facts.capture.links is not None
    return was_watched and not has_begun(facts)


def is_stopped(facts: Facts) -> bool:
    return facts.kind is ErrorKind.STOPPED


def left_before(facts: Facts) -> bool:
    return is_disconnected(facts) and has_not_begun(facts)


def left_midway(facts: Facts) -> bool:
    return is_disconnected(facts) and has_begun(facts)


def is_disconnected(facts: Facts) -> bool:
    return (
        facts.capture.effective_status == "cancelled"
        or facts.http == HTTP_CLIENT_CLOSED
        or facts.kind is ErrorKind.DISCONNECTED
        or facts.finish is FinishReason.CANCELLED
    )


def is_over_budget(facts: Facts) -> bool:
    """A guard kept the request back: nothing tells that it was sent."""
    is_guarded = facts.kind is ErrorKind.BUDGET and is_overflow(facts)
    return is_guarded and not facts.is_answered and not has_begun(facts)


def is_overflow(facts: Facts) -> bool:
    # 401, 403 and 429 are about the caller, however much they talk about tokens.
    says_so = facts.kind in (ErrorKind.CONTEXT, ErrorKind.BUDGET)
    return says_so and facts.http not in (401, 403, 429)


def is_too_large(facts: Facts) -> bool:
    return facts.http == 413 and facts.kind not in (ErrorKind.RATE, ErrorKind.QUOTA)


def is_out_of_quota(facts: Facts) -> bool:
    return facts.kind is ErrorKind.QUOTA and facts.http not in (401, 402, 403)


def is_rate_limited(facts: Facts) -> bool:
    return facts.http == 429 or (facts.kind is ErrorKind.RATE and facts.http not in (401, 403))


def is_refused_by_filter(facts: Facts) -> bool:
    return facts.kind is ErrorKind.SAFETY and not is_server_error(facts)


def is_unauthorized(facts: Facts) -> bool:
    return facts.http in (401, 403) or facts.kind is ErrorKind.AUTH


def is_timeout(facts: Facts) -> bool:
    says_so = facts.kind is ErrorKind.TIMEOUT and not is_client_error(facts)
    return facts.http in _TIMEOUTS or says_so


def is_timeout_in_reasoning(facts: Facts) -> bool:
    """The model was thinking, and nothing visible had come."""
    has_visible = facts.is_empty is False or bool(facts.capture.tool_calls)
    return is_timeout(facts) and facts.has_reasoning and not has_visible


def is_timeout_before(facts: Facts) -> bool:
    return is_timeout(facts) and has_not_begun(facts)


def is_cut_by_upstream(facts: Facts) -> bool:
    """The connection broke, or the stream stopped short of its end, after the reply had begun."""
    broke_later = facts.kind is ErrorKind.NETWORK and facts.http is not None and facts.is_answered
    return broke_later or (facts.kind is ErrorKind.CUT and not is_server_error(facts))


def is_garbled_reply(facts: Facts) -> bool:
    return facts.kind is ErrorKind.GARBLED and (facts.http is None or facts.is_answered)


def is_redirected(facts: Facts) -> bool:
    return facts.kind is ErrorKind.REDIRECTED


def is_unreachable(facts: Facts) -> bool:
    return facts.http is None and facts.kind is ErrorKind.NETWORK


def is_overloaded(facts: Facts) -> bool:
    says_so = facts.kind is ErrorKind.OVERLOADED and (facts.http is None or is_server_error(facts))
    return facts.http in _OVERLOADED or says_so


def is_server_error(facts: Facts) -> bool:
    return facts.http is not None and 500 <= facts.http < 600


def is_client_error(facts: Facts) -> bool:
    return facts.http is not None and 400 <= facts.http < 500


def is_upstream_code(facts: Facts) -> bool:
    return facts.http is None and facts.kind is ErrorKind.UPSTREAM


def is_json_mode_failure(facts: Facts) -> bool:
    return facts.kind is ErrorKind.DEADLOCK


def is_error_in_reply(facts: Facts) -> bool:
    """An error that came inside a 2xx: a code, or a message where the reply has no orderly end.

    A code of the caller's own is about the reply, not in it.
    """
    if facts.http is None or not facts.is_answered:
        return False
    if facts.kind in (ErrorKind.READER, ErrorKind.CALLER):
        return False
    message = telling_message(facts.capture, facts.finish)
    return bool(facts.capture.error_code or message)


def is_json_mode_refused(facts: Facts) -> bool:
    return is_client_error(facts) and is_about_json_mode(facts.capture.error_message)


def is_model_unknown(facts: Facts) -> bool:
    says_so = facts.kind is ErrorKind.MODEL and (facts.http is None or is_client_error(facts))
    return (facts.http == 404 and not _is_about_a_thread(facts)) or says_so


def _is_about_a_thread(facts: Facts) -> bool:
    """The provider no longer has what the request goes on from: `thread_not_found`."""
    return (facts.capture.error_code or "").startswith("thread_")


def is_unpaid(facts: Facts) -> bool:
    return facts.http == 402


def is_bad_request(facts: Facts) -> bool:
    says_so = facts.http is None and facts.kind is ErrorKind.REQUEST
    return is_client_error(facts) or says_so


# --- how the provider says the reply ended


def ended_in_error(facts: Facts) -> bool:
    return facts.is_answered and facts.finish is FinishReason.ERROR


def is_refusal(facts: Facts) -> bool:
    return facts.finish is FinishReason.REFUSAL


def is_filtered(facts: Facts) -> bool:
    """A filter's word counts unless usable content is there to see."""
    if facts.finish is not FinishReason.CONTENT_FILTER:
        return False
    return facts.is_empty is not False or facts.failed_to_read


def is_context_full(facts: Facts) -> bool:
    """Anthropic's `model_context_window_exceeded` is a `length`, but not the output cap's."""
    raw = (facts.capture.finish_reason or "").lower()
    return "context" in raw and is_length_unusable(facts)


def is_length_empty(facts: Facts) -> bool:
    return facts.finish is FinishReason.LENGTH and facts.is_empty is True


def is_length_after_reasoning(facts: Facts) -> bool:
    return is_length_empty(facts) and facts.has_reasoning


def is_length_unusable(facts: Facts) -> bool:
    """A cut reply is of use only as plain text with something to see."""
    if facts.finish is not FinishReason.LENGTH:
        return False
    return facts.is_empty is True or facts.failed_to_read or facts.is_json_due


def is_full_plan_cut(facts: Facts) -> bool:
    asked_for_all = facts.capture.prompt_variant == "full_steps"
    return is_length_unusable(facts) and asked_for_all and purpose_of(facts.capture) == "plan"


# --- what the reply holds


def is_silent(facts: Facts) -> bool:
    """Answered, and known to be empty. Tool calls need no text, whatever the reply ended in."""
    calls_tools = facts.finish is FinishReason.TOOL_CALLS or bool(facts.capture.tool_calls)
    needs_no_text = calls_tools and facts.capture.decoded is not False
    return facts.is_answered and facts.is_empty is True and not needs_no_text


def is_silent_without_end(facts: Facts) -> bool:
    return is_silent(facts) and facts.finish is None


def is_garbled(facts: Facts) -> bool:
    """The reply could not be read as JSON, and was meant as JSON."""
    if not facts.failed_to_read or facts.is_json:
        return False
    if facts.capture.content is None:
        # Unseen: what a JSON mode wrote was at least shaped like JSON.
        return uses_json_mode(facts.capture)
    return facts.is_json_shaped


def is_garbled_in_json_mode(facts: Facts) -> bool:
    return is_garbled(facts) and uses_json_mode(facts.capture)


def is_plan_empty(facts: Facts) -> bool:
    return facts.holds_no_step


def is_unusable(facts: Facts) -> bool:
    """Its reader decoded it, and says why it is of no use."""
    return facts.capture.unusable is not None


def is_unreadable(facts: Facts) -> bool:
    return facts.failed_to_read


def is_unwanted_json(facts: Facts) -> bool:
    return facts.failed_to_read and facts.is_json


def is_unnamed_error(facts: Facts) -> bool:
    return facts.capture.effective_status == "error" and not is_orderly(facts.finish)


def is_unnamed_error_in_reply(facts: Facts) -> bool:
    return is_unnamed_error(facts) and facts.is_answered
