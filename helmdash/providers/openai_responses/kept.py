"""What clients ask about a response that its upstream keeps, by its id.

https://platform.openai.com/docs/api-reference/responses: get, delete, cancel, input items.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.http import get
from helmdash.providers.openai_responses.pass_request import RESPONSES_PATH
from helmdash.providers.protocols import HttpRequest

# Parameters that the API knows; others stay here.
_PARAMETERS = frozenset(
    "include include[] stream starting_after include_obfuscation after limit order".split()
)
_MOST_PARAMETERS = 32


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
