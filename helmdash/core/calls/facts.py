"""Facts of a call: what its capture says about failing, worked out once for the rules to ask.

Only facts and questions about them live here; which answer makes which cause is the table in
`failures`. Unknown stays unknown: a reply whose content and length were not told is neither empty
nor full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.core.calls.capture import HTTP_CLIENT_CLOSED, STRUCTURED_PURPOSES, Capture
from helmdash.core.calls.error_words import ErrorKind, is_about_json_mode, kind_of_error
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.usage import Usage
from helmdash.core.text.jsontext import (
    NotJson,
    find_spans,
    is_json_shaped,
    is_structure,
    read_first_json,
    read_json,
    unfence,
)
from helmdash.core.text.reasoning import strip_reasoning

# How a provider ends a reply that it finished by itself.
_ORDERLY = frozenset(
    {
        FinishReason.STOP,
        FinishReason.LENGTH,
        FinishReason.CONTENT_FILTER,
        FinishReason.TOOL_CALLS,
        FinishReason.REFUSAL,
    }
)
_SOUND_ENDS = (None, FinishReason.STOP, FinishReason.TOOL_CALLS)
# Statuses that mean the upstream has no room just now: 503, and Anthropic's 529.
_OVERLOADED = (503, 529)
# 408 and 504, and Cloudflare's 522 and 524 in front of many providers.
_TIMEOUTS = (408, 504, 522, 524)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One call as the rules see it. None: not known, or nothing was said; a rule must not guess."""

    capture: Capture
    finish: FinishReason | None
    http: int | None
    kind: ErrorKind | None  # what the error's own words say
    is_answered: bool  # the provider gave a reply, as far as we were told
    is_empty: bool | None  # nothing to see or to read; None: neither content nor length was told
    has_reasoning: bool
    is_json_due: bool
    failed_to_read: bool  # JSON was due, or its reading was said to fail, and it cannot be read
    is_json: bool  # the content is JSON, whatever its reader made of it
    is_json_shaped: bool
    holds_no_step: bool
    completion_tokens: int | None


def gather_facts(capture: Capture, usage: Usage, finish: FinishReason | None) -> Facts:
    """Work out the facts of one call. finish None: the provider gave no finish reason. Never
    raises."""
    kind = kind_of_error(capture.error_code, _telling_message(capture, finish))
    json_due = _uses_json_mode(capture) or _purpose(capture) in STRUCTURED_PURPOSES
    decoded = False if kind is ErrorKind.READER else capture.decoded
    reply = _read_reply(capture, wants_json=json_due or decoded is False)
    removed_all = reply.is_empty is True and (capture.raw_content_len or 0) > 0
    # Something came and was decoded: the answer stood in thoughts that were never closed.
    was_read = decoded is True and (removed_all or bool((capture.content or "").strip()))
    return Facts(
        capture=capture,
        finish=finish,
        http=capture.http_status,
        kind=kind,
        is_answered=_is_answered(capture, finish),
        is_empty=False if was_read else reply.is_empty,
        has_reasoning=(
            bool(usage.reasoning_tokens or capture.reasoning_len)
            or reply.has_reasoning
            or removed_all
        ),
        is_json_due=json_due,
        failed_to_read=json_due and reply.is_readable is False if decoded is None else not decoded,
        is_json=reply.is_readable is True,
        is_json_shaped=reply.is_json_shaped,
        holds_no_step=reply.is_readable is True and _holds_no_step(capture, reply.value),
        completion_tokens=usage.completion_tokens,
    )


def is_sound(facts: Facts) -> bool:
    """Whether nothing at all is wrong, so that no rule need be asked (most calls, by far)."""
    capture = facts.capture
    return (
        facts.finish in _SOUND_ENDS
        and capture.status in (None, "success")
        and (facts.http is None or 200 <= facts.http < 300)
        and not (capture.error_code or capture.error_message)
        and facts.is_empty is not True
        and not facts.failed_to_read
        and not facts.holds_no_step
        and capture.unusable is None
    )


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
    message = _telling_message(facts.capture, facts.finish)
    return bool(facts.capture.error_code or message)


def is_json_mode_refused(facts: Facts) -> bool:
    return is_client_error(facts) and is_about_json_mode(facts.capture.error_message)


def is_model_unknown(facts: Facts) -> bool:
    says_so = facts.kind is ErrorKind.MODEL and (facts.http is None or is_client_error(facts))
    return facts.http == 404 or says_so


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
    return is_length_unusable(facts) and asked_for_all and _purpose(facts.capture) == "plan"


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
        return _uses_json_mode(facts.capture)
    return facts.is_json_shaped


def is_garbled_in_json_mode(facts: Facts) -> bool:
    return is_garbled(facts) and _uses_json_mode(facts.capture)


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
    return facts.capture.effective_status == "error" and facts.finish not in _ORDERLY


def is_unnamed_error_in_reply(facts: Facts) -> bool:
    return is_unnamed_error(facts) and facts.is_answered


# --- the facts in words, for the detail of a verdict


def error_words(facts: Facts) -> str:
    """Tell the error as it was told to us, short enough for one line.

    The sentence around it ends in a full stop of its own.
    """
    code, message = facts.capture.error_code, (facts.capture.error_message or "").strip()
    told = ": ".join(part for part in (code, message[:200]) if part).rstrip(" .")
    status = f"HTTP {facts.http}" if facts.http is not None else ""
    return ", ".join(part for part in (status, told) if part) or "no code, no message"


def spent_words(facts: Facts) -> str:
    if facts.completion_tokens is None:
        return "an unreported number of completion tokens"
    return f"{facts.completion_tokens:,} completion tokens"


def seen_words(facts: Facts) -> str:
    capture = facts.capture
    if capture.content is not None:
        return f"{len(capture.content):,} characters"
    if capture.raw_content_len is not None:
        return f"{capture.raw_content_len:,} bytes"
    return "of unknown length"


# --- reading the capture


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """What the content shows, where there is any (`is_readable` None: not asked)."""

    is_empty: bool | None
    has_reasoning: bool = False
    is_readable: bool | None = None
    is_json_shaped: bool = False
    value: object = None


def _read_reply(capture: Capture, *, wants_json: bool) -> _Reply:
    if capture.content is None:
        length = capture.raw_content_len
        return _Reply(is_empty=None if length is None else length <= 0)
    stripped = strip_reasoning(capture.content)
    has_reasoning = stripped.stripped_bytes > 0
    if not stripped.text or not wants_json:
        return _Reply(is_empty=not stripped.text, has_reasoning=has_reasoning)
    try:
        value = _read_value(stripped.text)
    except NotJson:
        shaped = is_json_shaped(stripped.text)
        return _Reply(
            is_empty=False, has_reasoning=has_reasoning, is_readable=False, is_json_shaped=shaped
        )
    return _Reply(is_empty=False, has_reasoning=has_reasoning, is_readable=True, value=value)


def _read_value(text: str) -> object:
    """Read the JSON of a reply as a tolerant reader would, but without repairing any of it."""
    body = unfence(text)
    try:
        return read_json(body)
    except NotJson:
        pass
    for span in find_spans(body):
        try:
            value, _ = read_first_json(body[span.start : span.end])
        except NotJson:
            continue
        if is_structure(value):
            return value
    raise NotJson("no readable object or array")


def _uses_json_mode(capture: Capture) -> bool:
    return (capture.response_format or "").strip().lower().startswith("json")


def _purpose(capture: Capture) -> str:
    return capture.purpose.strip().lower()


def _is_answered(capture: Capture, finish: FinishReason | None) -> bool:
    if capture.http_status is not None:
        return 200 <= capture.http_status < 300
    return finish is not None or capture.effective_status == "success"


def _telling_message(capture: Capture, finish: FinishReason | None) -> str | None:
    """The error message, unless it is the caller's remark on a reply that ended in order."""
    is_refused = (capture.http_status or 0) >= 400
    is_remark = capture.status == "success" or finish in _ORDERLY
    return None if is_remark and not is_refused else capture.error_message


def _holds_no_step(capture: Capture, value: object) -> bool:
    """null, an empty value, or a plan without steps that does not say it is done."""
    if _purpose(capture) != "plan":
        return False
    if not value:
        return True
    if not isinstance(value, Mapping) or value.get("done") is True:
        return False  # "nothing is left to do" is an answer
    return "steps" in value and not value["steps"]
