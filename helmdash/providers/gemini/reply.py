"""Gemini's whole replies (GenerateContentResponse), both ways, and its embeddings and counts.

Source: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse. A prompt that
was blocked gives `promptFeedback` and no candidates; a candidate may come without content.
"""

from __future__ import annotations

from typing import assert_never

import orjson

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.calls.usage import LARGEST_COUNT, normalise_usage
from helmdash.providers.gemini.errors import error_of, find_error, undecodable, write_error
from helmdash.providers.gemini.parts import BLOBS, camel_members, read_part, write_reply_parts
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.reported import object_in, objects_in, text_in
from helmdash.providers.shared.tool_ids import CallIds, next_number
from helmdash.providers.wire import ChatRequest, Image, Json, Object, Other, Part, Reply, Text

# https://ai.google.dev/api/generate-content#FinishReason: a reason of Gemini's stays as it is.
_FINISH_REASONS = frozenset(
    """STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER BLOCKLIST PROHIBITED_CONTENT SPII
    MALFORMED_FUNCTION_CALL IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_OTHER NO_IMAGE
    IMAGE_RECITATION UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE
    MALFORMED_RESPONSE MODEL_ARMOR""".split()
)
# Reasons that only a blocked prompt has.
_BLOCK_REASONS = frozenset({"JAILBREAK"})

# --- from Gemini


def read_reply(body: bytes, *, request: ChatRequest) -> Reply:
    """Read a whole reply. Never raises: what cannot be read is an error."""
    value = read_json(body)
    error = find_error(value)
    if error is not None:
        return Reply(error=error_of(error))
    if not isinstance(value, dict):
        return Reply(error=undecodable())
    chunk = camel_members(value)
    parts = parts_of(chunk, CallIds(count=next_number(request.messages)))
    return Reply(
        id=text_in(chunk, "responseId"),
        model=text_in(chunk, "modelVersion"),
        parts=parts,
        finish_reason=finish_of(chunk),
        usage=usage_of(chunk),
        has_media=any(map(is_media, parts)) or None,
    )


def is_media(part: Part) -> bool:
    """Whether it is a picture, or speech or another file."""
    return isinstance(part, Image) or (isinstance(part, Other) and part.kind in BLOBS)


def parts_of(chunk: Object, ids: CallIds) -> tuple[Part, ...]:
    """The parts of the first candidate."""
    content = object_in(_candidate(chunk), "content") or {}
    return tuple(part for raw in objects_in(content, "parts") for part in read_part(raw, ids.call))


def finish_of(chunk: Object) -> str | None:
    """Why the first candidate ended, or why the prompt was blocked, in Gemini's words; None:
    neither."""
    reason = text_in(_candidate(chunk), "finishReason")
    if reason is not None:
        return reason
    return text_in(camel_members(object_in(chunk, "promptFeedback") or {}), "blockReason")


def usage_of(chunk: Object) -> Object | None:
    """`usageMetadata` with Gemini's own names; None where the chunk has none."""
    return object_in(chunk, "usageMetadata") or None


def _candidate(chunk: Object) -> dict[str, Json]:
    """The candidate of index 0; only the first of several is read."""
    candidates = objects_in(chunk, "candidates")
    return camel_members(next((each for each in candidates if not each.get("index")), {}))


# --- to a client


def write_reply(reply: Reply, *, answer: ReplyContext) -> bytes:
    """A whole reply as Gemini would send it; an error inside a 200 becomes Gemini's error."""
    if reply.error is not None:
        return write_error(reply.error)
    texts = (Text(text=reply.refusal),) if reply.refusal else ()
    return orjson.dumps(
        chunk_of(
            write_reply_parts((*reply.parts, *texts)),
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            reply_id=reply.id or answer.call_id,
            model=reply.model or answer.model,
        )
    )


def chunk_of(
    parts: list[dict[str, Json]],
    *,
    finish_reason: str | None,
    usage: Object | None,
    reply_id: str,
    model: str,
) -> dict[str, Json]:
    """One GenerateContentResponse; what is None, not known, is left out."""
    feedback, candidates = None, None
    if not parts and finish_reason in _BLOCK_REASONS:
        feedback = {"blockReason": finish_reason}
    else:
        content = {"role": "model", "parts": parts} if parts else None
        reason = _finish_word(finish_reason)
        candidates = [without_nones(content=content, finishReason=reason, index=0)]
    return without_nones(
        candidates=candidates,
        promptFeedback=feedback,
        usageMetadata=write_usage(usage),
        modelVersion=model,
        responseId=reply_id,
    )


def _finish_word(reason: str | None) -> str | None:
    if reason in _FINISH_REASONS:
        return reason
    # Gemini says STOP for function calls, too. It has no word for a refusal: the classifiers that
    # cut a reply short elsewhere are its SAFETY.
    normalised = normalise_finish_reason(reason)
    match normalised:
        case None:
            return None
        case FinishReason.STOP | FinishReason.TOOL_CALLS:
            return "STOP"
        case FinishReason.LENGTH:
            return "MAX_TOKENS"
        case FinishReason.CONTENT_FILTER | FinishReason.REFUSAL:
            return "SAFETY"
        case FinishReason.ERROR | FinishReason.CANCELLED | FinishReason.OTHER:
            return "OTHER"
        case _:
            assert_never(normalised)


def write_usage(usage: Object | None) -> dict[str, Json] | None:
    """Usage in Gemini's names; Gemini's own stays as it is, and unknown counts are left out. None:
    there is none to write.

    Gemini counts thoughts beside the candidates, where the normalised count holds both.
    """
    if usage is None:
        return None
    if "promptTokenCount" in usage or "totalTokenCount" in usage:
        # Beyond this no count is one; another vendor's reader may have kept it exact.
        return {
            name: value
            for name, value in usage.items()
            if not isinstance(value, int) or abs(value) <= LARGEST_COUNT
        }
    found = normalise_usage(usage)
    visible = found.completion_tokens
    if visible is not None and found.reasoning_tokens is not None:
        visible = max(0, visible - found.reasoning_tokens)
    counts = without_nones(
        promptTokenCount=found.prompt_tokens,
        cachedContentTokenCount=found.cached_tokens,
        candidatesTokenCount=visible,
        thoughtsTokenCount=found.reasoning_tokens,
        totalTokenCount=found.total_tokens,
    )
    return counts or None
