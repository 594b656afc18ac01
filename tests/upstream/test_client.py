from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.core.upstreams.endpoints import EndpointSource
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream.client import Timeouts, UpstreamClient
from helmdash.upstream.coding import Inflater, Unreadable
from helmdash.upstream.failures import CODES, FailureKind, UpstreamFailed
from helmdash.upstream.refusals import words_of
from helmdash.upstream.retries import asked_seconds, is_worth_another, wait_seconds
from tests.support.certificates import certificate, issued_certificate
from tests.upstream.servers import KEY, REQUEST, Exchange, Handler, calling, endpoint, run, serving

LIMIT = 1 << 20


async def answer(exchange: Exchange) -> None:
    exchange.say("200 OK", b'{"ok":true}', "X-Request-Id: r1", "X-Twice: a", "x-twice: b")


async def busy(exchange: Exchange) -> None:
    exchange.say("503 Busy", b'{"error":"busy"}', "Retry-After: 0")


async def hang(exchange: Exchange) -> None:
    await exchange.wait_until_left()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def failure(
    client: UpstreamClient, port: int, request: HttpRequest = REQUEST, **over: Any
) -> UpstreamFailed:
    async def call() -> bytes:
        opened = await client.open(endpoint(port, **over), request)
        return await opened.read(LIMIT)

    with pytest.raises(UpstreamFailed) as caught:
        await call()
    assert KEY not in str(caught.value)
    assert KEY not in json.dumps(caught.value.attempts)
    return caught.value


def test_an_answer_comes_with_its_status_headers_and_one_attempt() -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            body = await opened.read(LIMIT)
            await opened.close()
            await opened.close()

            assert (opened.status, body) == (200, b'{"ok":true}')
            assert opened.headers["x-request-id"] == "r1"
            assert opened.headers["x-twice"] == "a, b"
            (attempt,) = opened.attempts
            assert (attempt["number"], attempt["status"]) == (1, 200)
            json.dumps(opened.attempts)
            head = server.heads[0]
            assert head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
            assert f"authorization: Bearer {KEY}" in head
            assert "accept-encoding: identity" in head
            assert head.lower().count("content-length: 13") == 1
            assert head.lower().count("host: 127.0.0.1") == 1

    run(scene())


def test_a_request_without_a_body_is_a_get() -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), HttpRequest(path="/models?limit=9"))
            await opened.read(LIMIT)

            assert server.heads[0].startswith("GET /v1/models?limit=9 HTTP/1.1\r\n")

    run(scene())


def test_connections_are_kept_and_cookies_are_not() -> None:
    async def sweet(exchange: Exchange) -> None:
        exchange.say("200 OK", b"{}", "Set-Cookie: who=me; Path=/")

    async def scene() -> None:
        async with serving(sweet) as server, calling() as client:
            for _ in range(3):
                opened = await client.open(endpoint(server.port), REQUEST)
                await opened.read(LIMIT)

            assert server.connections == 1
            assert "cookie" not in "".join(server.heads).lower()

    run(scene())


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        # too many requests
        ("429 Too Many Requests", "Retry-After: 0", [429, 200]),
        # the provider's own trouble
        ("500 Oops", "Retry-After: 0", [500, 200]),
        # overloaded, as Anthropic says it
        ("529 Overloaded", "retry-after-ms: 1", [529, 200]),
        # a request that is wrong stays wrong
        ("400 Bad Request", "Retry-After: 0", [400]),
        # no such thing will be implemented in a second
        ("501 Not Implemented", "Retry-After: 0", [501]),
        # asked to stay away for long: the answer goes on to the client
        ("429 Too Many Requests", "Retry-After: 21", [429]),
        # told not to
        ("500 Oops", "x-should-retry: false", [500]),
        # told to
        ("409 Conflict", "x-should-retry: true\r\nRetry-After: 0", [409, 200]),
    ],
)
def test_what_may_pass_is_tried_again(status: str, header: str, expected: list[int]) -> None:
    async def scene() -> None:
        async def refuse(exchange: Exchange) -> None:
            exchange.say(status, f'{{"error":"no, {KEY}"}}'.encode(), header)

        async with serving(refuse, answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            await opened.read(LIMIT)

            assert [attempt["status"] for attempt in opened.attempts] == expected
            assert opened.status == expected[-1]
            assert KEY not in json.dumps(opened.attempts)
            if len(expected) == 2:
                assert opened.attempts[0]["message"] == "no, [key]"
                assert opened.attempts[0]["waited_ms"] in (0, 1)
                assert server.connections == 1, "a small error is read, so its connection is kept"

    run(scene())


QUOTA = {
    "error": {
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "type": "insufficient_quota",
        "code": "insufficient_quota",
    }
}


@pytest.mark.parametrize(
    ("body", "header", "statuses"),
    [
        # OpenAI: the account is empty
        (QUOTA, "x-request-id: r1", [429]),
        # even when it says that another attempt is welcome
        (QUOTA, "x-should-retry: true\r\nRetry-After: 0", [429]),
        # Moonshot and Zhipu have words for it only
        ({"error": {"message": "Insufficient balance.", "code": "1113"}}, "x-a: b", [429]),
        # an account without a card
        (
            {"error": {"message": "Not active, please check your billing details."}},
            "x-a: b",
            [429],
        ),
        # Gemini has the same words for a limit per minute, with the wait beside them
        (
            {
                "error": {
                    "code": 429,
                    "status": "RESOURCE_EXHAUSTED",
                    "message": "You exceeded your current quota, please check your plan and "
                    "billing details. Please retry in 0.1s.",
                }
            },
            "retry-after-ms: 1",
            [429, 200],
        ),
        (
            {
                "error": {
                    "message": "Check your plan and billing details.",
                    "details": [{"retryDelay": "1s"}],
                }
            },
            "x-a: b",
            [429, 200],
        ),
        # OpenAI's rate limit, with an address that speaks of billing
        (
            {"error": {"message": "Limit 3 requests per min. See /account/billing."}},
            "retry-after-ms: 1",
            [429, 200],
        ),
    ],
)
def test_an_account_without_money_is_not_asked_again(
    body: dict[str, Any], header: str, statuses: list[int]
) -> None:
    said = json.dumps(body).encode()

    async def refuse(exchange: Exchange) -> None:
        exchange.say("429 Too Many Requests", said, header)

    async def scene() -> None:
        async with serving(refuse, answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            handed_on = await opened.read(LIMIT)

            assert [attempt["status"] for attempt in opened.attempts] == statuses
            if statuses == [429]:
                assert handed_on == said, "what was read to decide is still there to read"
                assert "waited_ms" not in opened.attempts[0]
                assert len(server.heads) == 1

    run(scene())


def test_a_refusal_that_does_not_end_is_read_only_so_far_before_the_next_attempt() -> None:
    async def flood(exchange: Exchange) -> None:
        exchange.writer.write(b"HTTP/1.1 429 No\r\nTransfer-Encoding: chunked\r\n")
        exchange.writer.write(b"Retry-After: 0\r\n\r\n")
        while True:
            exchange.chunk(b"x" * 65_536)
            await exchange.writer.drain()

    async def scene() -> None:
        async with serving(flood, answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            await opened.read(LIMIT)

            assert [attempt["status"] for attempt in opened.attempts] == [429, 200]
            assert server.connections == 2

    run(scene())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        # a proxy's page: what its title says
        (
            """<html>
            <head><title>502 Bad Gateway</title><style>p {}</style></head>
            <body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></html>""",
            "502 Bad Gateway",
        ),
        # or what is to be seen on it
        ("<html><style>p {}</style><p>Busy.<p>Try &amp; <b>wait</b></html>", "Busy. Try & wait"),
        # the message of JSON, not its braces
        (r'{"error": {"message": "\"gpt\"\nis busy.", "code": 1}}', '"gpt" is busy.'),
        ('{"detail": "No worker."}', "No worker."),
        # what is neither stays as it is
        ("upstream connect error", "upstream connect error"),
        ("", ""),
    ],
)
def test_the_message_of_an_attempt_is_what_a_person_would_read(body: str, words: str) -> None:
    async def refuse(exchange: Exchange) -> None:
        exchange.say("502 Bad Gateway", body.encode(), "Retry-After: 0")

    async def scene() -> None:
        async with serving(refuse, answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            await opened.read(LIMIT)

            assert opened.attempts[0]["message"] == words

    run(scene())


@pytest.mark.parametrize("piece", ["<script>", "<", "<!--", "<title>", "<a ", "</script"])
def test_a_hostile_page_costs_no_time(piece: str) -> None:
    page = ("<html>" + piece * 70_000).encode()
    began = time.thread_time()

    assert len(words_of(502, page, key=None)) <= 300
    assert time.thread_time() - began < 1


def test_the_last_of_three_answers_is_handed_on() -> None:
    async def scene() -> None:
        async with serving(busy) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            body = await opened.read(LIMIT)

            assert (opened.status, body) == (503, b'{"error":"busy"}')
            assert [attempt["number"] for attempt in opened.attempts] == [1, 2, 3]
            assert "waited_ms" not in opened.attempts[-1]

    run(scene())


def test_one_attempt_may_be_all() -> None:
    async def scene() -> None:
        async with serving(busy) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST, max_attempts=1)
            await opened.close()

            assert (opened.status, len(server.heads)) == (503, 1)

    run(scene())


def test_a_port_nobody_listens_on_is_tried_three_times() -> None:
    async def scene() -> None:
        async with calling() as client:
            failed = await failure(client, free_port())

            assert (failed.kind, failed.code) == (FailureKind.UNREACHABLE, "connection_error")
            assert [attempt["error"] for attempt in failed.attempts] == ["unreachable"] * 3

    run(scene())


def test_an_upstream_that_takes_the_request_and_is_silent_is_not_asked_again() -> None:
    async def scene() -> None:
        async with serving(hang) as server, calling() as client:
            failed = await failure(client, server.port, read_timeout_s=0.1)

            assert (failed.kind, len(failed.attempts)) == (FailureKind.TIMEOUT_READ, 1)
            assert len(server.heads) == 1
            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


def test_a_silence_in_the_middle_of_a_stream_ends_it_as_a_read_timeout() -> None:
    async def stall(exchange: Exchange) -> None:
        exchange.start()
        exchange.chunk(b"one")
        await exchange.wait_until_left()

    async def scene() -> None:
        async with serving(stall) as server, calling() as client:
            opened = await client.open(endpoint(server.port, read_timeout_s=0.2), REQUEST)
            chunks = opened.chunks()
            assert await anext(chunks) == b"one"
            with pytest.raises(UpstreamFailed) as caught:
                await anext(chunks)

            assert caught.value.kind is FailureKind.TIMEOUT_READ
            assert opened.attempts[-1]["error"] == "timeout_read"
            assert caught.value.attempts == opened.attempts
            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


def test_a_connection_that_is_never_accepted_times_out() -> None:
    async def scene() -> None:
        # A queue of one that is full: the system drops what comes next.
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            port = deaf.getsockname()[1]
            fillers = [socket.socket() for _ in range(3)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            async with calling() as client:
                failed = await failure(client, port)
            for filler in fillers:
                filler.close()

            assert (failed.kind, failed.code) == (FailureKind.TIMEOUT_CONNECT, "connect_timeout")
            assert len(failed.attempts) == 3

    run(scene())


def test_a_server_that_never_finishes_its_tls_handshake_times_out() -> None:
    async def scene() -> None:
        async with serving(hang) as server, calling() as client:
            failed = await failure(
                client, server.port, base_url=f"https://127.0.0.1:{server.port}/v1"
            )

            assert failed.kind is FailureKind.TIMEOUT_CONNECT

    run(scene())


def test_a_server_without_tls_is_told_apart_and_not_asked_again() -> None:
    async def scene() -> None:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with calling() as client:
            failed = await failure(client, port, base_url=f"https://127.0.0.1:{port}")
        server.close()

        assert (failed.kind, failed.code) == (FailureKind.TLS, "tls_error")
        assert len(failed.attempts) == 1

    run(scene())


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    async def scene() -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate(tmp_path))
        asked: list[asyncio.StreamReader] = []
        server = await asyncio.start_server(
            lambda reader, writer: asked.append(reader), "127.0.0.1", 0, ssl=tls
        )
        port = server.sockets[0].getsockname()[1]
        async with calling() as client:
            failed = await failure(client, port, base_url=f"https://127.0.0.1:{port}")
        server.close()

        assert (failed.kind, len(failed.attempts), asked) == (FailureKind.TLS, 1, [])
        assert "certificate" in failed.message

    run(scene())


def test_a_companys_own_authority_is_trusted_under_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3.13 on Python's own context refuses what `openssl req -x509` makes."""
    authority, public, private = issued_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))

    async def scene() -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(public, private)
        async with serving(answer, tls=tls) as server, calling() as client:
            opened = await client.open(
                endpoint(server.port, base_url=f"https://127.0.0.1:{server.port}/v1"), REQUEST
            )

            assert await opened.read(LIMIT) == b'{"ok":true}'
            await opened.close()

    run(scene())


def test_no_error_drags_the_key_along() -> None:
    async def speak(exchange: Exchange) -> None:
        exchange.writer.write(b"220 mail.example ESMTP\r\n\r\n")

    async def scene() -> None:
        async with serving(speak) as server, calling() as client:
            error: BaseException | None = await failure(client, server.port)

        while error is not None:
            assert KEY not in repr(error)
            assert KEY not in repr(vars(error))
            error = error.__cause__ or error.__context__

    run(scene())


def unsent() -> int:
    """Bytes that any connection of this process still wants to send."""
    transports = [one for one in gc.get_objects() if type(one).__name__ == "TCPTransport"]
    return sum(one.get_write_buffer_size() for one in transports)


def test_a_server_that_does_not_take_the_whole_request_times_out_in_writing() -> None:
    async def scene() -> None:
        async def deaf(exchange: Exchange) -> None:
            await asyncio.sleep(5)

        deaf.ignores_body = True  # type: ignore[attr-defined]
        huge = HttpRequest(path="/x", body=b"x" * 30_000_000)
        async with serving(deaf) as server, calling() as client:
            failed = await failure(client, server.port, huge)

            assert (failed.kind, failed.code) == (FailureKind.TIMEOUT_WRITE, "write_timeout")
            assert len(failed.attempts) == 1
            # What was not taken is let go of, and its connection with it.
            await asyncio.sleep(0.1)
            assert unsent() == 0

    run(scene())


def test_a_large_request_that_is_taken_may_be_thought_about_for_longer_than_it_took() -> None:
    async def think(exchange: Exchange) -> None:
        await asyncio.sleep(0.4)  # longer than the write timeout
        exchange.say("200 OK", str(len(exchange.body)).encode())

    async def scene() -> None:
        large = HttpRequest(path="/x", body=b"x" * 1_000_000)
        async with serving(think) as server, calling() as client:
            opened = await client.open(endpoint(server.port), large)

            assert await opened.read(LIMIT) == b"1000000"

    run(scene())


def test_more_calls_than_connections_wait_and_then_fail_by_name() -> None:
    async def scene() -> None:
        async with serving(hang) as server, calling(most_connections=1) as client:
            first = asyncio.create_task(client.open(endpoint(server.port), REQUEST))
            while not server.heads:
                await asyncio.sleep(0.01)
            failed = await failure(client, server.port)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

            assert (failed.kind, failed.code) == (FailureKind.TIMEOUT_POOL, "pool_timeout")

    run(scene())


def test_a_body_that_breaks_off_is_not_a_whole_one() -> None:
    async def break_off(exchange: Exchange) -> None:
        exchange.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        await exchange.hang_up()

    async def scene() -> None:
        async with serving(break_off) as server, calling() as client:
            failed = await failure(client, server.port)

            assert (failed.kind, failed.code) == (FailureKind.CLOSED_EARLY, "connection_closed")
            assert (len(failed.attempts), len(server.heads)) == (1, 1)
            assert failed.attempts[0]["status"] == 200
            assert failed.attempts[0]["error"] == "closed_early"

    run(scene())


@pytest.mark.parametrize("pause", [0.0, 0.05])
@pytest.mark.parametrize("first", [b"", b"one"])
def test_a_body_that_stops_being_http_ends_at_once(pause: float, first: bytes) -> None:
    async def spoil(exchange: Exchange) -> None:
        exchange.start()
        await asyncio.sleep(pause)
        if first:
            exchange.chunk(first)
            await asyncio.sleep(pause)
        exchange.writer.write(b"ZZZ\r\nbad")
        await exchange.wait_until_left()

    async def scene() -> None:
        async with serving(spoil) as server, calling() as client:
            began = time.monotonic()
            failed = await failure(client, server.port, read_timeout_s=30.0)

            assert time.monotonic() - began < 15  # not for as long as one waits for a byte
            if not pause:
                # all in one packet: the head may be lost with the rest
                assert failed.kind in (FailureKind.CLOSED_EARLY, FailureKind.MISCONFIGURED)
                return
            assert (failed.kind, failed.code) == (FailureKind.CLOSED_EARLY, "connection_closed")
            assert "not HTTP" in failed.message
            assert failed.attempts[0]["error"] == "closed_early"
            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


def test_bytes_that_are_not_http_and_come_while_nobody_reads_are_told_later() -> None:
    async def spoil(exchange: Exchange) -> None:
        exchange.start()
        exchange.chunk(b"one")
        await asyncio.sleep(0.05)
        exchange.writer.write(b"ZZZ\r\nbad")

    async def scene() -> None:
        async with serving(spoil) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            chunks = opened.chunks()
            assert await anext(chunks) == b"one"
            await asyncio.sleep(0.2)
            with pytest.raises(UpstreamFailed) as caught:
                await anext(chunks)

            assert caught.value.kind is FailureKind.CLOSED_EARLY
            assert "not HTTP" in caught.value.message

    run(scene())


def test_a_peer_that_keeps_the_line_busy_without_a_byte_of_body_is_left() -> None:
    async def dribble(exchange: Exchange) -> None:
        exchange.start()
        exchange.chunk(b"one")
        exchange.writer.write(b"5;")  # an extension of a chunk, without end
        for _ in range(100):
            exchange.writer.write(b"x")
            await asyncio.sleep(0.05)

    async def scene() -> None:
        async with serving(dribble) as server, calling() as client:
            began = time.monotonic()
            failed = await failure(client, server.port, read_timeout_s=0.2)

            # A peer that was heard to its end, after five seconds, would be CLOSED_EARLY.
            assert failed.kind is FailureKind.TIMEOUT_READ
            assert time.monotonic() - began > 1.0

    run(scene())


def test_a_reader_that_takes_its_time_is_not_taken_for_a_silent_upstream() -> None:
    async def slow(exchange: Exchange) -> None:
        for _ in range(3):
            await asyncio.sleep(0.1)
            exchange.chunk(b"x")
        exchange.chunk(b"")

    async def start(exchange: Exchange) -> None:
        exchange.start()
        await slow(exchange)

    async def scene() -> None:
        async with serving(start) as server, calling() as client:
            opened = await client.open(endpoint(server.port, read_timeout_s=0.3), REQUEST)
            chunks = opened.chunks()
            assert await anext(chunks) == b"x"
            await asyncio.sleep(1.4)

            assert b"".join([chunk async for chunk in chunks]) == b"xx"
            assert [chunk async for chunk in chunks] == [], "the end stays the end"

    run(scene())


def test_closing_the_client_ends_a_reader_that_waits() -> None:
    async def scene() -> None:
        async with serving(endless) as server, calling() as client:
            opened = await client.open(endpoint(server.port, read_timeout_s=30.0), REQUEST)
            chunks = opened.chunks()
            assert await anext(chunks) == b"one"
            waiting = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0.05)
            await client.aclose()
            with pytest.raises(UpstreamFailed) as caught:
                await asyncio.wait_for(waiting, 2)

            assert caught.value.kind is FailureKind.CLOSED_EARLY
            assert "HTTP" not in caught.value.message

    run(scene())


def test_a_kept_connection_that_is_reset_is_no_unheard_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def reset(exchange: Exchange) -> None:
        exchange.say("200 OK", b"{}")
        await asyncio.sleep(0.05)
        made = exchange.writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        exchange.writer.transport.abort()

    async def scene() -> None:
        async with serving(reset) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            assert await opened.read(LIMIT) == b"{}"
            await opened.close()
            await asyncio.sleep(0.2)

    run(scene())
    gc.collect()
    assert "never retrieved" not in caplog.text


def _linger(exchange: Exchange) -> None:
    """Closing is a reset."""
    made = exchange.writer.get_extra_info("socket")
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _hang_up_at_once(exchange: Exchange) -> None:
    await exchange.hang_up()


async def _hang_up_after_a_while(exchange: Exchange) -> None:
    await asyncio.sleep(1.1)
    await exchange.hang_up()


async def _reset_at_once(exchange: Exchange) -> None:
    _linger(exchange)
    exchange.writer.transport.abort()


async def _half_a_head(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 O")
    await exchange.writer.drain()
    await exchange.hang_up()


@pytest.mark.parametrize(
    "leave", [_hang_up_at_once, _hang_up_after_a_while, _reset_at_once, _half_a_head]
)
@pytest.mark.parametrize("is_reused", [False, True])
def test_a_request_that_was_sent_is_not_sent_again(leave: Handler, is_reused: bool) -> None:
    async def scene() -> None:
        handlers = (answer, leave) if is_reused else (leave,)
        async with serving(*handlers) as server, calling() as client:
            if is_reused:
                opened = await client.open(endpoint(server.port), REQUEST)
                await opened.read(LIMIT)
            failed = await failure(client, server.port)

            assert (failed.kind, len(failed.attempts)) == (FailureKind.CLOSED_EARLY, 1)
            assert len(server.heads) == len(handlers)
            assert server.connections == 1

    run(scene())


def test_a_part_of_a_large_request_is_not_sent_again() -> None:
    """The server reads a beginning and resets; it counts what came."""

    async def scene() -> None:
        seen: list[bytes] = []

        async def read_a_little(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.read(1000))
            writer.transport.abort()

        server = await asyncio.start_server(read_a_little, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        large = replace(REQUEST, body=b"x" * 8_000_000)
        async with server, calling() as client:
            failed = await failure(client, port, large)

        assert (failed.kind, len(seen)) == (FailureKind.CLOSED_EARLY, 1)

    run(scene())


def test_a_request_that_changes_nothing_is_sent_again() -> None:
    async def scene() -> None:
        async with serving(_reset_at_once, answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), HttpRequest(path="/models"))
            await opened.read(LIMIT)

            assert (opened.status, len(server.heads)) == (200, 2)

    run(scene())


def test_a_connection_closed_while_the_loop_was_busy_is_not_used() -> None:
    """Its end has come to this machine, but the event loop has not looked yet."""
    served: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    may_close, has_closed = threading.Event(), threading.Event()

    def serve() -> None:
        for number in range(2):
            made, _ = listener.accept()
            with made:
                served.append(made.recv(65536))
                made.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                if number == 0:
                    may_close.wait(5)
            has_closed.set()  # first of all, of the first

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    async def scene() -> None:
        async with calling() as client:
            port = listener.getsockname()[1]
            first = await client.open(endpoint(port), REQUEST)
            await first.read(LIMIT)
            may_close.set()
            assert has_closed.wait(5)  # and the loop stands still meanwhile
            second = await client.open(endpoint(port), REQUEST)

            assert await second.read(LIMIT) == b"{}"
            assert len(second.attempts) == 1

    run(scene())
    thread.join(5)
    listener.close()
    assert len(served) == 2


@pytest.mark.parametrize("status", ["504 Gateway Timeout", "524 A Timeout Occurred"])
def test_a_proxy_that_gave_up_waiting_is_not_asked_again(status: str) -> None:
    async def give_up(exchange: Exchange) -> None:
        exchange.say(status, b"{}")

    async def scene() -> None:
        async with serving(give_up) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            await opened.read(LIMIT)

            assert (opened.status, len(server.heads)) == (int(status[:3]), 1)

    run(scene())


def test_something_that_is_not_http_is_said_to_be_so() -> None:
    async def scene() -> None:
        async def speak(exchange: Exchange) -> None:
            exchange.writer.write(b"220 mail.example ESMTP\r\n\r\n")

        async with serving(speak) as server, calling() as client:
            failed = await failure(client, server.port)

            assert failed.kind is FailureKind.MISCONFIGURED
            assert failed.message == "Upstream mine did not answer in HTTP."

    run(scene())


def test_a_huge_body_is_left_unread_and_the_upstream_notices() -> None:
    async def flood(exchange: Exchange) -> None:
        exchange.start()
        while True:
            exchange.chunk(b"x" * 65_536)
            await exchange.writer.drain()

    async def scene() -> None:
        async with serving(flood) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            with pytest.raises(UpstreamFailed) as caught:
                await opened.read(200_000)

            assert caught.value.kind is FailureKind.TOO_LARGE
            assert "more than 200,000 bytes" in caught.value.message
            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        # without the header around it, as some servers send it
        ("deflate", lambda data: zlib.compress(data)[2:-4]),
    ],
)
def test_an_upstream_that_compresses_unasked_is_read_all_the_same(
    coding: str, compress: Any
) -> None:
    plain = b"data: word\n\n" * 50_000

    async def squeeze(exchange: Exchange) -> None:
        exchange.start(f"Content-Encoding: {coding}")
        packed = compress(plain)
        for start in range(0, len(packed), 100):
            exchange.chunk(packed[start : start + 100])
        exchange.chunk(b"")

    async def scene() -> None:
        async with serving(squeeze) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            pieces = [piece async for piece in opened.chunks()]

            assert b"".join(pieces) == plain
            assert "content-encoding" not in opened.headers
            assert max(map(len, pieces)) <= 65_536

    run(scene())


def by_members(plain: bytes) -> bytes:
    """A gzip member for each piece, as writers make that end one whenever they flush."""
    pieces = [plain[start : start + 24_000] for start in range(0, len(plain), 24_000)]
    return b"".join(map(gzip.compress, pieces))


@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        ("gzip", by_members),
        # what follows the last member is not of it
        ("gzip", lambda plain: by_members(plain) + b"\0" * 512),
        ("gzip", lambda plain: gzip.compress(plain) + b"\x1f\x8b no member"),
        # one after the other, undone from the last one on
        ("gzip, gzip", lambda plain: gzip.compress(gzip.compress(plain))),
        ("deflate, GZip", lambda plain: gzip.compress(zlib.compress(plain))),
        ("identity, gzip", gzip.compress),
        ("gzip,", gzip.compress),
        ("deflate", lambda plain: zlib.compress(plain)[2:-4]),
        # no codings: what some servers write into the wrong header
        ("utf-8", bytes),
        ("none", bytes),
        ("gzip, utf-8", gzip.compress),
    ],
)
@pytest.mark.parametrize("at_once", [1, 1_000_000])
def test_a_body_in_members_in_several_codings_or_in_none_is_read(
    coding: str, compress: Any, at_once: int
) -> None:
    plain = b"".join(b"data: word %d\n\n" % number for number in range(5_000))

    async def squeeze(exchange: Exchange) -> None:
        exchange.start(f"Content-Encoding: {coding}")
        packed = compress(plain)
        for start in range(0, len(packed), at_once):
            exchange.chunk(packed[start : start + at_once])
        exchange.chunk(b"")

    async def scene() -> None:
        async with serving(squeeze) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)

            assert await opened.read(LIMIT) == plain
            assert "content-encoding" not in opened.headers

    run(scene())


def test_a_deflate_that_ends_where_a_part_is_full_is_read_to_its_last_byte() -> None:
    # Copies of 258 bytes that reach across the end of a part: nothing is left to feed then.
    for size in range(65_537, 65_537 + 258):
        plain = b"a" * size
        packed = zlib.compress(plain)[2:-4]

        assert b"".join(Inflater("deflate").feed(packed)) == plain


def test_a_member_that_ends_where_a_part_is_full_is_not_the_last() -> None:
    plain = b"a" * 65_536
    inflater = Inflater("gzip")

    parts = [part for _ in range(3) for part in inflater.feed(gzip.compress(plain))]

    assert b"".join(parts) == plain * 3


def test_a_thousand_codings_are_not_undone() -> None:
    with pytest.raises(Unreadable):
        Inflater(", ".join(["gzip"] * 1000))


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        # a coding that this client does not know
        ("br", b"whatever"),
        ("gzip, br", b"whatever"),
        # not what it says
        ("gzip", b"plain text"),
    ],
)
def test_a_coding_that_cannot_be_undone_fails_by_name(coding: str, body: bytes) -> None:
    async def scene() -> None:
        async def squeeze(exchange: Exchange) -> None:
            exchange.say("200 OK", body, f"Content-Encoding: {coding}")

        async with serving(squeeze) as server, calling() as client:
            failed = await failure(client, server.port)

            assert failed.kind is FailureKind.MISCONFIGURED
            assert "compressed its answer" in failed.message

    run(scene())


def test_a_small_body_that_unfolds_to_a_huge_one_is_stopped_at_the_limit() -> None:
    bomb = gzip.compress(b"0" * 50_000_000)

    async def scene() -> None:
        async def squeeze(exchange: Exchange) -> None:
            exchange.say("200 OK", bomb, "Content-Encoding: gzip")

        async with serving(squeeze) as server, calling() as client:
            failed = await failure(client, server.port)

            assert failed.kind is FailureKind.TOO_LARGE

    run(scene())


# --- leaving in the middle


def test_cancelling_while_waiting_for_headers_closes_the_connection() -> None:
    async def scene() -> None:
        async with serving(hang) as server, calling() as client:
            task = asyncio.create_task(client.open(endpoint(server.port), REQUEST))
            while not server.heads:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

            assert task.cancelled()
            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


async def endless(exchange: Exchange) -> None:
    exchange.start()
    exchange.chunk(b"one")
    await exchange.wait_until_left()


def test_cancelling_in_the_middle_of_a_stream_closes_the_connection() -> None:
    async def scene() -> None:
        async with serving(endless) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            seen: list[bytes] = []

            async def listen() -> None:
                async for chunk in opened.chunks():
                    seen.append(chunk)

            task = asyncio.create_task(listen())
            while not seen:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


def test_closing_in_the_middle_of_a_stream_stops_the_upstream() -> None:
    async def scene() -> None:
        async with serving(endless) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            assert await anext(opened.chunks()) == b"one"
            await opened.close()

            await asyncio.wait_for(server.left.wait(), 2)

    run(scene())


def test_cancelling_between_two_attempts_leaves_nothing_behind() -> None:
    async def later(exchange: Exchange) -> None:
        exchange.say("503 Busy", b"", "Retry-After: 15")

    async def scene() -> None:
        async with serving(later) as server, calling() as client:
            task = asyncio.create_task(client.open(endpoint(server.port), REQUEST))
            while not server.heads:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

            assert (task.cancelled(), len(server.heads)) == (True, 1)

    run(scene())


def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async def echo(exchange: Exchange) -> None:
        exchange.say("200 OK", exchange.body)

    async def scene() -> None:
        async with serving(echo) as server, calling(timeouts=Timeouts()) as client:

            async def one(number: int) -> bool:
                body = str(number).encode()
                opened = await client.open(endpoint(server.port), HttpRequest(path="/x", body=body))
                return await opened.read(LIMIT) == body

            assert all(await asyncio.gather(*[one(number) for number in range(100)]))

    run(scene())


# --- where a call may go


@pytest.mark.parametrize(
    ("base_url", "allow_private", "words"),
    [
        # this machine, plainly and in odd spellings
        ("http://127.0.0.1:{port}", False, "is on this machine"),
        ("http://[::ffff:127.0.0.1]:{port}", False, "on this machine"),
        ("http://2130706433:{port}", False, "usual spelling"),
        ("http://0x7f.1:{port}", True, "usual spelling"),
        ("http://localhost:{port}", False, "is on this machine"),
        # where clouds keep the credentials of a machine, even if private addresses may be
        ("http://169.254.169.254", True, "link-local"),
        # other ways to get somewhere else
        ("http://user:word@127.0.0.1:{port}", True, "user name"),
        ("file:///etc/passwd", True, "http://"),
        ("http://127.0.0.1:{port}/v1#", True, "fragment"),
        ("http://127.0.0.1:0", True, "port"),
    ],
)
def test_the_guard_refuses_before_anything_is_sent(
    base_url: str, allow_private: bool, words: str
) -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            failed = await failure(
                client,
                server.port,
                base_url=base_url.format(port=server.port),
                allow_private=allow_private,
            )

            assert failed.kind is FailureKind.REFUSED_BY_GUARD
            assert words in failed.message
            assert "word@" not in failed.message
            assert server.connections == 0
            assert len(failed.attempts) == 1

    run(scene())


class Resolver(aiohttp.abc.AbstractResolver):
    """Leads a name to one address after the other."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def resolve(
        self, host: str, port: int = 0, family: int = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        if not self.addresses:
            raise OSError(-2, "Name or service not known")
        address = self.addresses.pop(0)
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": 0,
            }
        ]

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1"]
)
def test_a_public_name_that_leads_inside_is_refused_where_it_is_connected_to(address: str) -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling(resolver=Resolver(address)) as client:
            failed = await failure(
                client,
                server.port,
                base_url=f"http://rebind.example:{server.port}",
                allow_private=False,
            )

            assert failed.kind is FailureKind.REFUSED_BY_GUARD
            assert server.connections == 0

    run(scene())


@pytest.mark.parametrize("base_url", ["http://10.0.0.1:{port}", "http://box.example:{port}"])
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (EndpointSource.ENVIRONMENT, "add HELMDASH_ALLOW_PRIVATE_UPSTREAMS=1"),
        (EndpointSource.ADMIN, "only where private addresses are allowed"),
    ],
)
def test_a_refusal_names_what_would_allow_the_address(
    base_url: str, source: EndpointSource, words: str
) -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling(resolver=Resolver("10.0.0.1")) as client:
            failed = await failure(
                client,
                server.port,
                base_url=base_url.format(port=server.port),
                allow_private=False,
                source=source,
            )

            assert failed.kind is FailureKind.REFUSED_BY_GUARD
            assert words in failed.message
            assert words in str(failed.attempts[-1]["message"])

    run(scene())


def test_a_connection_made_where_private_addresses_may_be_serves_nobody_else() -> None:
    async def scene() -> None:
        resolver = Resolver("127.0.0.1", "127.0.0.1")
        async with serving(answer) as server, calling(resolver=resolver) as client:
            base_url = f"http://box.example:{server.port}"
            allowed = endpoint(server.port, base_url=base_url)
            opened = await client.open(allowed, REQUEST)
            await opened.read(LIMIT)

            failed = await failure(client, server.port, base_url=base_url, allow_private=False)

            assert failed.kind is FailureKind.REFUSED_BY_GUARD
            assert server.connections == 1

    run(scene())


def test_a_name_that_leads_nowhere_is_tried_again_and_told() -> None:
    async def scene() -> None:
        async with calling(resolver=Resolver()) as client:
            failed = await failure(client, 80, base_url="http://nowhere.example")

            assert (failed.kind, failed.code) == (FailureKind.DNS, "name_resolution_error")
            assert len(failed.attempts) == 3

    run(scene())


@pytest.mark.parametrize("path", ["/../admin", "/a/%2e%2E/b", "//x y", "no-slash", "/a\r\nb: c"])
def test_a_path_cannot_climb_out_of_the_base_url(path: str) -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            failed = await failure(client, server.port, HttpRequest(path=path, body=b""))

            assert failed.kind is FailureKind.REFUSED_BY_GUARD
            assert server.connections == 0

    run(scene())


def test_a_header_with_a_line_break_is_not_sent() -> None:
    async def scene() -> None:
        async with serving(answer) as server, calling() as client:
            request = HttpRequest(path="/x", headers=(("a", "b\r\nc: d"),), body=b"{}")
            failed = await failure(client, server.port, request)

            assert failed.kind is FailureKind.MISCONFIGURED
            assert server.heads == []

    run(scene())


# --- redirects


@pytest.mark.parametrize(
    ("status", "location", "words"),
    [
        # another host: the key stays here
        ("307 Moved", "http://other.example/v1", "to http://other.example:80, where"),
        ("307 Moved", "https://other.example/v1", "to https://other.example:443, where"),
        ("307 Moved", "http://[::1]/v1", "to http://[::1]:80, where"),
        # with our key in its name
        ("307 Moved", f"http://{KEY}.example/v1", "to http://[key].example:80, where"),
        # another port is another server
        ("308 Moved", "http://127.0.0.1:1/v1", "to http://127.0.0.1:1, where it is not followed"),
        # the scheme of nobody
        ("307 Moved", "file:///etc/passwd", "is not followed"),
        # would make a GET of it
        ("302 Found", "/v2/chat/completions", "would drop the request"),
        # into a loop
        ("307 Moved", "/v1/chat/completions", "more than 3 times"),
        # climbing
        ("307 Moved", "/%2e%2e/x", "may not be called"),
        # credentials of somebody's choice
        ("307 Moved", "http://a:b@127.0.0.1/", "is not followed"),
        # nowhere
        ("307 Moved", "", "without saying where"),
        ("300 Multiple Choices", "", "with HTTP 300, which leads nowhere"),
        ("300 Multiple Choices", "/v2/chat/completions", "with HTTP 300, which leads nowhere"),
        ("304 Not Modified", "", "with HTTP 304, which leads nowhere"),
        ("399 Odd", "", "with HTTP 399, which leads nowhere"),
    ],
)
def test_a_redirect_elsewhere_is_a_failure_that_says_so(
    status: str, location: str, words: str
) -> None:
    async def move(exchange: Exchange) -> None:
        exchange.say(status, b"", f"Location: {location}")

    async def scene() -> None:
        async with serving(move) as server, calling() as client:
            failed = await failure(client, server.port)

            assert (failed.kind, failed.code) == (FailureKind.REDIRECTED, "upstream_redirected")
            assert words in failed.message
            assert failed.http_status == int(status.split()[0])

    run(scene())


def test_a_redirect_on_the_same_host_is_followed_with_the_request() -> None:
    async def move(exchange: Exchange) -> None:
        exchange.say("307 Moved", b"", "Location: /v2/chat?x=1#part")

    async def scene() -> None:
        async with serving(move, answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            await opened.read(LIMIT)

            assert opened.status == 200
            assert server.heads[1].startswith("POST /v2/chat?x=1 HTTP")
            assert KEY in server.heads[1]
            assert [attempt["status"] for attempt in opened.attempts] == [307, 200]

    run(scene())


# --- words and waits


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FailureKind.TIMEOUT_CONNECT, ErrorKind.TIMEOUT),
        (FailureKind.TIMEOUT_READ, ErrorKind.TIMEOUT),
        (FailureKind.TIMEOUT_WRITE, ErrorKind.TIMEOUT),
        (FailureKind.TIMEOUT_POOL, ErrorKind.TIMEOUT),
        (FailureKind.UNREACHABLE, ErrorKind.NETWORK),
        (FailureKind.DNS, ErrorKind.NETWORK),
        (FailureKind.TLS, ErrorKind.NETWORK),
        (FailureKind.REFUSED_BY_GUARD, ErrorKind.NETWORK),
        (FailureKind.CLOSED_EARLY, ErrorKind.NETWORK),
        (FailureKind.TOO_LARGE, ErrorKind.UPSTREAM),
        (FailureKind.MISCONFIGURED, ErrorKind.UPSTREAM),
    ],
)
def test_the_code_of_each_failure_is_a_word_that_causes_are_read_from(
    kind: FailureKind, expected: ErrorKind
) -> None:
    assert kind_of_error(CODES[kind], None) is expected


def test_every_kind_of_failure_has_a_code() -> None:
    assert set(CODES) == set(FailureKind)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        # a date counts from the answer's own clock
        (
            {
                "retry-after": "Sun, 22 Nov 2026 01:00:09 GMT",
                "date": "Sun, 22 Nov 2026 01:00:05 GMT",
            },
            4.0,
        ),
        # in the past
        (
            {
                "retry-after": "Sun, 22 Nov 2026 01:00:00 GMT",
                "date": "Sun, 22 Nov 2026 01:00:05 GMT",
            },
            0.0,
        ),
        # nothing to count from
        ({"retry-after": "Sun, 22 Nov 2026 01:00:09 GMT"}, None),
        # nonsense
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_how_long_an_upstream_asks_to_be_left_alone(
    headers: Mapping[str, str], seconds: float | None
) -> None:
    assert asked_seconds(headers) == seconds


def test_waits_grow_to_eight_seconds_and_are_spread_over_all_of_it() -> None:
    for number, most in [(1, 0.25), (2, 0.5), (3, 1.0), (9, 8.0), (60, 8.0)]:
        waits = [wait_seconds(number) for _ in range(200)]

        assert 0 <= min(waits) < most / 2 < max(waits) <= most


def test_a_sound_answer_is_never_asked_for_again() -> None:
    assert not is_worth_another(200, {"x-should-retry": "true"})


def test_waiting_takes_as_long_as_the_attempt_says() -> None:
    async def ask(exchange: Exchange) -> None:
        exchange.say("429 Slow", b"", "retry-after-ms: 120")

    async def scene() -> None:
        async with serving(ask, answer) as server, calling() as client:
            began = time.monotonic()
            opened = await client.open(endpoint(server.port), REQUEST)
            await opened.close()

            assert opened.attempts[0]["waited_ms"] == 120
            assert time.monotonic() - began >= 0.12

    run(scene())


def test_it_works_on_the_loop_of_the_standard_library() -> None:
    async def scene() -> bytes:
        async with serving(answer) as server, calling() as client:
            opened = await client.open(endpoint(server.port), REQUEST)
            return await opened.read(LIMIT)

    assert asyncio.run(scene()) == b'{"ok":true}'
