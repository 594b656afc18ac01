"""A stream on its way to the client, piece by piece, read for the record as it passes."""

from __future__ import annotations

from time import perf_counter_ns

from helmdash.doors.http.turns import Turns
from helmdash.gateway.forwarding.capture.recording import CallRecording
from helmdash.gateway.forwarding.capture.tally import StreamTally
from helmdash.gateway.forwarding.names_elsewhere import request_id_of
from helmdash.gateway.forwarding.response_headers import own_headers
from helmdash.gateway.forwarding.streams.stream_pieces import StreamPieces
from helmdash.gateway.forwarding.upstream_reply import StreamReply
from helmdash.gateway.forwarding.watching import ClientWatch
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.responder import Responder


async def relay(
    exchange: Exchange,
    stream: StreamReply,
    responder: Responder,
    watch: ClientWatch,
    recording: CallRecording,
    turns: Turns,
) -> None:
    """Hand a stream on to its end, and the record over before the client's last byte.

    Raises UpstreamFailed where it breaks off, Refusal where it cannot be recorded, and
    CancelledError where the call is cut short; the client's stream is open then, but where it could
    not even begin.
    """
    attempt, opened = stream.attempt, stream.opened
    exchange.heard_ns = perf_counter_ns()
    exchange.request_id = request_id_of(stream.headers)
    pipe = attempt.translator.pipe()
    headers = [*own_headers(exchange), *stream.headers]
    try:
        # Where nothing of it can be read, the client's stream does not begin.
        pieces = StreamPieces(opened.reading(), turns)
        await responder.begin_stream(stream.content_type, headers, fail=pipe.fail)
        tally = StreamTally(exchange)
        is_last = False
        while not is_last:
            data = pieces.due(await pieces.next_piece())
            is_last = not data
            out, events = pipe.flush() if is_last else pipe.feed(attempt.without_secret(data))
            tally.take(events, is_last=is_last)
            if is_last:
                watch.stop()
            if is_last or tally.has_ended:
                # Before the client sees its last event, not after.
                recording.settle(exchange)
                if exchange.unkept is not None:
                    await recording.secure(exchange)
            await responder.chunk(out, is_last=is_last)
    finally:
        await opened.close()
