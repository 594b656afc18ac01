"""Failures: why a call gave nothing usable, as one typed verdict.

Source: helmdeck ADR 051 (an empty completion has several causes with different answers), and the
providers' own error codes. RULES is asked from the top: what the transport says explicitly, then
how the provider says the reply ended, then what the reply holds. The first rule that applies is the
cause. A finding about the quality of an artifact is never a cause: the call did give something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from helmdash.core.calls import conditions
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.facts import (
    Facts,
    error_words,
    gather_facts,
    is_plainly_sound,
    is_sound,
    seen_words,
    spent_words,
)
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.usage import Usage

# Stored with every verdict. A change of rules is a new version; a shipped one stays as it is.
CLASSIFIER_VERSION = "causes-8"


class FailureCause(StrEnum):
    """Why a call gave nothing usable."""

    SAFETY_FILTERED = "safety_filtered"
    REFUSED = "refused"
    LENGTH_TRUNCATED = "length_truncated"
    REASONING_EXHAUSTED = "reasoning_exhausted"
    CONTEXT_OVERFLOW = "context_overflow"
    CONSTRAINED_DEADLOCK = "constrained_deadlock"
    UNDECODABLE = "undecodable"
    LIKELY_TIMEOUT = "likely_timeout"
    EMPTY_COMPLETION = "empty_completion"
    EMPTY_PLAN = "empty_plan"
    TIMED_OUT = "timed_out"
    RATE_LIMITED = "rate_limited"
    AUTH_FAILED = "auth_failed"
    UNREACHABLE = "unreachable"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_ERROR_IN_200 = "upstream_error_in_200"
    BAD_REQUEST = "bad_request"
    CLIENT_DISCONNECTED = "client_disconnected"


class Advice(StrEnum):
    """What to do next about a cause."""

    RETRY = "retry"
    RETRY_LATER = "retry_later"
    RAISE_OUTPUT = "raise_output"
    SHORTEN_PROMPT = "shorten_prompt"
    SINGLE_PICK = "single_pick"
    WITHOUT_JSON_MODE = "without_json_mode"
    OTHER_MODEL = "other_model"
    FIX_CREDENTIALS = "fix_credentials"
    SURFACE = "surface"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a call gave nothing usable, the rule that says so, and what to do.

    detail: the facts, as a sentence.
    """

    name: FailureCause
    rule: str
    advice: Advice
    detail: str


def classify(
    capture: Capture,
    *,
    usage: Usage,
    finish_reason: FinishReason | None,
    told: Capture | None = None,
) -> Cause | None:
    """Say why a recorded call gave nothing usable; None when it did, or when nothing says so.

    told: the capture whose words the verdict's detail may use, where not all may be repeated.

    Whether the reply was empty is judged only where its content or its length was told. Whether
    it could be read is told by `decoded`, otherwise by reading the content where JSON was due.
    Never raises.
    """
    if is_plainly_sound(capture, finish_reason):
        return None
    known = gather_facts(capture, usage, finish_reason)
    if is_sound(known):
        return None
    rule = next((rule for rule in RULES if rule.applies(known)), None)
    if rule is None:
        return None
    said = known if told is None else replace(known, capture=told)
    return Cause(name=rule.name, rule=rule.id, advice=rule.advice, detail=_tell(rule, said))


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRule:
    """One line of the table. `id` is stable; several rules may give the same cause.

    `detail` may name {error}, {finish}, {spent} (output tokens) and {seen} (size of the reply).
    """

    id: str
    name: FailureCause
    advice: Advice
    applies: Callable[[Facts], bool]
    detail: str


RULES: tuple[CauseRule, ...] = (
    # --- what the transport says
    CauseRule(
        # First of all: the client did not leave, its connection was ended for it.
        id="gateway.stopped",
        name=FailureCause.UNREACHABLE,
        advice=Advice.RETRY,
        applies=conditions.is_stopped,
        detail="HelmDash was stopped during the call ({error}).",
    ),
    CauseRule(
        id="client.before_first_byte",
        name=FailureCause.CLIENT_DISCONNECTED,
        advice=Advice.RETRY,
        applies=conditions.left_before,
        detail="The caller left before anything of the reply had come ({error}).",
    ),
    CauseRule(
        id="client.midway",
        name=FailureCause.CLIENT_DISCONNECTED,
        advice=Advice.RETRY,
        applies=conditions.left_midway,
        detail="The caller left in the middle of the reply ({seen}; {error}).",
    ),
    CauseRule(
        id="client.disconnected",  # nothing tells whether the reply had begun
        name=FailureCause.CLIENT_DISCONNECTED,
        advice=Advice.RETRY,
        applies=conditions.is_disconnected,
        detail="The caller left before the reply was complete ({error}).",
    ),
    CauseRule(
        id="context.budget",
        name=FailureCause.CONTEXT_OVERFLOW,
        advice=Advice.SHORTEN_PROMPT,
        applies=conditions.is_over_budget,
        detail="The request is larger than its model's budget and was not sent ({error}).",
    ),
    CauseRule(
        id="context.error",
        name=FailureCause.CONTEXT_OVERFLOW,
        advice=Advice.SHORTEN_PROMPT,
        applies=conditions.is_overflow,
        detail="The provider says that the prompt does not fit ({error}).",
    ),
    CauseRule(
        id="context.http_413",
        name=FailureCause.CONTEXT_OVERFLOW,
        advice=Advice.SHORTEN_PROMPT,
        applies=conditions.is_too_large,
        detail="The request was too large to be accepted ({error}).",
    ),
    CauseRule(
        id="rate.quota",
        name=FailureCause.RATE_LIMITED,
        advice=Advice.SURFACE,
        applies=conditions.is_out_of_quota,
        detail="The account's quota is used up ({error}).",
    ),
    CauseRule(
        id="rate.limited",
        name=FailureCause.RATE_LIMITED,
        advice=Advice.RETRY_LATER,
        applies=conditions.is_rate_limited,
        detail="The provider limits the rate of requests ({error}).",
    ),
    CauseRule(
        id="safety.error",
        name=FailureCause.SAFETY_FILTERED,
        advice=Advice.SURFACE,
        applies=conditions.is_refused_by_filter,
        detail="The provider's filter refused the request ({error}).",
    ),
    CauseRule(
        id="auth.failed",
        name=FailureCause.AUTH_FAILED,
        advice=Advice.FIX_CREDENTIALS,
        applies=conditions.is_unauthorized,
        detail="The provider did not accept the credentials ({error}).",
    ),
    CauseRule(
        id="timeout.reasoning",
        name=FailureCause.TIMED_OUT,
        advice=Advice.OTHER_MODEL,  # the same model would think as long again
        applies=conditions.is_timeout_in_reasoning,
        detail="The model was still reasoning when time ran out; nothing is visible ({error}).",
    ),
    CauseRule(
        id="timeout.before_first_byte",
        name=FailureCause.TIMED_OUT,
        advice=Advice.RETRY,
        applies=conditions.is_timeout_before,
        detail="Time ran out before anything of the reply had come ({error}).",
    ),
    CauseRule(
        id="timeout.real",
        name=FailureCause.TIMED_OUT,
        advice=Advice.RETRY,
        applies=conditions.is_timeout,
        detail="The call ran out of time ({error}).",
    ),
    CauseRule(
        id="upstream.redirected",
        name=FailureCause.UNREACHABLE,
        advice=Advice.SURFACE,  # it would redirect again: the address has to be corrected
        applies=conditions.is_redirected,
        detail="The upstream redirects elsewhere, which is not followed ({error}).",
    ),
    CauseRule(
        id="network.unreachable",
        name=FailureCause.UNREACHABLE,
        advice=Advice.RETRY_LATER,
        applies=conditions.is_unreachable,
        detail="The provider could not be reached ({error}).",
    ),
    CauseRule(
        id="upstream.overloaded",
        name=FailureCause.UPSTREAM_ERROR,
        advice=Advice.RETRY_LATER,
        applies=conditions.is_overloaded,
        detail="The provider has no capacity just now ({error}).",
    ),
    CauseRule(
        id="upstream.http_5xx",
        name=FailureCause.UPSTREAM_ERROR,
        advice=Advice.RETRY,
        applies=conditions.is_server_error,
        detail="The provider failed ({error}).",
    ),
    CauseRule(
        # The provider had been reached, so it is not the network that failed to get there.
        id="upstream.closed_early",
        name=FailureCause.UPSTREAM_ERROR,
        advice=Advice.RETRY,
        applies=conditions.is_cut_by_upstream,
        detail="The provider broke off its reply ({seen}) before the end ({error}).",
    ),
    CauseRule(
        id="upstream.undecodable",
        name=FailureCause.UPSTREAM_ERROR_IN_200,
        advice=Advice.RETRY,
        applies=conditions.is_garbled_reply,
        detail="The reply cannot be read as what the provider's API answers ({error}).",
    ),
    CauseRule(
        id="upstream.error_code",
        name=FailureCause.UPSTREAM_ERROR,
        advice=Advice.RETRY,
        applies=conditions.is_upstream_code,
        detail="The provider reported a failure of its own ({error}).",
    ),
    CauseRule(
        id="deadlock.error",
        name=FailureCause.CONSTRAINED_DEADLOCK,
        advice=Advice.WITHOUT_JSON_MODE,
        applies=conditions.is_json_mode_failure,
        detail="The provider's JSON mode gave up ({error}).",
    ),
    CauseRule(
        id="upstream.error_in_reply",
        name=FailureCause.UPSTREAM_ERROR_IN_200,
        advice=Advice.RETRY,
        applies=conditions.is_error_in_reply,
        detail="The reply carries an error ({error}).",
    ),
    CauseRule(
        id="request.json_mode",
        name=FailureCause.BAD_REQUEST,
        advice=Advice.WITHOUT_JSON_MODE,
        applies=conditions.is_json_mode_refused,
        detail="The provider refused the JSON mode ({error}).",
    ),
    CauseRule(
        id="request.model",
        name=FailureCause.BAD_REQUEST,
        advice=Advice.OTHER_MODEL,
        applies=conditions.is_model_unknown,
        detail="This model is not served ({error}).",
    ),
    CauseRule(
        id="request.payment",
        name=FailureCause.BAD_REQUEST,
        advice=Advice.FIX_CREDENTIALS,
        applies=conditions.is_unpaid,
        detail="The account has no credit ({error}).",
    ),
    CauseRule(
        id="request.refused",
        name=FailureCause.BAD_REQUEST,
        advice=Advice.SURFACE,
        applies=conditions.is_bad_request,
        detail="The request was refused ({error}).",
    ),
    # --- how the provider says the reply ended
    CauseRule(
        id="upstream.finish_reason",
        name=FailureCause.UPSTREAM_ERROR_IN_200,
        advice=Advice.RETRY,
        applies=conditions.ended_in_error,
        detail='The provider ended the reply in "{finish}" ({error}).',
    ),
    CauseRule(
        id="refusal.finish_reason",
        name=FailureCause.REFUSED,
        advice=Advice.OTHER_MODEL,
        applies=conditions.is_refusal,
        detail='The model declined to answer ("{finish}").',
    ),
    CauseRule(
        id="safety.finish_reason",
        name=FailureCause.SAFETY_FILTERED,
        advice=Advice.SURFACE,
        applies=conditions.is_filtered,
        detail='The provider\'s filter ended the reply in "{finish}".',
    ),
    CauseRule(
        id="context.finish_reason",
        name=FailureCause.CONTEXT_OVERFLOW,
        advice=Advice.SHORTEN_PROMPT,
        applies=conditions.is_context_full,
        detail="The context was full after {spent}.",
    ),
    CauseRule(
        id="length.reasoning",
        name=FailureCause.REASONING_EXHAUSTED,
        advice=Advice.RAISE_OUTPUT,
        applies=conditions.is_length_after_reasoning,
        detail="The output limit came after {spent}, spent on reasoning; nothing is visible.",
    ),
    CauseRule(
        id="length.full_steps",
        name=FailureCause.LENGTH_TRUNCATED,
        advice=Advice.SINGLE_PICK,
        applies=conditions.is_full_plan_cut,
        detail="The output limit cut the plan after {spent}; one step at a time needs far fewer.",
    ),
    CauseRule(
        id="length.empty",
        name=FailureCause.LENGTH_TRUNCATED,
        advice=Advice.RAISE_OUTPUT,
        applies=conditions.is_length_empty,
        detail="The output limit was reached after {spent}; nothing is visible.",
    ),
    CauseRule(
        id="length.structured",
        name=FailureCause.LENGTH_TRUNCATED,
        advice=Advice.RAISE_OUTPUT,
        applies=conditions.is_length_unusable,
        detail="The output limit cut a structured reply ({seen}) after {spent}.",
    ),
    # --- what the reply holds
    CauseRule(
        id="timeout.silent",
        name=FailureCause.LIKELY_TIMEOUT,
        advice=Advice.SHORTEN_PROMPT,
        applies=conditions.is_silent_without_end,
        detail=(
            "The call succeeded with nothing in it and no finish reason, as when the "
            "connection behind it runs out of time."
        ),
    ),
    CauseRule(
        id="empty.reply",
        name=FailureCause.EMPTY_COMPLETION,
        advice=Advice.RETRY,
        applies=conditions.is_silent,
        detail='The reply ended in "{finish}" after {spent} with nothing visible.',
    ),
    CauseRule(
        id="plan.empty",
        name=FailureCause.EMPTY_PLAN,
        advice=Advice.OTHER_MODEL,
        applies=conditions.is_plan_empty,
        detail="The plan could be read and holds no step.",
    ),
    CauseRule(
        id="plan.unusable",
        name=FailureCause.EMPTY_PLAN,
        advice=Advice.OTHER_MODEL,
        applies=conditions.is_unusable,
        detail="The reply could be read and is of no use: {unusable}",
    ),
    CauseRule(
        id="deadlock.json_mode",
        name=FailureCause.CONSTRAINED_DEADLOCK,
        advice=Advice.WITHOUT_JSON_MODE,
        applies=conditions.is_garbled_in_json_mode,
        detail="The reply ({seen}) is broken JSON, written in JSON mode.",
    ),
    CauseRule(
        id="deadlock.reply",
        name=FailureCause.CONSTRAINED_DEADLOCK,
        advice=Advice.RETRY,
        applies=conditions.is_garbled,
        detail="The reply ({seen}) is broken JSON.",
    ),
    CauseRule(
        id="undecodable.schema",
        name=FailureCause.UNDECODABLE,
        advice=Advice.RETRY,
        applies=conditions.is_unwanted_json,
        detail="The reply ({seen}) is JSON, but not what its reader could use.",
    ),
    CauseRule(
        id="undecodable.reply",
        name=FailureCause.UNDECODABLE,
        advice=Advice.RETRY,
        applies=conditions.is_unreadable,
        detail="JSON was due, and the reply ({seen}) is something else.",
    ),
    CauseRule(
        id="upstream.unnamed_in_reply",
        name=FailureCause.UPSTREAM_ERROR_IN_200,
        advice=Advice.RETRY,
        applies=conditions.is_unnamed_error_in_reply,
        detail="The reply was reported as an error ({error}).",
    ),
    CauseRule(
        id="upstream.unnamed",
        name=FailureCause.UPSTREAM_ERROR,
        advice=Advice.RETRY,
        applies=conditions.is_unnamed_error,
        detail="The call was reported as an error ({error}).",
    ),
)


def _tell(rule: CauseRule, known: Facts) -> str:
    return rule.detail.format(
        error=error_words(known),
        finish=known.capture.finish_reason,
        spent=spent_words(known),
        seen=seen_words(known),
        unusable=known.capture.unusable,
    )
