"""A judged call as rows: the narrow one that lists read, and the payload beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.routes import join_routes
from helmdash.core.text.redaction import Masker
from helmdash.core.values import quick_value
from helmdash.operations.recording.conversation_rows import ConversationRow
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.models import Payload

# A provider's error page can be megabytes; the beginning says what it is.
_ERROR_MESSAGE_CHARS = 2000
_CAUSE_DETAIL_CHARS = 400
_OFF, _REDACTED = Payload.OFF.value, Payload.REDACTED.value


@quick_value(frozen=True, slots=True, kw_only=True)
class Placed:
    """A call with its conversation, and by what it came there. attempt_of: the generation that a
    later attempt has, which was recorded before; None: it has its own."""

    item: Judged
    conversation: ConversationRow | None = None
    round_number: int | None = None
    placed_by: str = ""
    branched_from: tuple[str, int] | None = None  # name and generation
    attempt_of: int | None = None

    @property
    def generation(self) -> int | None:
        """Its number in its conversation, which has just taken it in; None: it has none."""
        if self.conversation is None or self.item.is_side or self.attempt_of is not None:
            return None
        return self.conversation.generation


def call_row(
    placed: Placed, *, project_id: int, rules_id: int, masker: Masker, now: datetime
) -> dict[str, object]:
    """The columns of Call, by attribute name, with the conversation as the call leaves it."""
    item, conversation = placed.item, placed.conversation
    capture, usage, health, cause = item.capture, item.usage, item.health, item.cause
    sent, trim = capture.sent, capture.trim
    # Words of closed sets are texts; their `value` is a property written in Python.
    return {
        "project_id": project_id,
        "name": capture.id,
        "conversation_id": conversation.id if conversation else None,
        "round_number": placed.round_number,
        "generation": placed.generation,
        "lane": item.lane._value_,
        "routes": join_routes(capture.routes),
        "attempt": capture.attempt,
        "attempt_of": placed.attempt_of,
        "model": capture.model,
        "model_key": item.model_key,
        "client_name": capture.client_name,
        "client_version": capture.client_version,
        "client_window": item.client_window,
        "upstream_model": capture.upstream_model or "",
        "provider": capture.provider or "",
        "pack": capture.pack or "",
        "purpose": capture.purpose,
        "correlation_id": capture.correlation_id or "",
        "caller": item.caller,
        "prompt_variant": capture.prompt_variant or "",
        "response_format": capture.response_format or "",
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "status": item.status,
        "http_status": capture.http_status,
        "finish_reason": item.finish_reason._value_ if item.finish_reason else "",
        "finish_reason_raw": capture.finish_reason or "",
        "error_code": capture.error_code or "",
        "error_message": _masked(capture.error_message, masker, _ERROR_MESSAGE_CHARS),
        "cause": cause.name._value_ if cause else "",
        "cause_rule": cause.rule if cause else "",
        "cause_advice": cause.advice._value_ if cause else "",
        "cause_detail": _masked(cause.detail, masker, _CAUSE_DETAIL_CHARS) if cause else "",
        "raw_content_bytes": item.raw_content_bytes,
        "content_bytes": item.content_bytes,
        "latency_ms": capture.latency_ms,
        "ttft_ms": capture.ttft_ms,
        "overhead_ms": capture.overhead_ms,
        "level": health.level._value_,
        "level_reason": health.reason._value_ if health.reason else "",
        "limit_tokens": health.limit_tokens,
        "limit_source": health.limit_source._value_ if health.limit_source else "",
        "optimal_max_tokens": health.optimal_max_tokens,
        "critical_max_tokens": health.critical_max_tokens,
        "budget_key": item.budget.key,
        "fit_name": capture.fit_id or "",
        "trim_before_bytes": trim.before_bytes if trim else None,
        "trim_after_bytes": trim.after_bytes if trim else None,
        "sent_bytes": item.sent_bytes,
        "sent_messages": item.sent_messages,
        "sent_images": sent.images if sent else None,
        **_composition(capture),
        "estimate_tokens": _estimate(item),
        "prompt_hash": item.prompt_hash,
        "placed_by": placed.placed_by,
        "rules_id": rules_id,
        "started_at": item.started_at,
        "recorded_at": now,
    }


def payload_row(
    placed: Placed,
    *,
    project_id: int,
    call_id: object,
    payload: str,
    masker: Masker,
    keys_of: Callable[[Sequence[str]], list[str]],
    messages: dict[str, object],
) -> dict[str, object] | None:
    """The side row; None when there is nothing to keep. `messages` takes those to store, by key.

    Texts are kept only as far as the project's payload setting allows. keys_of: of messages, by
    their hashes.
    """
    item, capture = placed.item, placed.item.capture
    keeps_text = payload != _OFF
    is_redacted = payload == _REDACTED
    keys: list[str] | None = None
    if keeps_text and capture.messages:
        keys = keys_of(item.message_hashes)
        kept = map(masker.value, capture.messages) if is_redacted else capture.messages
        messages.update(zip(keys, kept, strict=True))
    content = capture.content if keeps_text else None
    told = _metadata(placed)
    row: dict[str, object] = {
        "usage_raw": dict(capture.usage) if capture.usage is not None else None,
        "metadata": masker.value(told) if is_redacted and told else told,
        "trim_dropped": list(capture.trim.dropped) if capture.trim else None,
        # A provider's words among them, as far as they may be kept (core.calls.withheld).
        "attempts": [*map(masker.value, capture.attempts)] or None,
        "message_hashes": keys,
        "offered": _offered(capture),
        "cut": dict(item.cut) if item.cut else None,
        "content": masker.text(content) if content is not None and is_redacted else content,
    }
    if row == _NOTHING_KEPT:
        return None
    row.update(project_id=project_id, started_at=item.started_at, call_id=call_id)
    return row


_NOTHING_KEPT = dict.fromkeys(
    (
        "usage_raw",
        "metadata",
        "trim_dropped",
        "attempts",
        "message_hashes",
        "offered",
        "cut",
        "content",
    )
)


def _offered(capture: Capture) -> dict[str, object] | None:
    """Names of tools and their bytes, which are no texts: as those of results are kept."""
    told = capture.offered
    # As pairs: PostgreSQL's jsonb has members in an order of its own.
    return {"count": told.count, "by_name": [*told.by_name.items()]} if told is not None else None


def _estimate(item: Judged) -> int | None:
    """The tokens of a prompt, by the bytes and images that were sent; null where its bytes are
    unknown, or are those of a part of it."""
    if item.sent_bytes is None or item.capture.sent_is_prompt is False:
        return None
    sent = item.capture.sent
    images = (sent.images if sent else None) or 0
    return item.budget.estimator.tokens_of_request(item.sent_bytes, images=images)


_UNTOLD = Composition()
_NO_COMPOSITION: Mapping[str, object] = dict.fromkeys(
    (
        "sent_system_bytes",
        "sent_tools_bytes",
        "sent_user_bytes",
        "sent_assistant_bytes",
        "sent_results_bytes",
        "sent_image_bytes",
        "sent_other_bytes",
        "sent_results_by_tool",
    )
)


def _composition(capture: Capture) -> Mapping[str, object]:
    """The columns of what fills the prompt. The schemas of tools may be told in either place."""
    if capture.composition is None and capture.sent is None:
        return _NO_COMPOSITION
    told = capture.composition or _UNTOLD
    tools = told.tools
    if tools is None and capture.sent is not None:
        tools = capture.sent.tools_bytes
    return {
        "sent_system_bytes": told.system,
        "sent_tools_bytes": tools,
        "sent_user_bytes": told.user,
        "sent_assistant_bytes": told.assistant,
        "sent_results_bytes": told.tool_results,
        "sent_image_bytes": told.images,
        "sent_other_bytes": told.other,
        "sent_results_by_tool": dict(told.results_by_tool) or None,
    }


def _metadata(placed: Placed) -> dict[str, object] | None:
    given = placed.item.capture.metadata
    if placed.branched_from is None:
        return dict(given) if given else None
    name, generation = placed.branched_from
    return {**(given or {}), "branched_from": {"conversation": name, "generation": generation}}


def _masked(told: str | None, masker: Masker, limit: int) -> str:
    if not told:
        return ""
    text = masker.text(told)
    return text if len(text) <= limit else text[: limit - 1] + "…"
