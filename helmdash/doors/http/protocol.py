"""HTTP as it comes off the wire, within limits that an ASGI application never sees.

uvicorn's own protocol reads headers of any size for ever, waits for a request for ever, and reads
bodies that nobody wants for ever. This one bounds each of them, and answers what it refuses itself,
in milliseconds and a few hundred bytes, with the connection closed behind it:

    400  malformed, or two readings of where the body ends (request smuggling)
    408  the headers were not complete in time
    414  the address is too long
    426  WebSocket, which HelmDash does not speak (any other upgrade is ignored, as RFC 9110 allows)
    431  too many headers, too long a header, or too many bytes of them
    503  too many connections

`manage.py up` installs it; uvicorn makes one for each connection. What is asked of a connection
here costs nothing per request but a few comparisons: the gateway's requests go through it, too.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from helmdash.core.access.client_address import counted_as, is_trusted
from helmdash.doors.asgi import CONNECTION_KEY, ENDLESS_KEY, KNOWN_KEY
from helmdash.doors.http.limits import connection_limits
from helmdash.doors.http.request_head import (
    TELLING_HEADERS,
    HeadRefused,
    announces_body,
    head_without_upgrade,
    refusal_bytes,
    refusal_of,
    wants_websocket,
)
from helmdash.doors.http.response_head import head_of
from helmdash.doors.http.turns import turns_on

# Requests that wait behind one that is being answered. Browsers and SDKs send none.
_MOST_PIPELINED = 16
# What is thrown away of a body that nobody reads, so that its sender may see the answer: a body of
# this size is here anyway. Then the connection is closed.
_DRAIN_BYTES = 256 * 1024
_DRAIN_HEADER_BYTES = 32 * 1024
_DRAIN_SECONDS = 2.0
# Of people nobody knows, so many bytes and pieces wait for their turn: a request, and little more.
_MOST_HELD_BYTES = 64 * 1024
_MOST_HELD = 4
# Beyond this many times the limit of connections they are cut off without a word.
_SHOUTING = 2
_HEAD_END = re.compile(rb"\n\r?\n")
# Bytes around the pieces of a chunked body, for each byte of it: a piece of one byte takes five.
_FRAMING = 8


# By address: the connections of people that nobody knows, of this process.
_anonymous: Counter[str] = Counter()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. One for each connection, on one event loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits = connection_limits()
        self.timeout_keep_alive = self.limits.idle_seconds
        # Looked at for each header.
        self._most_headers = self.limits.headers
        self._most_line_bytes = self.limits.header_line_bytes
        self._address = ""
        self._is_counted = False
        self._is_endless = False
        # Bytes of this request that were no body: its headers, and what frames its pieces.
        self._framing_bytes = 0
        self._body_bytes = 0
        self._header_bytes = 0
        self._telling: list[tuple[bytes, bytes]] = []
        self._has_headers = False
        self._is_deaf = False
        # What came from somebody nobody knows, and waits for its turn.
        self._held: list[bytes] = []
        self._turns = turns_on(self.loop)
        # The head of a request whose upgrade is ignored, until it is read again.
        self._plain_head = b""
        # The one that is being answered; `cycle` is the latest.
        self._running: RequestResponseCycle | None = None
        # Whom to tell that the client has left, while its request is answered.
        self._tell_left: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and wait only so long for its first request."""
        super().connection_made(transport)
        if len(self.connections) > _SHOUTING * self.limits.connections:
            transport.abort()
        elif len(self.connections) > self.limits.connections or not self._is_let_in():
            self._refuse(503, "Too many connections. Try again in a moment.")
        else:
            self._wait_for_headers()

    def _is_let_in(self) -> bool:
        """Whether an address has another connection; those of its people nobody knows count."""
        peer = self.client[0] if self.client else ""
        # All clients of a proxy come from one address.
        if not peer or is_trusted(peer, self.limits.trusted_proxies):
            return True
        address = counted_as(peer)
        if _anonymous[address] >= self.limits.anonymous_connections:
            return False
        self._address = address
        self._is_counted = True
        _anonymous[address] += 1
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no more, and end its timers. exc None: it ended in order."""
        self._uncount()
        self._held = []
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)
        if self._running is not None:
            # Not the latest, where others wait behind it; nothing can be written any more.
            self._running.disconnected = True
            self._running.message_event.set()
            self._running = None
        self._note_left()
        # These lead back here: a stranger's unread bytes would stay until Python looks for circles.
        self.cycle = None  # type: ignore[assignment]
        self.scope = None  # type: ignore[assignment]
        self.pipeline.clear()

    def note_endless(self) -> None:
        """The answer goes on until its client leaves."""
        self._is_endless = True

    def note_known(self) -> None:
        """Whoever is at the other end may have more connections than strangers."""
        self._uncount()

    def _uncount(self) -> None:
        if self._is_counted:
            self._is_counted = False
            _anonymous[self._address] -= 1
            if not _anonymous[self._address]:
                del _anonymous[self._address]

    # --- what comes ---------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Read some bytes; of people nobody knows when it is their turn. What is large does not
        wait in memory: a head without end is cheap to refuse."""
        if self._is_deaf:
            self._drain(len(data))
        elif self._is_counted and len(data) <= _MOST_HELD_BYTES:
            self._held.append(data)
            if len(self._held) == 1:
                self._turns.wait_for(self._take_turn)
            elif len(self._held) > _MOST_HELD:
                self._take_turn()
        else:
            if self._held:
                self._take_turn()
            if not self._is_over():
                self._take(data)

    def eof_received(self) -> None:
        """Nothing more comes, and the connection is closed behind this: what waits is read now."""
        self._take_turn()
        super().eof_received()

    def _take_turn(self) -> None:
        held, self._held = self._held, []
        for data in held:
            if self._is_over():
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        """Parse some bytes, and refuse what goes on too long without saying anything."""
        self._unset_keepalive_if_required()
        try:
            self._feed_in_pieces(data)
        except (HeadRefused, httptools.HttpParserError) as error:
            inner = isinstance(error, httptools.HttpParserCallbackError)
            self._refuse(*refusal_of(error.__context__ if inner else error), came=data)
            return
        if self._is_over():
            return
        if self._is_too_much():
            self._refuse(431, "The headers are too large.", came=data)
        elif self._framing_bytes and not self._has_headers and self._timer is None:
            self._wait_for_headers()

    def _feed_in_pieces(self, data: bytes) -> None:
        """Of a head no more than it may have: a quarter of a megabyte comes at once, and the parser
        keeps and copies all of a header that has no end. Raises HeadRefused (431)."""
        most, begin = self.limits.header_bytes, 0
        if self._framing_bytes + len(data) <= most:
            self._framing_bytes += len(data)
            self._feed(data)
            return
        if self._has_no_end(data):
            raise HeadRefused(431, "The headers are too large.")
        while begin < len(data) and not (self._is_over() or self._is_too_much()):
            is_whole = self._has_headers or len(data) - begin <= most
            piece = data[begin:] if is_whole else data[begin : begin + most]
            begin += len(piece)
            self._framing_bytes += len(piece)
            self._feed(piece)

    def _has_no_end(self, data: bytes) -> bool:
        """Whether a head goes on beyond what one may have: told by a search, for a tenth of what
        the parser takes to find it. Who sends such heads sends many."""
        if self._has_headers:
            return False
        left = self.limits.header_bytes - self._framing_bytes
        # An address that is too long has a refusal of its own; and an end may lie across pieces.
        begins_whole = self._framing_bytes > 0 or b"\n" in data[: self._most_line_bytes]
        is_apart = not data.startswith((b"\r", b"\n"))
        return begins_whole and is_apart and _HEAD_END.search(data, 0, left + 4) is None

    def _is_too_much(self) -> bool:
        return self._framing_bytes > self.limits.header_bytes + _FRAMING * self._body_bytes

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The parser takes the rest for another protocol. It is an ordinary request, and so is
            # what follows it: read again, without its wish.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            head, self._plain_head = self._plain_head, b""
            self._framing_bytes = len(data)
            self.parser.feed_data(head)
            rest = data[upgrade.args[0] :]
            if rest:
                self._feed(rest)

    def on_message_begin(self) -> None:
        """A request begins: its bytes count from 0. Raises, for `data_received`, what refuses one
        too many in the pipeline."""
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise HeadRefused(400, "Too many requests at once on one connection.")
        super().on_message_begin()
        self.scope[KNOWN_KEY] = self.note_known  # type: ignore[literal-required]
        self.scope[ENDLESS_KEY] = self.note_endless  # type: ignore[literal-required]
        self.scope[CONNECTION_KEY] = self  # type: ignore[literal-required]
        self._body_bytes = 0
        self._header_bytes = 0
        self._telling = []
        self._has_headers = False
        if not self._framing_bytes:
            # It begins behind another one, in the same bytes.
            self._framing_bytes = 1

    def on_url(self, url: bytes) -> None:
        """A part of the address. Raises HeadRefused (414)."""
        self.url += url
        if len(self.url) > self.limits.header_line_bytes:
            most = self.limits.header_line_bytes
            raise HeadRefused(
                414, f"An address may have {most} bytes at most (HELMDASH_MAX_HEADER_LINE_BYTES)."
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer behind a chunked body. Raises HeadRefused (431)."""
        size = len(name) + len(value)
        if size > self._most_line_bytes:
            raise HeadRefused(431, f"A header has more than {self._most_line_bytes} bytes.")
        if self._has_headers:
            # A trailer would change the headers of a request that is being answered.
            return
        headers = self.headers
        if len(headers) >= self._most_headers:
            raise HeadRefused(431, f"More than {self._most_headers} headers.")
        self._header_bytes += size + 4
        name = name.lower()
        if name in TELLING_HEADERS:
            self._telling.append((name, value))
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
        headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The request can be answered. Raises HeadRefused (400, 426, 431)."""
        self._stop_timer()
        if self._header_bytes > self.limits.header_bytes:
            raise HeadRefused(431, f"The headers have more than {self.limits.header_bytes} bytes.")
        self._has_headers = True
        has_body = announces_body(self._telling, self.parser.get_http_version())
        if self.parser.should_upgrade():
            if wants_websocket(self._telling):
                raise HeadRefused(426, "HelmDash does not speak WebSocket; ask over plain HTTP.")
            if self.parser.get_method() == b"CONNECT":
                raise HeadRefused(400, "HelmDash is no proxy.")
            self._plain_head = head_without_upgrade(
                self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers
            )
            return
        super().on_headers_complete()
        if has_body:
            self.cycle.transport = _Transport(self.transport, self)  # type: ignore[assignment]

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        self._tell_left = None
        self._is_endless = False
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """What is taken off the framing: the body has a limit of its own (doors.body)."""
        size = len(body)
        self._framing_bytes -= size
        self._body_bytes += size
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here; what follows is another one."""
        if self._plain_head:
            return
        super().on_message_complete()
        self._framing_bytes = 0
        self._body_bytes = 0
        self._has_headers = False

    # --- what an application may have at once (doors.asgi.Connection) -------------------------

    def whole_body(self) -> bytes | None:
        """The body of the request that is being answered, where all of it is here."""
        cycle = self._running
        if cycle is None or cycle.more_body or cycle.disconnected or cycle.response_complete:
            return None
        cycle.message_event.clear()
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def answer_whole(
        self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> bool:
        """Answer it in one write; False where that is more than writing."""
        cycle = self._running
        if cycle is None or not self._may_answer_at_once(cycle):
            return False
        head = head_of(status, [*self.server_state.default_headers, *headers])
        if head is None:
            return False
        cycle.response_started = True
        cycle.transport.write(head + body)
        cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True

    def _may_answer_at_once(self, cycle: RequestResponseCycle) -> bool:
        """Nothing was said yet, the client takes what it gets, and the connection stays."""
        return (
            cycle.keep_alive
            and not (cycle.response_started or cycle.disconnected or cycle.more_body)
            and not self.flow.write_paused
            and cycle.scope["method"] != "HEAD"
        )

    def write_piece(self, data: bytes) -> bool:
        """A piece of its answer, framed as chunks are."""
        cycle = self._running
        if cycle is None or not cycle.response_started or cycle.response_complete:
            return False
        is_plain = bool(cycle.chunked_encoding) and cycle.scope["method"] != "HEAD"
        if not (is_plain and data) or cycle.disconnected or self.flow.write_paused:
            return False
        cycle.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def break_off(self) -> bool:
        """Close without the last chunk: in HTTP/1.1 no client takes that for an end. Not by a
        reset, with which what it has not read yet may be lost."""
        cycle = self._running
        if cycle is None or not cycle.response_started or cycle.response_complete:
            return False
        if not cycle.chunked_encoding:
            return False
        cycle.disconnected = True  # its application sends nothing more, and nobody complains
        self.transport.close()
        return True

    def when_left(self, tell: Callable[[], None] | None) -> None:
        """Whom to tell that the client has left; it is told soon where it has left already."""
        cycle = self._running
        self._tell_left = tell
        if tell is None:
            return
        if cycle is None or cycle.disconnected:
            self.loop.call_soon(self._note_left)
        else:
            self.flow.resume_reading()  # or nobody hears it leave

    def _note_left(self) -> None:
        tell, self._tell_left = self._tell_left, None
        if tell is not None:
            tell()

    # --- what goes ----------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """The request is answered; if its body is not here by now, it is drained a little."""
        super().on_response_complete()
        if self._is_over():
            return
        if self.cycle.response_complete and self.cycle.more_body:
            self._linger()

    def pause_writing(self) -> None:
        """The client takes nothing just now; not for ever, for it holds what it does not take."""
        super().pause_writing()
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client takes something again."""
        self._stop_write_timer()
        super().resume_writing()

    def shutdown(self) -> None:
        """The server stops: a connection that only waits, or whose answer has no end, is closed at
        once."""
        if self._is_deaf or self._is_endless:
            self.transport.close()
        else:
            super().shutdown()

    # --- the end ------------------------------------------------------------------------------

    def close_behind_answer(self) -> None:
        """Close, but leave the client a moment to read its answer if it is still sending.

        Closing at once with its bytes unread would reset the connection, and the answer with it.
        """
        if self.transport.is_closing():
            return
        if self.cycle.more_body:
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Hear nothing any more, throw away what comes, and close soon."""
        self._is_deaf = True
        self._framing_bytes = 0
        self._stop_parsing()
        if self.cycle is not None:
            self.cycle.body = bytearray()
        self._unset_keepalive_if_required()
        self._stop_timer()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._timer = self.loop.call_later(_DRAIN_SECONDS, self.transport.close)

    def _stop_parsing(self) -> None:
        # The parser holds what it has read of a header.
        self.parser = None  # type: ignore[assignment]

    def _drain(self, size: int) -> None:
        if self._is_answering():
            # Closing now would cut the answers off.
            self.flow.pause_reading()
            return
        self._framing_bytes += size
        most = _DRAIN_BYTES if self._has_headers else _DRAIN_HEADER_BYTES
        if self._framing_bytes > most and not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: int, sentence: str, *, came: bytes = b"") -> None:
        """Answer in short and close; only close where an answer is under way."""
        if self._is_over():
            return
        if self._is_answering() and not self._give_up_unanswered():
            self._end_after_answers()
            return
        headers = self.server_state.default_headers
        self.transport.write(refusal_bytes(status, sentence, headers, came=came))
        self._linger()

    def _give_up_unanswered(self) -> bool:
        """Take a request from its application where the rest of its body turned out to be broken,
        so that its client can be told; False where it has its answer already, or others wait.
        """
        cycle = self.cycle
        if cycle is not self._running or cycle.response_started or not cycle.more_body:
            return False
        cycle.disconnected = cycle.response_complete = True
        cycle.message_event.set()
        self._note_left()
        return True

    def _is_over(self) -> bool:
        return self._is_deaf or self.transport.is_closing()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _end_after_answers(self) -> None:
        """What is being answered gets its answer; its own half of a request never comes."""
        if self.cycle.more_body:
            # Its application waits for the rest of it.
            self.transport.close()
            return
        self._is_deaf = True
        self._framing_bytes = 0
        self._stop_parsing()
        last = self.pipeline[0][0] if self.pipeline else self.cycle
        last.keep_alive = False

    # --- timers -------------------------------------------------------------------------------

    def _wait_for_headers(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_seconds, self._headers_late)

    def _headers_late(self) -> None:
        self._timer = None
        if self._framing_bytes:
            self._refuse(408, "The headers did not arrive in time.")
        elif not self.transport.is_closing():
            self.transport.close()  # it never said a word

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


class _Transport:
    """The transport as one answer sees it: closing it is left to the protocol."""

    __slots__ = ("_protocol", "_transport", "write")

    def __init__(self, transport: asyncio.Transport, protocol: BoundedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self.write = transport.write

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._transport.is_closing()

    def close(self) -> None:
        """The answer is over, and it is the last one."""
        self._protocol.close_behind_answer()
