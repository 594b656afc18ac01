"""The record of a call that has ended: all that it told."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns

from helmdash.core.calls.capture import MOST_REPLY_ID_CHARS, Capture, SentSizes
from helmdash.core.calls.routes import CallRoute
from helmdash.core.text.tokens import utf8_bytes
from helmdash.gateway.forwarding.capture.error_codes import kept_error_code
from helmdash.gateway.forwarding.names_elsewhere import names_elsewhere, reply_id_elsewhere
from helmdash.gateway.message_digest import call_links, kept_messages
from helmdash.gateway.requests.exchange import KEEPS_NOTHING, NS_PER_MS, Exchange
from helmdash.providers.wire import ChatRequest, Other, Reply

# What Anthropic and OpenAI call a summary that the provider itself has put into a history.
_COMPACTION = "compaction"
# How OpenAI answers a request that it works on in the background.
_UNDER_WAY = ("queued", "in_progress")


def capture_of(exchange: Exchange) -> Capture:
    """The call as the recorder takes it: what the client sent, what came back, and how long it
    took."""
    now_ns = perf_counter_ns()
    request, remediation = exchange.outgoing.chat, exchange.remediation
    response_format, sent = _response_format(request), _sent(exchange)
    reply, text_len, reasoning_len = _outcome(exchange)
    metadata, attempts = _metadata(exchange, reply), _attempts(exchange)
    error = exchange.error or reply.error
    keeps_texts = exchange.key_context.caller.project.payload != KEEPS_NOTHING
    has_reply = text_len is not None
    error_code = kept_error_code(exchange, error, keeps_texts=keeps_texts) if error else None
    messages = kept_messages(request) if request and keeps_texts else None
    kept_id = _kept_id(exchange, reply)
    links = None
    if exchange.request is not None:
        links = call_links(
            exchange.request,
            exchange.traces,
            reply,
            is_retry=exchange.options.is_retry,
            kept_id=kept_id,
        )
    return Capture(
        id=exchange.call_id,
        also_known=names_elsewhere(exchange, reply),
        reply_id=reply_id_elsewhere(exchange, reply),
        model=exchange.model,
        budget_model=exchange.budget_model,
        trial=exchange.told_trial,
        conversation=exchange.conversation,
        parent=exchange.parent,
        lane=exchange.told_lane,
        context=exchange.agent.context if exchange.agent is not None else None,
        routes=(CallRoute.GATEWAY,),
        round_number=remediation.round_number if remediation is not None else None,
        provider=exchange.endpoint.name if exchange.endpoint else None,
        pack=exchange.options.pack,
        purpose=exchange.told_purpose,
        correlation_id=exchange.options.correlation_id,
        attempt=max(len(attempts), 1),
        caller=exchange.key_context.caller.name,
        client_name=exchange.client.name if exchange.client else None,
        client_version=(exchange.client.version or None) if exchange.client else None,
        client_window=exchange.client_window,
        upstream_model=reply.model or exchange.upstream_model,
        response_format=response_format,
        usage=reply.usage,
        finish_reason="refusal" if reply.refusal and has_reply else reply.finish_reason,
        raw_content_len=text_len,
        latency_ms=(now_ns - exchange.started_ns) // NS_PER_MS,
        ttft_ms=(
            (exchange.first_ns - exchange.started_ns) // NS_PER_MS
            if exchange.first_ns is not None
            else None
        ),
        overhead_ms=round(exchange.before_ms, 3),
        status="error" if error is not None and exchange.status == "success" else exchange.status,
        http_status=exchange.http_status,
        error_code=error_code,
        error_message=error.message if error else None,
        error_is_own=exchange.error is not None and exchange.error_is_own,
        sent=sent,
        sent_is_prompt=False if reply.context_edits or not _is_whole(request) else None,
        composition=exchange.outgoing.composition,
        offered=exchange.offered,
        messages=messages,
        content=(reply.text or reply.refusal or "") if has_reply else None,
        tool_calls=len(reply.tool_calls) if has_reply else None,
        reasoning_len=reasoning_len,
        window=exchange.window,
        server_window=exchange.server_window,
        refused_window=exchange.refused_window,
        links=links,
        kept_reply_id=kept_id,
        is_kept_by_own=_is_kept_by_own(exchange) if kept_id else None,
        may_be_truncated=request.may_truncate if request is not None else None,
        started_at=exchange.started_at,
        metadata=metadata,
        attempts=attempts,
    )


def _outcome(exchange: Exchange) -> tuple[Reply, int | None, int | None]:
    """The reply as far as it came, and the bytes of its text and reasoning; null for none.

    Where pictures or speech are all that is to be seen, a text is not missing.
    """
    reply, text_len, reasoning_len = _came(exchange)
    return reply, None if reply.has_media and not text_len else text_len, reasoning_len


def _came(exchange: Exchange) -> tuple[Reply, int | None, int | None]:
    streamed = exchange.collector
    if streamed is not None:
        return streamed.reply(), streamed.text_bytes, streamed.reasoning_bytes
    reply = exchange.reply
    if reply is not None and reply.finish_reason in _UNDER_WAY:
        return reply, None, None  # what it will say is asked for later, by its id
    if reply is not None and exchange.request is not None:
        return reply, utf8_bytes(reply.text), utf8_bytes(reply.reasoning)
    # Without a chat request there is no text in a reply that could be missing.
    return reply or Reply(), None, None


def _attempts(exchange: Exchange) -> tuple[Mapping[str, object], ...]:
    """More than one, or a failed one: a single good one has nothing to tell."""
    attempts = exchange.attempts
    if exchange.refused_attempts:
        attempts = tuple(
            {**each, "number": number}
            for number, each in enumerate((*exchange.refused_attempts, *attempts), 1)
        )
    return attempts if len(attempts) > 1 else ()


def _sent(exchange: Exchange) -> SentSizes:
    request = exchange.outgoing.chat
    return SentSizes(
        bytes=exchange.outgoing.text_bytes,
        messages=len(request.messages) if request else None,
        tools_bytes=exchange.tools_bytes,
        images=exchange.outgoing.images if request else None,
    )


def _kept_id(exchange: Exchange, reply: Reply) -> str | None:
    """The id by which the provider keeps the reply; None: it keeps none, or we do not know it."""
    request = exchange.request
    keeps = exchange.is_native and request is not None and request.keeps_reply
    is_usable = reply.id is not None and len(reply.id) <= MOST_REPLY_ID_CHARS
    return reply.id if keeps and is_usable else None


def _is_kept_by_own(exchange: Exchange) -> bool:
    return exchange.endpoint is not None and not exchange.endpoint.is_shared


def _is_whole(request: ChatRequest | None) -> bool:
    """Whether what was sent is all that the provider reads: it goes on from nothing that is kept
    there, and holds no compaction of the provider's, before which it reads nothing."""
    if request is None:
        return True
    return not request.is_fragment and not [
        part
        for message in request.messages
        for part in message.parts
        if type(part) is Other and part.kind == _COMPACTION
    ]


def _metadata(exchange: Exchange, reply: Reply) -> dict[str, object]:
    told: dict[str, object] = {"gateway": exchange.route.client.name, **exchange.notes}
    if exchange.request is not None:
        told["stream"] = exchange.request.stream
    if exchange.remediation is not None:
        told["remediation"] = exchange.remediation.action
    if reply.context_edits:
        told["context_edits"] = [dict(edit) for edit in reply.context_edits]
    if exchange.metadata:
        told["client"] = dict(exchange.metadata)
    return told


def _response_format(request: ChatRequest | None) -> str | None:
    if request is None or request.json_mode is None:
        return None
    return "json_object" if request.json_mode.schema is None else "json_schema"
