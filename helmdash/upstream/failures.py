"""What can go wrong between us and an upstream, in words that the cause of a call is read from.

What this room raises; whoever calls an upstream meets UpstreamFailed alone, which failure_of makes
of whatever came from below:

Exception
+-- UpstreamFailed          no answer came, or not all of one; `kind` says where it ended
+-- guard.Refused           the URL may not be called
+-- coding.Unreadable       a compression that cannot be undone
+-- oidc.OidcFailed         the identity provider is out of reach, or cannot be trusted
|   +-- oidc.OidcBusy       so many requests wait for it that another one has to come again
+-- sharing.Stopping        the server takes no more work in the background
+-- ollama.OllamaError      instead of UpstreamFailed, for callers of the context manager
|   +-- ollama.OllamaTimeout
+-- ollama.UnknownWindow    nobody says how large a model's window is
+-- OSError
|   +-- guard.RefusedAddress    in the resolver, where only an OSError passes through
+-- httpx.ConnectError
|   +-- transport.NotAllowed    the guard refuses the address
|   +-- transport.NotResolved   the name leads to no address
|   +-- transport.NotSecure     no TLS that can be trusted
+-- httpx.RemoteProtocolError
    +-- transport.NotHttp       bytes in the middle of a body that are not HTTP
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import httpx

from helmdash.core.text.redaction import redact_text
from helmdash.core.upstreams.endpoints import LEAST_SECRET_CHARS
from helmdash.upstream.transport import NotAllowed, NotHttp, NotResolved, NotSecure

# A message is for a person: a page of HTML behind a 502 is not.
MOST_MESSAGE_CHARS = 300


class FailureKind(StrEnum):
    """Where a call ended without an answer, or in the middle of one."""

    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_READ = "timeout_read"
    TIMEOUT_WRITE = "timeout_write"
    TIMEOUT_POOL = "timeout_pool"
    UNREACHABLE = "unreachable"
    DNS = "dns"
    TLS = "tls"
    REFUSED_BY_GUARD = "refused_by_guard"
    REDIRECTED = "redirected"
    CLOSED_EARLY = "closed_early"
    TOO_LARGE = "too_large"
    MISCONFIGURED = "misconfigured"


# What core.calls.error_words knows each by.
CODES: Mapping[FailureKind, str] = {
    FailureKind.TIMEOUT_CONNECT: "connect_timeout",
    FailureKind.TIMEOUT_READ: "read_timeout",
    FailureKind.TIMEOUT_WRITE: "write_timeout",
    FailureKind.TIMEOUT_POOL: "pool_timeout",
    FailureKind.UNREACHABLE: "connection_error",
    FailureKind.DNS: "name_resolution_error",
    FailureKind.TLS: "tls_error",
    FailureKind.REFUSED_BY_GUARD: "unreachable",
    FailureKind.REDIRECTED: "upstream_redirected",
    FailureKind.CLOSED_EARLY: "connection_closed",
    FailureKind.TOO_LARGE: "upstream_error",
    FailureKind.MISCONFIGURED: "upstream_error",
}


class UpstreamFailed(Exception):
    """An upstream gave no answer, or not all of one.

    `message` is a sentence without keys and addresses of people; `attempts` is every try, ready for
    JSON, the failed one last; `code` is a word that core.calls.error_words knows; `http_status` is
    that of a redirect that was not followed, and None for everything else.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        attempts: tuple[Mapping[str, object], ...] = (),
        *,
        http_status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.attempts = attempts
        self.http_status = http_status

    @property
    def code(self) -> str:
        """What kind of failure it was, in the words that captures carry as `error_code`."""
        return CODES[self.kind]


_SENTENCES: tuple[tuple[type[Exception], FailureKind, str], ...] = (
    (httpx.ConnectTimeout, FailureKind.TIMEOUT_CONNECT, "could not be connected to in time"),
    (httpx.ReadTimeout, FailureKind.TIMEOUT_READ, "sent nothing for too long"),
    (httpx.WriteTimeout, FailureKind.TIMEOUT_WRITE, "did not take the whole request in time"),
    (httpx.PoolTimeout, FailureKind.TIMEOUT_POOL, "has no free connection: too many calls at once"),
    (NotResolved, FailureKind.DNS, "has a host name that leads nowhere"),
    (NotSecure, FailureKind.TLS, "has no TLS that can be trusted"),
    (NotAllowed, FailureKind.REFUSED_BY_GUARD, "may not be called"),
    (httpx.ConnectError, FailureKind.UNREACHABLE, "cannot be connected to"),
    (httpx.DecodingError, FailureKind.MISCONFIGURED, "did not answer in HTTP"),
    (NotHttp, FailureKind.CLOSED_EARLY, "broke off its answer with bytes that are not HTTP"),
    (httpx.NetworkError, FailureKind.CLOSED_EARLY, "closed the connection"),
    (httpx.RemoteProtocolError, FailureKind.CLOSED_EARLY, "closed the connection"),
    (httpx.UnsupportedProtocol, FailureKind.MISCONFIGURED, "has no usable URL"),
    (httpx.LocalProtocolError, FailureKind.MISCONFIGURED, "cannot be sent this request"),
)
# Their texts add something for a reader, and are ours or the system's.
_TELLING = frozenset({FailureKind.UNREACHABLE, FailureKind.TLS, FailureKind.REFUSED_BY_GUARD})


def failure_of(error: Exception, *, name: str, key: str | None) -> UpstreamFailed:
    """A transport's error, told for people. `name` is the upstream's; `key` (None: it has none)
    never shows."""
    for kind_of_error, kind, sentence in _SENTENCES:
        if isinstance(error, kind_of_error):
            more = f": {tidy(str(error), key=key)}" if kind in _TELLING else ""
            return UpstreamFailed(kind, f"Upstream {name} {sentence}{more or '.'}")
    raise error


def tidy(text: str, *, key: str | None) -> str:
    """Text of an upstream for people: one line, short, without our key (None: none was sent) and
    other secrets."""
    if key and len(key) >= LEAST_SECRET_CHARS:
        text = text.replace(key, "[key]")
    # Cut first, for a page of HTML costs time, and once more, for masks have their own length.
    line = " ".join(text[: 4 * MOST_MESSAGE_CHARS].split())
    return redact_text(line)[:MOST_MESSAGE_CHARS]
