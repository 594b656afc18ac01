"""`record_call`: report one call to a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Required

from django.utils import timezone
from pydantic import Field, PlainValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from helmdash.core.capture import Capture, CapturedTrim, Sent
from helmdash.mcp import render
from helmdash.mcp.arguments import (
    OPEN,
    STRICT,
    ClientId,
    ConversationId,
    Count,
    FreeObject,
    HttpStatus,
    Milliseconds,
    ModelId,
    Shape,
    SmallPositive,
    Word32,
    Word64,
    Word128,
    Word255,
)
from helmdash.mcp.tools.base import Arguments, Tool, arguments, free_object, number, text
from helmdash.mcp.visit import Report, Visit
from helmdash.operations.recorder import RecorderFull, recorder
from helmdash.operations.recording import Recorded

_MOMENT = "must be an RFC 3339 time of the years 2000 to 2100, such as 2026-01-31T12:00:00Z"


def _moment(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(value.upper()) if isinstance(value, str) else None
    except ValueError:
        found = None
    # A clock outside these years is broken; a time without its zone is no moment.
    if found is None or found.tzinfo is None or not 2000 <= found.year <= 2100:
        raise PydanticCustomError("moment", _MOMENT)
    return found.astimezone(UTC)


class TrimIn(TypedDict, total=False):
    """What was cut before sending; the `compaction` of a fit may be sent as it is."""

    __pydantic_config__ = OPEN  # type: ignore[misc]

    before_bytes: Required[Count]
    after_bytes: Required[Count]
    dropped: Annotated[list[Word255], Field(max_length=1000)] | None


class SentIn(TypedDict, total=False):
    """The size of what was sent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    bytes: Count | None
    messages: Count | None
    tools_bytes: Count | None
    images: Count | None


class CallIn(TypedDict, total=False):
    """The body of POST /calls. Null and left out mean the same: not known."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    id: ClientId | None
    conversation: ConversationId | None
    model: Required[ModelId]
    provider: Word64 | None
    pack: Word128 | None
    purpose: Word32 | None
    correlation_id: Word128 | None
    attempt: SmallPositive | None
    attempts: Annotated[list[FreeObject], Field(max_length=100)] | None
    caller: Word128 | None
    upstream_model: Word255 | None
    prompt_variant: Word32 | None
    response_format: Word32 | None
    usage: FreeObject | None
    finish_reason: Word64 | None
    raw_content_len: Count | None
    latency_ms: Milliseconds | None
    ttft_ms: Milliseconds | None
    overhead_ms: Milliseconds | None
    status: Literal["success", "error", "cancelled"] | None
    http_status: HttpStatus | None
    error_code: Word128 | None
    error_message: str | None
    trim: TrimIn | None
    sent: SentIn | None
    messages: Annotated[list[FreeObject], Field(max_length=10_000)] | None
    content: str | None
    decoded: bool | None
    started_at: Annotated[datetime, PlainValidator(_moment)] | None
    metadata: FreeObject | None
    fit_id: Word64 | None


_CALL_IN = Shape(CallIn)


async def _record(visit: Visit, given: Arguments, report: Report) -> render.Body:
    capture = _to_capture(_CALL_IN.read(given))
    # In a thread: a recorder that nobody started stores on the spot.
    answers = await visit.threads.run(
        recorder().record,
        project=visit.project,
        captures=[capture],
        caller=visit.caller.name,
        now=timezone.now(),
    )
    (recorded,) = await _wait(asyncio.wrap_future(answers), answers.cancel)
    return render.recorded(recorded)


async def _wait(
    answers: asyncio.Future[tuple[Recorded, ...]], withdraw: Callable[[], bool]
) -> tuple[Recorded, ...]:
    """The answers, as `Recorder.record_and_wait` waits for them. Raises the same."""
    patience, grace = recorder().patience
    done, _ = await asyncio.wait({answers}, timeout=patience)
    if not done:
        if withdraw():
            raise RecorderFull("The recorder has too much to store just now.")
        done, _ = await asyncio.wait({answers}, timeout=grace)
    if not done:
        raise RecorderFull("The database takes too long to answer.")
    return answers.result()


def _to_capture(call: CallIn) -> Capture:
    """The report as a value. Null and blank words say as little as missing ones."""
    told: dict[str, Any] = {
        name: value
        for name, value in call.items()
        # An answer without a letter is an answer.
        if value is not None and (value != "" or name == "content")
    }
    for name, convert in _CONVERSIONS.items():
        if name in told:
            told[name] = convert(told[name])
    return Capture(**told)


def _trim(trim: TrimIn) -> CapturedTrim:
    return CapturedTrim(
        before_bytes=trim["before_bytes"],
        after_bytes=trim["after_bytes"],
        dropped=tuple(trim.get("dropped") or ()),
    )


def _sent(sent: SentIn) -> Sent:
    return Sent(
        bytes=sent.get("bytes"),
        messages=sent.get("messages"),
        tools_bytes=sent.get("tools_bytes"),
        images=sent.get("images"),
    )


_CONVERSIONS: dict[str, Callable[[Any], object]] = {
    "latency_ms": round,
    "ttft_ms": round,
    "overhead_ms": round,
    "trim": _trim,
    "sent": _sent,
    "messages": tuple,
    "attempts": tuple,
}

RECORD_CALL = Tool(
    name="record_call",
    description="Report one call to a model. Gives the health of its conversation and, if the "
    "call gave nothing usable, the cause and what to do. Every field of POST /api/v1/calls works.",
    schema=arguments(
        {
            "model": text("As asked for"),
            "conversation": text("Id of the dialogue"),
            "id": text("Your own id; a repeat gets the first answer"),
            "usage": free_object("As the provider reports it"),
            "finish_reason": text("The provider's own word"),
            "content": text("The reply"),
            "raw_content_len": number("UTF-8 bytes of the reply"),
            "purpose": text("chat, plan, route, filter, verify ..."),
            "correlation_id": text("Ties calls of one story"),
            "pack": text(),
            "latency_ms": {"type": "number"},
            "status": {"enum": ["success", "error", "cancelled"]},
            "http_status": number(),
            "error_code": text(),
            "error_message": text(),
            "decoded": {"type": "boolean", "description": "false: the JSON due was unreadable"},
            "fit_id": text("The fit the prompt came from"),
        },
        required=("model",),
    ),
    scope="record",
    run=_record,
)
