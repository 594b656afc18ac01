"""Answers that are given before Django: a problem for programs, a plain page for people."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from django.http import HttpResponse
from django.template.loader import render_to_string

from helmdash.doors.asgi import Connection, Send
from helmdash.doors.faults import Fault
from helmdash.doors.problems import CONTENT_TYPE, KINDS, Problem, body_of

Header = tuple[bytes, bytes]

# Our own style sheets and pictures, and nothing else.
PAGE_CSP = b"default-src 'none'; style-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
_TITLES = {
    408: "That took too long",
    413: "That is too much at once",
    414: "The address is too long",
    415: "This form cannot be read",
    429: "Too many requests",
    503: "Not just now",
}


async def send_problem(send: Send, problem: Problem) -> None:
    """application/problem+json. The rest of the request's body is not read."""
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    await send_whole(
        send, KINDS[problem.code].status, body_of(problem), CONTENT_TYPE.encode(), headers
    )


async def send_page(send: Send, fault: Fault) -> None:
    """A plain page that says what stopped the request."""
    page = page_about(fault.status, str(fault))
    headers = [(b"content-security-policy", PAGE_CSP)]
    if fault.retry_after_s is not None:
        headers.append((b"retry-after", str(fault.retry_after_s).encode()))
    await send_whole(send, fault.status, page.encode(), b"text/html; charset=utf-8", headers)


def page_about(status: int, sentence: str) -> str:
    """The plain page, as HTML."""
    context = {"status": status, "title": title_of(status), "sentence": sentence}
    return render_to_string("refused.html", context)


def title_of(status: int) -> str:
    """What such a page says above its sentence."""
    return _TITLES.get(status, "This cannot be read")


def raw_headers(response: HttpResponse) -> list[Header]:
    """The headers of an answer that Django's classes describe, as they are sent."""
    return [
        (name.lower().encode("ascii"), value.encode("latin-1")) for name, value in response.items()
    ]


async def send_response(send: Send, response: HttpResponse) -> None:
    """An answer that Django's classes describe."""
    headers = raw_headers(response)
    content_type = response.get("Content-Type", "text/plain").encode("latin-1")
    others = [header for header in headers if header[0] not in (b"content-type", b"content-length")]
    await send_whole(send, response.status_code, response.content, content_type, others)


async def send_whole(
    send: Send, status: int, body: bytes, content_type: bytes, headers: Iterable[Header] = ()
) -> None:
    """Send a response of one piece, and ask for the connection to be closed behind it."""
    sent = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def send_at_once(
    connection: Connection | None,
    send: Send,
    status: int,
    headers: Iterable[Header],
    body: bytes,
) -> None:
    """Send a response of one piece, in one write where its connection is ours; that stays open.

    `headers` have names in small letters, content-length not among them. Raises RuntimeError for
    bytes that no header may hold.
    """
    if status == HTTPStatus.NO_CONTENT:  # ends with its head, which may not say otherwise
        sent, body = [header for header in headers if header[0] != b"content-type"], b""
    else:
        sent = [*headers, (b"content-length", b"%d" % len(body))]
    if connection is not None and connection.answer_whole(status, sent, body):
        return
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
