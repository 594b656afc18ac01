"""Replies that an upstream keeps, asked for by their ids: only those that the project has made.

Not calls: no model answers, so nothing is recorded. But the end of a reply that was made in the
background, and its usage, are told here alone: they complete the call that made it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from helmdash.core.calls.capture import Status
from helmdash.core.upstreams.endpoints import Endpoint, WireFormat
from helmdash.doors.asgi import Scope
from helmdash.doors.faults import DatabaseUnavailable
from helmdash.gateway.forwarding.upstream_reply import MOST_REPLY_BYTES, error_of
from helmdash.gateway.refusals import Refusal, bad_request, not_found
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.gateway.requests.request import GatewayRequest
from helmdash.gateway.responder import Responder, passed_headers
from helmdash.operations.recording.later_replies import LaterReply
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai_responses.kept import EndedInStream, ended_reply, kept_request
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Reply
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.kept_replies import Keeper
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed

_log = logging.getLogger(__name__)


async def answer(
    request: GatewayRequest,
    scope: Scope,
    responder: Responder,
    *,
    keepers: ReplyKeepers,
    client: UpstreamClient,
) -> None:
    """What the upstream says of the reply. Raises Refusal: 404 for one of another project, 400 for
    parameters beyond number."""
    path = request.route.kept or ""
    reply_id = path.partition("/")[0]
    keeper, endpoint = await _keeper(request, keepers, reply_id)
    try:
        asked = kept_request(
            path, endpoint=endpoint, method=scope["method"], query=scope["query_string"]
        )
    except BadRequest as error:
        raise bad_request(str(error)) from None
    project = request.key_context.caller.project

    async def note(reply: Reply | None) -> None:
        if reply is not None:
            await _note_end(project, reply_id, reply, keepers, is_own=keeper.is_own)

    try:
        await _relay(endpoint, asked, path, responder, client, note)
    except UpstreamFailed as failure:
        if responder.has_begun:
            raise
        await responder.error(error_of(failure))


async def _note_end(
    project: ProjectInfo, reply_id: str, reply: Reply, keepers: ReplyKeepers, *, is_own: bool
) -> None:
    """Before the client has its answer. What is missed now is told anew whenever somebody asks."""
    status: Status = "success"
    if reply.finish_reason == "cancelled":
        status = "cancelled"
    elif reply.error is not None:
        status = "error"
    later = LaterReply(
        usage=reply.usage,
        finish_reason=reply.finish_reason,
        status=status,
        error_code=reply.error.code if reply.error is not None else None,
        error_message=reply.error.message if reply.error is not None else None,
    )
    try:
        await keepers.complete(project, reply_id, later, is_own=is_own)
    except DatabaseUnavailable:
        _log.warning("The end of a response could not be added to its call.")
    except Exception:
        # The answer is there, and a fault of ours must not keep it from the client.
        _log.exception("The end of a response could not be added to its call.")


async def _keeper(
    request: GatewayRequest, keepers: ReplyKeepers, reply_id: str
) -> tuple[Keeper, Endpoint]:
    keeper = await keepers.find(request.key_context.caller.project.id, reply_id)
    if keeper is not None:
        for endpoint in request.key_context.endpoints:
            if keeper.is_that_of(endpoint) and endpoint.may_speak(WireFormat.RESPONSES):
                return keeper, endpoint
    raise unknown_reply(reply_id)


def unknown_reply(reply_id: str) -> Refusal:
    """404 as OpenAI words it, whether nobody has made it or somebody else."""
    return not_found(f"Response with id '{reply_id}' not found.")


async def _relay(
    endpoint: Endpoint,
    asked: HttpRequest,
    path: str,
    responder: Responder,
    client: UpstreamClient,
    note: Callable[[Reply | None], Awaitable[None]],
) -> None:
    """Pass the upstream's answer on. note: gets the reply that it tells the end of, before the
    client has that."""
    opened = await client.open(endpoint, asked)
    kind = opened.headers.get("content-type", "")
    headers = passed_headers(opened.headers)
    try:
        if not kind.startswith("text/event-stream"):
            body = await opened.read(MOST_REPLY_BYTES)
            kinds = [(b"content-type", (kind or "application/json").encode("latin-1", "replace"))]
            if opened.status == 200:
                await note(ended_reply(path, body))
            await responder.whole(opened.status, body, [*headers, *kinds])
            return
        await responder.begin_stream(kind, headers, fail=responder.client.write_error)
        ended = EndedInStream(path)
        async for chunk in opened.chunks():
            was_open = ended.reply is None
            ended.feed(chunk)
            if was_open:
                await note(ended.reply)
            await responder.chunk(chunk, is_last=False)
        if ended.reply is None:
            ended.flush()
            await note(ended.reply)
        await responder.chunk(b"", is_last=True)
    finally:
        await opened.close()
