"""Reports to a HelmDash on another machine, by its API."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cached_property
from http.client import HTTPException
from typing import Any, Callable
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    AbstractHTTPHandler,
    BaseHandler,
    HTTPRedirectHandler,
    OpenerDirector,
    Request,
    build_opener,
)

from helmdash.transcripts.importing import CannotSend, Stored

_TIMEOUT_SECONDS = 60.0
# Waits between tries: a restart of the server, or its database's. Seconds.
_WAITS = (1.0, 2.0, 5.0, 10.0, 30.0)
# Failed tries in a row after which that is told: one is a server that is busy.
_TOLD_AT = 2
_AGAIN = frozenset({429, 502, 503, 504})
_LONGEST_WAIT = 120.0


class _NoRedirects(HTTPRedirectHandler):
    """A key is not carried to where an answer points."""

    def redirect_request(self, *_: Any, **__: Any) -> Request | None:
        return None


def make_opener() -> OpenerDirector:
    """What sends requests with a key: it follows no redirect."""
    return build_opener(_NoRedirects, *_secured())


def _secured() -> list[BaseHandler]:
    """What sends them by TLS; nothing where Python was built without it.

    urllib's own reads all authorities for each opener from Python 3.12 on, 20 ms also where the
    address is without TLS; and from 3.13 on it refuses authorities that a company made by openssl's
    defaults (VERIFY_X509_STRICT).
    """
    try:
        import ssl
        from http.client import HTTPSConnection
        from urllib.request import HTTPSHandler
    except ImportError:
        return []

    class Secured(HTTPSHandler):
        def __init__(self) -> None:
            AbstractHTTPHandler.__init__(self)

        @cached_property
        def _tls(self) -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_default_certs()
            return context

        def https_open(self, req: Request) -> Any:
            return self.do_open(HTTPSConnection, req, context=self._tls)

    return [Secured()]


class ApiSender:
    """Sends batches to `POST /api/v1/calls/batch`, again where the server asks for it.

    is_patient: for ever, as a watch does; else some tries. tell: hears why it waits, once that is
    not over with the first wait, and when the server answers again.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        is_patient: bool = False,
        wait: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CannotSend(f"--url wants an address such as http://localhost:8000, not {url!r}.")
        if not key:
            raise CannotSend("A key is missing: --key, or HELMDASH_API_KEY. Connect makes one.")
        self._address = f"{url.rstrip('/')}/api/v1/calls/batch"
        self._key, self._is_patient = key, is_patient
        self._wait, self._tell = wait, tell
        self._opener = make_opener()

    def __call__(self, reports: Sequence[dict[str, Any]]) -> Stored:
        """What became of these reports. Raises CannotSend."""
        body = json.dumps({"calls": list(reports)}, ensure_ascii=True).encode()
        tries = 0
        while True:
            try:
                answer = self._post(body)
                if tries >= _TOLD_AT:
                    self._tell("It answers again.")
                return _read(answer)
            except HTTPError as error:
                with error:
                    reason, asked = _said(error, self._address), error.headers.get("Retry-After")
                if error.code == 413 and len(reports) > 1:
                    half = len(reports) // 2
                    return _join(self(reports[:half]), self(reports[half:]), half)
                if error.code not in _AGAIN:
                    raise CannotSend(reason) from error
            except (URLError, OSError, HTTPException) as error:
                # The last: it was ended, or a proxy before it, in the middle of its answer.
                reason, asked = f"{self._address} cannot be reached: {error}", None
            if tries >= len(_WAITS) and not self._is_patient:
                raise CannotSend(f"{reason} Given up after {tries + 1} tries; run it again later.")
            tries += 1
            if tries == _TOLD_AT:
                self._tell(f"{reason} Trying again …")
            self._wait(_seconds(asked) or _WAITS[min(tries, len(_WAITS)) - 1])

    def _post(self, body: bytes) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "User-Agent": "helmdash-import",
        }
        request = Request(self._address, data=body, headers=headers, method="POST")  # noqa: S310
        with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            try:
                value = json.loads(answer.read())
            except ValueError:
                value = None
        if not isinstance(value, dict) or "stored" not in value:
            raise CannotSend(f"{self._address} did not answer as a HelmDash. Is --url right?")
        return value


def _read(answer: dict[str, Any]) -> Stored:
    return Stored(
        new=answer["stored"],
        known=answer["duplicates"],
        too_old=sum(bool(each.get("is_too_old")) for each in answer.get("rejected", ())),
        rejected={
            each["index"]: "; ".join(_fault(fault) for fault in each.get("errors", ()))
            for each in answer.get("rejected", ())
            if not each.get("is_too_old")
        },
    )


def _fault(told: Any) -> str:
    """One fault of a rejected report, with the field it is about."""
    if not isinstance(told, dict):
        return str(told)
    return f"{told.get('field') or ''} {told.get('message') or ''}".strip()


def _join(first: Stored, second: Stored, places: int) -> Stored:
    return Stored(
        new=first.new + second.new,
        known=first.known + second.known,
        too_old=first.too_old + second.too_old,
        rejected={
            **first.rejected,
            **{index + places: reason for index, reason in second.rejected.items()},
        },
    )


def _said(error: HTTPError, address: str) -> str:
    """What a server answered, in its own sentence where it has one."""
    try:
        told = json.loads(error.read(65_536))
        sentence = told.get("detail") or told.get("title") if isinstance(told, dict) else None
    except (ValueError, OSError, HTTPException):
        sentence = None
    return f"{address} answered {error.code}: {str(sentence or error.reason).rstrip('.')}."


def _seconds(asked: str | None) -> float | None:
    if asked is None or not asked.strip().isdecimal():
        return None
    return min(float(asked), _LONGEST_WAIT)
