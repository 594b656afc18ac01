"""aiohttp's protocol of a connection to an upstream, with less to do for each request."""

from __future__ import annotations

from aiohttp.client_proto import ResponseHandler

from helmdash.upstream.whole_replies import WholeContent, whole_reply


class ReplyProtocol(ResponseHandler):
    """Reads what comes; a whole reply at once, all else with aiohttp's parser.

    It measures the wait for bytes by the clock: aiohttp's own sets its timer anew for each piece,
    which costs as much as reading it. The timer stays from one request to the next.
    """

    _heard_at = 0.0
    _is_timed = False
    _rings_at = 0.0
    # Bytes that a head may have; 0: the parser is there, or nothing is awaited.
    _quick_bytes = 0

    def expect(self, *, read_timeout: float | None, most_header_bytes: int) -> None:
        """A request is about to be sent: what comes next is its reply."""
        if self._tail:
            self._use_parser(read_timeout, most_header_bytes)
            return
        self._parser = self._payload = None  # of the reply before
        self._read_timeout = read_timeout
        self._quick_bytes = most_header_bytes

    def data_received(self, data: bytes) -> None:
        """Hand on a reply that is here as a whole; what is not, the parser reads."""
        most = self._quick_bytes
        if most and data:
            self._quick_bytes = 0
            reply = whole_reply(data, most_header_bytes=most)
            if reply is not None:
                self._drop_timeout()
                self.feed_data((reply, WholeContent(reply.body)))  # type: ignore[arg-type]
                return
            self._use_parser(self._read_timeout, most)
        super().data_received(data)

    def _use_parser(self, read_timeout: float | None, most_header_bytes: int) -> None:
        self.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=read_timeout,
            max_line_size=most_header_bytes,
            max_field_size=most_header_bytes,
        )

    def _reschedule_timeout(self) -> None:
        if not self._read_timeout:
            self._drop_timeout()
            return
        self._is_timed = True
        self._heard_at = self._loop.time()
        # One that was set for a request that may wait longer would ring too late.
        is_late = self._rings_at > self._heard_at + self._read_timeout
        if self._read_timeout_handle is None or is_late:
            self._stop_timer()
            self._look_after(self._read_timeout)

    def _drop_timeout(self) -> None:
        self._is_timed = False
        if self.transport is None or self._connection_lost_called:
            self._stop_timer()

    def _stop_timer(self) -> None:
        super()._drop_timeout()

    def _look_after(self, seconds: float) -> None:
        self._rings_at = self._loop.time() + seconds
        self._read_timeout_handle = self._loop.call_later(seconds, self._on_read_timeout)

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle = None
        if not self._is_timed:
            return  # set again by the next request
        left = self._heard_at + (self._read_timeout or 0.0) - self._loop.time()
        if left > 0:
            self._look_after(left)
        else:
            super()._on_read_timeout()
