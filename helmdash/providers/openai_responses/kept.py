"""What clients ask about a response that its upstream keeps, by its id.

https://platform.openai.com/docs/api-reference/responses: get, delete, cancel, input items.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.http import get
from helmdash.providers.openai_responses.pass_request import RESPONSES_PATH
from helmdash.providers.openai_responses.reply import read_reply, reply_of
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.reported import object_in, text_in
from helmdash.providers.shared.sse import SseDecoder, SseEvent
from helmdash.providers.wire import Reply

# Parameters that the API knows; others stay here.
_PARAMETERS = frozenset(
    "include include[] stream starting_after include_obfuscation after limit order".split()
)
_MOST_PARAMETERS = 32
_END_TYPES = frozenset(
    f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled")
)
_ENDS = tuple(kind.encode() for kind in _END_TYPES)
# Statuses of a response that is still being made.
_OPEN = (None, "queued", "in_progress")


def kept_request(path: str, *, endpoint: Endpoint, method: str, query: bytes = b"") -> HttpRequest:
    """A request about a kept response. `path`: its id, and what is asked of it (`resp_1/cancel`);
    `query` as the client sent it. Raises BadRequest for too many
    parameters."""
    try:
        told = parse_qsl(query.decode("latin-1"), max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise BadRequest("query", f"Send {_MOST_PARAMETERS} parameters at most.") from None
    known = urlencode([(name, value) for name, value in told if name in _PARAMETERS])
    asked = get(endpoint, f"{RESPONSES_PATH}/{path}" + (f"?{known}" if known else ""))
    return HttpRequest(path=asked.path, headers=asked.headers, method=method)


def ended_reply(path: str, body: bytes) -> Reply | None:
    """The response in an upstream's answer about it, once nothing more is added to it; None: it
    still is, or the answer is about something else. Never raises."""
    if path.partition("/")[2] not in ("", "cancel"):
        return None
    return _ended(path, read_reply(body))


class EndedInStream:
    """Reads the end of a kept response in a stream about it, whose last event holds the whole one.

    The stream may begin after any of its events (`starting_after`).
    """

    def __init__(self, path: str) -> None:
        """path: as for `ended_reply`."""
        self._path = path
        self._sse = SseDecoder()
        self.reply: Reply | None = None  # once it is over

    def feed(self, data: bytes) -> None:
        """Read on. Never raises."""
        if self.reply is None:
            self._read(self._sse.feed(data))

    def flush(self) -> None:
        """Read what is left at the end."""
        if self.reply is None:
            self._read(self._sse.flush())

    def _read(self, events: Iterable[SseEvent]) -> None:
        for event in events:
            # Deltas, which are nearly all, need not be parsed.
            if not any(end in event.data for end in _ENDS):
                continue
            told = read_json(event.data)
            response = object_in(told, "response") if isinstance(told, dict) else None
            if response is not None and text_in(told, "type") in _END_TYPES:
                self.reply = _ended(self._path, reply_of(response))


def _ended(path: str, reply: Reply) -> Reply | None:
    is_it = reply.id == path.partition("/")[0]
    return reply if is_it and reply.finish_reason not in _OPEN else None
