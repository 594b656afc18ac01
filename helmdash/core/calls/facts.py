"""Facts of a call: what its capture says about failing, worked out once for the rules to ask.

The questions that rules ask of them are in `conditions`, and which answer makes which cause in
`failures`. Unknown stays unknown: a reply whose content and length were not told is neither empty
nor full.
"""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.calls.capture import STRUCTURED_PURPOSES, Capture
from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.core.calls.finish import FinishReason, is_orderly
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
from helmdash.core.values import quick_value

_SOUND_ENDS = (None, FinishReason.STOP, FinishReason.TOOL_CALLS)


@quick_value(frozen=True, slots=True, kw_only=True)
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
    kind = kind_of_error(capture.error_code, telling_message(capture, finish))
    json_due = uses_json_mode(capture) or purpose_of(capture) in STRUCTURED_PURPOSES
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


def is_plainly_sound(capture: Capture, finish: FinishReason | None) -> bool:
    """Whether nothing is wrong with a call whose reply nobody has to read: so that its facts need
    not even be gathered. finish None: as in `gather_facts`."""
    return (
        finish in _SOUND_ENDS
        and capture.status in (None, "success")
        and (capture.http_status is None or 200 <= capture.http_status < 300)
        and not (capture.error_code or capture.error_message)
        and capture.unusable is None
        and capture.decoded is None
        and not capture.response_format
        and purpose_of(capture) not in STRUCTURED_PURPOSES
        and bool(capture.content and strip_reasoning(capture.content).text)
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
        return "an unreported number of output tokens"
    return f"{facts.completion_tokens:,} output tokens"


def seen_words(facts: Facts) -> str:
    capture = facts.capture
    if capture.content is not None:
        return f"{len(capture.content):,} characters"
    if capture.raw_content_len is not None:
        return f"{capture.raw_content_len:,} bytes"
    return "of unknown length"


# --- reading the capture


@quick_value(frozen=True, slots=True, kw_only=True)
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


def uses_json_mode(capture: Capture) -> bool:
    return (capture.response_format or "").strip().lower().startswith("json")


def purpose_of(capture: Capture) -> str:
    return capture.purpose.strip().lower()


def _is_answered(capture: Capture, finish: FinishReason | None) -> bool:
    if capture.http_status is not None:
        return 200 <= capture.http_status < 300
    return finish is not None or capture.effective_status == "success"


def telling_message(capture: Capture, finish: FinishReason | None) -> str | None:
    """The error message. None: none was reported, or it is the caller's remark on a reply that
    ended in order. finish None: nothing was said of its end."""
    is_refused = (capture.http_status or 0) >= 400
    is_remark = capture.status == "success" or is_orderly(finish)
    return None if is_remark and not is_refused else capture.error_message


def _holds_no_step(capture: Capture, value: object) -> bool:
    """null, an empty value, or a plan without steps that does not say it is done."""
    if purpose_of(capture) != "plan":
        return False
    if not value:
        return True
    if not isinstance(value, Mapping) or value.get("done") is True:
        return False  # "nothing is left to do" is an answer
    return "steps" in value and not value["steps"]
