"""What clients ask about a response that its upstream keeps, by its id.

https://platform.openai.com/docs/api-reference/responses: get, delete, cancel, input items.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.http import get
from helmdash.providers.openai_responses.pass_request import RESPONSES_PATH
from helmdash.providers.openai_responses.reply import read_reply
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Reply

# Parameters that the API knows; others stay here.
_PARAMETERS = frozenset(
    "include include[] stream starting_after include_obfuscation after limit order".split()
)
_MOST_PARAMETERS = 32
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
    reply = read_reply(body)
    is_it = reply.id == path.partition("/")[0]
    return reply if is_it and reply.finish_reason not in _OPEN else None
