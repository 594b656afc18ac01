"""`record_call`: report one call to a model."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from helmdash.answers import members
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.captures import to_capture
from helmdash.doors.bodies.reports import CallIn
from helmdash.mcp.arguments import ArgumentShape
from helmdash.mcp.tools.base import Arguments, McpTool, arguments, free_object, number, text
from helmdash.mcp.visit import Report, Visit
from helmdash.operations.recorder import recorder

_CALL_IN = ArgumentShape(CallIn)


async def _record(visit: Visit, given: Arguments, report: Report) -> Mapping[str, object]:
    capture = to_capture(_CALL_IN.read(given), route=CallRoute.MCP)
    # In a thread: a recorder that nobody started stores on the spot.
    promise = await visit.threads.run(
        recorder().record,
        project=visit.project,
        captures=[capture],
        caller=visit.caller.name,
        now=timezone.now(),
    )
    (recorded,) = await recorder().answered(promise)
    return members(recorded)


RECORD_CALL = McpTool(
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
