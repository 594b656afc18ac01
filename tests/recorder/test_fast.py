"""The fast door answers as Django does: the same status, body and headers, for good and bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.test import Client

from helmdash.api.fast import FastReports
from helmdash.core.access.permissions import SHELL
from helmdash.doors.asgi import Message, Receive, Scope, Send
from helmdash.doors.callers.directory import read_key_context
from helmdash.doors.front import BODY_KEY, KEY_CONTEXT_KEY
from helmdash.operations.recorder import facade
from helmdash.records.models import Call
from tests import factories

HOST = "testserver"


@pytest.fixture
def key(transactional_db: None) -> Iterator[str]:
    """A key that may record, while the recorder of this process runs."""
    factories.make_project()
    facade.recorder.cache_clear()
    facade.recorder().start()
    yield factories.make_key(scopes=("record",))
    facade.recorder().stop()
    facade.recorder.cache_clear()


@dataclass(slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    is_fast: bool = True


def ask(
    path: str,
    body: bytes,
    headers: dict[str, str],
    *,
    method: str = "POST",
    query: str = "",
    known: str = "",
) -> Answer:
    """Send one request through the fast door, with Django behind it. known: the key of the caller,
    where the door in front is to have let it in."""
    answer = Answer(0, {}, b"")
    django = get_asgi_application()

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        answer.is_fast = False
        await django(scope, receive, send)  # type: ignore[arg-type]

    pieces = [body]

    async def receive() -> Message:
        if not pieces:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": pieces.pop(), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {n.decode().lower(): v.decode() for n, v in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    sent = {"host": HOST, "content-length": str(len(body)), **headers}
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "root_path": "",
        "scheme": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "server": (HOST, 80),
        "client": ("127.0.0.1", 1),
        BODY_KEY: body,
        **_of_key(known),
    }
    fast = FastReports(behind)
    asyncio.run(fast(scope, receive, send))
    fast.close()
    return answer


def _of_key(known: str) -> dict[str, Any]:
    """What the door adds to a request whose key it knows: read as there, in a thread beside."""
    if not known:
        return {}
    with ThreadPoolExecutor(1) as threads:
        return {KEY_CONTEXT_KEY: threads.submit(read_key_context, known).result()}


def ask_django(path: str, body: bytes, headers: dict[str, str]) -> Answer:
    """The same by Django's test client."""
    others = {name: value for name, value in headers.items() if name != "content-type"}
    got = Client().generic("POST", path, body, headers["content-type"], headers=others)
    return Answer(got.status_code, {n.lower(): v for n, v in got.items()}, got.content, False)


CALL = {"id": "one", "model": "openai/gpt-4o", "conversation": "talk", "finish_reason": "stop"}


def headers_of(key: str, **more: str) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return {"authorization": f"Bearer {key}", "content-type": "application/json", **named}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/calls", CALL),
        ("/api/v1/calls", {"model": "m", "usage": {"prompt_tokens": 5}, "id": "é"}),
        ("/api/v1/calls/batch", {"calls": [CALL, {**CALL, "id": "two"}]}),
        # Some are rejected: still a good batch.
        ("/api/v1/calls/batch", {"calls": [CALL, {"modle": "m"}, {"model": "a\0"}]}),
        ("/api/v1/calls/batch", {"calls": [{"model": 5}]}),
        ("/api/v1/calls/batch", {"calls": []}),
    ],
)
@pytest.mark.parametrize("spaces", [0, 20_000], ids=["short", "long"])
def test_a_good_report_is_answered_as_django_answers_it(
    key: str, path: str, body: dict[str, Any], spaces: int
) -> None:
    text = json.dumps(body).encode() + b" " * spaces

    first = ask(path, text, headers_of(key))
    stored = Call.objects.count()
    again = ask(path, text, headers_of(key), known=key)
    django = ask_django(path, text, headers_of(key))

    if body != {"calls": []}:
        assert (first.is_fast, again.is_fast) == (True, True)
    assert (again.status, again.headers, again.body) == (
        django.status,
        django.headers,
        django.body,
    )
    assert first.status in (200, 201, 422)
    assert Call.objects.count() == stored


@pytest.mark.parametrize(
    ("body", "headers", "query", "status"),
    [
        (b'{"model": "m", "modle": 1}', {}, "", 422),  # an unknown member
        (b'{"model": ', {}, "", 400),  # not JSON
        (b"", {}, "", 400),  # nothing
        (b'{"model": "m"}', {"content-type": "text/plain"}, "", 415),
        (b'{"model": "m"}', {"content-encoding": "gzip"}, "", 415),
        (b'{"model": "m"}', {"authorization": "Bearer hd_wrong"}, "", 401),
        (b'{"model": "m"}', {"authorization": "Basic abc"}, "", 401),
        (b'{"model": "m"}', {"host": "evil.example"}, "", 400),
        (b'{"model": "m"}', {}, "pretty", 422),  # a parameter that is not known
    ],
)
def test_a_bad_report_is_refused_by_django_itself(
    key: str, body: bytes, headers: dict[str, str], query: str, status: int
) -> None:
    sent = {**headers_of(key), **headers}
    query = query and f"{query}=1"
    known = key if sent["authorization"].endswith(key) else ""
    by_thread = ask("/api/v1/calls", body, sent, query=query)
    by_loop = ask("/api/v1/calls", body, sent, query=query, known=known)

    assert (by_thread.status, by_thread.is_fast) == (status, False)
    assert (by_loop.status, by_loop.is_fast) == (status, False)
    assert Call.objects.count() == 0


def test_a_key_without_the_scope_is_refused(key: str) -> None:
    reader = factories.make_key(name="reader", scopes=("read",))

    refused = ask("/api/v1/calls", b'{"model": "m"}', headers_of(reader))

    assert (refused.status, json.loads(refused.body)["code"]) == (403, "forbidden")
    assert Call.objects.count() == 0


def test_a_key_may_come_in_either_header_and_a_revoked_one_ends_at_once(key: str) -> None:
    from django.utils import timezone

    from helmdash.operations.access import keys

    body = {"content-type": "application/json"}
    assert ask("/api/v1/calls", b'{"model": "m"}', {"x-api-key": key, **body}).status == 201
    keys.revoke_key(actor=SHELL, name="owner", now=timezone.now())
    assert ask("/api/v1/calls", b'{"model": "m"}', {"x-api-key": key, **body}).status == 401


def test_other_requests_are_left_to_django(key: str) -> None:
    listed = ask("/api/v1/calls", b"", headers_of(key), method="GET")
    without = ask("/api/v1/calls", b'{"model": "m"}', {"content-type": "application/json"})

    assert (listed.status, listed.is_fast) == (403, False)
    assert (without.status, without.is_fast) == (401, False)
