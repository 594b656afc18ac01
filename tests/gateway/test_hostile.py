"""A hostile caller: no choice of the destination, no look at keys or other projects, no harm."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.clients import QUESTION
from tests.gateway.world import (
    CAREFUL,
    OTHER_PROJECT,
    PROVIDERS,
    READER,
    REVOKED,
    STRANGER,
    World,
    model_of,
    open_http,
)
from tests.support.upstreams import Seen
from tests.support.upstreams.fleet import KEYS

pytestmark = pytest.mark.xdist_group("gateway")
# Whatever is asked here comes to the same rows, or to none.
NO_DATABASE = pytest.mark.one_database

USER = [{"role": "user", "content": QUESTION}]
MIB = 1024 * 1024
# Paths the gateway may ask of an upstream at all.
PATHS = re.compile(
    r"/v1/(chat/completions|embeddings|models|messages|messages/count_tokens)(\?limit=\d+)?"
    r"|/api/(chat|generate|embed|tags|show|ps|version)"
    r"|/v1beta/models/[A-Za-z0-9._~%-]+:(generateContent|streamGenerateContent\?alt=sse|"
    r"countTokens|embedContent|batchEmbedContents)|/v1beta/models(\?pageSize=\d+)?"
)
# Headers an upstream may get; anything else has leaked through.
HEADERS = {
    "host",
    "accept",
    "accept-encoding",
    "user-agent",
    "content-type",
    "content-length",
    "connection",
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
}


@pytest.fixture(autouse=True)
def _nobody_is_led_astray(world: World) -> Iterator[None]:
    before = {provider: len(world.fleet[provider].seen()) for provider in PROVIDERS}
    yield
    assert world.fleet.outsider.seen() == []
    for provider in PROVIDERS:
        for seen in world.fleet[provider].seen()[before[provider] :]:
            check_innocent(world, seen)


def check_innocent(world: World, seen: Seen) -> None:
    """Nothing in a request to an upstream is what a caller smuggled in."""
    assert PATHS.fullmatch(seen.target), seen.target
    assert {name.lower() for name, _ in seen.headers} <= HEADERS
    assert len({name.lower() for name, _ in seen.headers}) == len(seen.headers)
    assert world.key not in seen.text
    assert "evil" not in seen.text.partition("\n\n")[0]


@NO_DATABASE
@pytest.mark.parametrize(
    "name",
    [
        "host",
        "x-forwarded-host",
        "forwarded",
        "x-base-url",
        "x-api-base",
        "openai-base-url",
        "x-upstream",
        "x-helmdash-upstream",
        "x-helmdash-base-url",
        "x-portkey-custom-host",
        "x-target-url",
        "x-original-url",
        "x-rewrite-url",
    ],
)
def test_no_header_chooses_the_destination(world: World, name: str, mark: str) -> None:
    outsider = world.fleet.outsider
    value = f"127.0.0.1:{outsider.port}" if "host" in name else outsider.root_url
    answer = post_raw(world, model_of("openai", "plain", mark), {name: value})

    # A host of somebody else's may be refused outright.
    assert answer.status in ({200, 400} if name == "host" else {200})


@NO_DATABASE
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "name", ["api_base", "base_url", "baseURL", "api_url", "endpoint", "proxy", "upstream", "host"]
)
def test_no_member_chooses_the_destination(
    world: World, provider: str, name: str, mark: str
) -> None:
    url = world.fleet.outsider.root_url
    body = {"model": model_of(provider, "plain", mark), "messages": USER, name: url}
    inner = {**body, "metadata": {name: url}, "extra_body": {name: url}}

    for sent in (body, inner):
        answer = world.post("/v1/chat/completions", sent)
        assert answer.status_code in {200, 400}
    for seen in world.fleet[provider].seen(mark):
        assert f"127.0.0.1:{world.fleet[provider].port}" == seen.header("host")


@NO_DATABASE
@pytest.mark.parametrize("shape", ["openai", "gemini"])
@pytest.mark.parametrize(
    "model",
    [
        "OUTSIDER/v1/gpt-plain",
        "//HOST/gpt-plain",
        "openai/OUTSIDER/v1",
        "gemini/OUTSIDER/v1",
        "gemini/../../../v1/files",
        "gemini/..%2f..%2fv1/files",
        "gemini/gemini-plain/../../x",
        "gemini/gemini-plain:generateContent?evil=1#",
        "gemini/gemini-plain?evil=1",
        "gemini/gemini-plain#evil",
        "gemini/gemini-plain\r\nx-evil: 1",
        "gemini/gemini-plain\nx-evil: 1",
        "gemini/gemini-plain\x00",
        "gemini/gemini-plain@HOST",
        "gemini/\\\\HOST\\x",
        "gemini/gemini-plain\u2028\u202e",
        "openai/gpt-plain\r\nx-evil: 1",
        "../openai/gpt-plain",
        "openai",
        "openai/",
        "/",
        "",
        ".",
        " ",
        "x" * 10_000,
        "gemini/" + "x" * 10_000,
    ],
)
def test_no_model_chooses_the_destination(world: World, shape: str, model: str) -> None:
    outsider = world.fleet.outsider
    model = model.replace("OUTSIDER", outsider.root_url).replace(
        "HOST", f"127.0.0.1:{outsider.port}"
    )
    if shape == "openai":
        answer = world.post("/v1/chat/completions", {"model": model, "messages": USER})
        status = answer.status_code
    else:
        status = post_gemini_path(world, model)

    assert status < 500


@NO_DATABASE
def test_a_key_in_the_query_is_neither_ours_nor_passed_on(world: World, mark: str) -> None:
    body = {"contents": [{"parts": [{"text": QUESTION}]}]}
    path = f"/v1beta/models/{model_of('gemini', 'plain', mark)}:generateContent?key=evil"

    assert world.post(path, body).status_code == 200
    with open_http(world.url, world.key) as client:
        del client.headers["authorization"]
        assert client.post(path, json=body).status_code == 401


@NO_DATABASE
def test_a_clients_own_headers_stay_here(world: World, mark: str) -> None:
    smuggled = {
        "cookie": "session=evil",
        "proxy-authorization": "Basic evil",
        "x-forwarded-for": "evil",
        "x-evil": "evil",
        "openai-organization": "evil",
        "x-stainless-lang": "evil",
        "connection": "close, x-evil",
        "te": "trailers",
        "expect": "",
    }
    for provider in PROVIDERS:
        answer = post_raw(world, model_of(provider, "plain", mark), smuggled)
        assert answer.status == 200
        (seen,) = world.fleet[provider].seen(mark)
        assert KEYS[provider] in seen.text


@NO_DATABASE
@pytest.mark.parametrize(
    "head",
    [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding : chunked",
        "content-length: +5",
        "content-length: -1",
        "x-helmdash-conversation: a\r\n b",
        "x-helmdash-pack: a\nx-evil: 1",
        "x-helmdash-pack: \x00",
        "x-helmdash-purpose: Robert'); DROP TABLE",
        "x-helmdash-budget: sometimes",
        "x-helmdash-lane: middle",
        "x-helmdash-parent: alone",
        "x-helmdash-conversation: ../../x",
    ],
)
def test_two_requests_in_one_are_not_sent_on(world: World, head: str) -> None:
    body = json.dumps({"model": model_of("openai"), "messages": USER}).encode()
    length = (
        "" if "content-length" in head or "encoding" in head else f"content-length: {len(body)}\r\n"
    )
    request = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{length}{head}\r\n"
        f"authorization: Bearer {world.key}\r\ncontent-type: application/json\r\n"
        "connection: close\r\n\r\n"
    ).encode("latin-1")
    before = len(world.fleet.openai.seen())

    answer = talk(world, request + body)

    assert answer.startswith((b"HTTP/1.1 4", b"")), answer[:200]
    assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 5")), answer[:200]
    assert len(world.fleet.openai.seen()) == before


def test_an_upstreams_key_shows_nowhere(world: World, mark: str) -> None:
    told = []
    for provider in PROVIDERS:
        for behaviour in ("echo", "echo-error", "bad-key", "redirect"):
            model = model_of(provider, behaviour, mark)
            for path, body in (
                ("/v1/chat/completions", {"model": model, "messages": USER}),
                ("/v1/chat/completions", {"model": model, "messages": USER, "stream": True}),
                ("/v1/messages", {"model": model, "messages": USER, "max_tokens": 9}),
            ):
                answer = world.post(path, body)
                told.append(f"{answer.headers} {answer.text}")
                told.append(json.dumps(world.call_of(answer)))
            assert world.fleet[provider].seen(mark)
    told += kept_by(world)

    for key in (*KEYS.values(), world.key):
        for text in told:
            assert key not in text, text[max(0, text.index(key) - 300) : text.index(key) + 80]


def test_what_is_said_is_not_kept_where_the_project_keeps_nothing(world: World, mark: str) -> None:
    secret = f"the secret of {mark} in plain words"
    for stream in (True, False):
        body = {
            "model": model_of("openai", "retell", "private"),
            "messages": [{"role": "user", "content": secret}],
            "stream": stream,
        }
        answer = world.post("/v1/chat/completions", body)
        assert answer.status_code == 200
        call = world.call_of(answer)
        assert (call["messages"], call["content"]) == (None, None)
        assert call["raw_content_len"] > len(secret)

    # The spool holds a reply until it has been judged and its record stored.
    deadline = time.monotonic() + 10
    while any(mark in text for text in kept_by(world)):
        assert time.monotonic() < deadline, "what was said is still on the disk"
        time.sleep(0.1)


def test_another_project_is_closed(world: World, mark: str) -> None:
    body = {"model": model_of("openai", "plain", mark), "messages": USER}

    own = world.post("/v1/chat/completions", body, x_helmdash_conversation=f"talk-{mark}")
    call_id = own.headers["x-helmdash-call-id"]
    world.call(call_id)

    with open_http(world.url, STRANGER) as client:
        assert client.get(f"/api/v1/calls/{call_id}").status_code == 404
        assert client.get(f"/api/v1/conversations/talk-{mark}").status_code == 404
        assert client.get("/api/v1/calls", params={"q": mark}).json()["items"] == []
        claimed = client.post(
            "/v1/chat/completions", json=body, headers={"x-helmdash-project": "default"}
        )
        assert claimed.status_code == 403
        assert "x-helmdash-project" in claimed.json()["error"]["message"]
        # The same name is another conversation there, and its first call.
        theirs = client.post(
            "/v1/chat/completions",
            json=body,
            headers={
                "x-helmdash-conversation": f"talk-{mark}",
                "x-helmdash-project": OTHER_PROJECT,
            },
        )
        assert theirs.status_code == 200
        deadline = time.monotonic() + 10
        their_id = theirs.headers["x-helmdash-call-id"]
        while (found := client.get(f"/api/v1/calls/{their_id}")).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert found.json()["generation"] == 1
    assert world.api.get(f"/calls/{their_id}").status_code == 404


def test_a_key_without_the_scope_and_a_revoked_key_are_refused(world: World, mark: str) -> None:
    body = {"model": model_of("openai", "plain", mark), "messages": USER}
    with open_http(world.url, READER) as client:
        refused = client.post("/v1/chat/completions", json=body)
        # What it may not ask for is not looked at.
        unread = client.post("/v1/chat/completions", json=body, headers={"x-helmdash-lane": "?"})
    assert (refused.status_code, unread.status_code) == (403, 403)
    assert "record" in refused.json()["error"]["message"]

    with open_http(world.url, REVOKED) as client:
        assert client.post("/v1/chat/completions", json=body).status_code == 200
        assert world.served.manage("apikey", "revoke", "gone").returncode == 0
        revoked_at = asked_at = time.monotonic()
        while client.post("/v1/chat/completions", json=body).status_code != 401:
            # However long the answer took.
            assert asked_at - revoked_at < 1, "in force in every process within a second"
            time.sleep(0.1)
            asked_at = time.monotonic()


@NO_DATABASE
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat"])
def test_a_body_too_large_is_refused_at_once(world: World, path: str) -> None:
    started = time.monotonic()
    announced = talk(world, head_of(world, path, f"content-length: {8 * 1024 * MIB}"))

    assert announced.startswith(b"HTTP/1.1 413"), announced[:200]
    assert b"error" in announced
    assert time.monotonic() - started < 10


@NO_DATABASE
def test_an_endless_body_is_cut_off_and_costs_little_memory(world: World) -> None:
    before = resident_mib(world)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", world.served.port), timeout=10) as connection:
            connection.sendall(head_of(world, "/v1/chat/completions", "transfer-encoding: chunked"))
            sent = 0
            try:
                while sent < 200 * MIB:
                    connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                    sent += 0x10000
            except OSError:
                pass  # the server has closed: that is what is wanted
        # Sockets hold some MiB on both sides.
        assert sent < 40 * MIB
    assert resident_mib(world) - before < 60


def test_a_body_of_the_largest_size_passes(world: World, mark: str) -> None:
    text = "x" * (8 * MIB - 2000)
    body = {
        "model": model_of("openai", "plain", mark),
        "messages": [{"role": "user", "content": text}],
    }

    assert world.post("/v1/chat/completions", body).status_code == 200
    assert world.call_to(body["model"])["sent"]["bytes"] > 8 * MIB - 2000  # type: ignore[arg-type]


@NO_DATABASE
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat", "GEMINI"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b'{"model": NaN}',
        b'{"model": "openai/gpt-plain", "messages": ' + b"[" * 200_000,
        b'{"model": "openai/gpt-plain", "messages": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"model": "openai/gpt-plain", "messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b'{"model": {"a": 1}, "messages": []}',
        b'{"model": "openai/gpt-plain", "messages": {"role": "user"}}',
        b'{"model": "openai/gpt-plain", "messages": [null, 1, []]}',
        b'{"model": "openai/gpt-plain", "messages": [{"role": "user", "content": {"a": 1}}]}',
        b'{"model": "openai/gpt-plain", "messages": [], "tools": "all", "stream": "yes"}',
        b'{"contents": [[]], "tools": 7}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_makes_no_sense_is_the_clients_fault(
    world: World, path: str, body: bytes
) -> None:
    if path == "GEMINI":
        path = f"/v1beta/models/{model_of('openai')}:generateContent"

    answer = world.post(path, content=body)

    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["error"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_odd_text_breaks_nothing(world: World, provider: str, mark: str) -> None:
    # A lone surrogate, a null, a direction mark, a byte order mark.
    odd = "\\ud800 \\u0000 \\u202e \\ufeff"
    body = {"model": model_of(provider, "plain", mark), "messages": [{"role": "user"}]}
    content = json.dumps(body).replace('"user"', f'"user", "content": "{odd}"')

    answer = world.post("/v1/chat/completions", content=content.encode())

    assert answer.status_code in {200, 400}
    if answer.status_code == 200:
        assert world.call_of(answer)["status"] == "success"


@NO_DATABASE
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("PUT", "/v1/messages", 405),
        ("DELETE", "/api/chat", 405),
        ("POST", "/v1/models", 405),
        # endpoints of the vendors that are not served here
        ("POST", "/v1/batches", 404),
        ("POST", "/v1/files", 404),
        ("POST", "/v1/messages/batches", 404),
        ("DELETE", "/api/delete", 404),
        ("POST", "/v1beta/models/gemini-plain:tuneModel", 404),
        ("POST", "/v1beta/cachedContents", 404),
    ],
)
def test_what_is_not_served_is_refused_in_json(
    world: World, method: str, path: str, status: int
) -> None:
    answer = world.http.request(method, path, json={"model": model_of("openai")})

    assert answer.status_code == status
    assert answer.json()["error"]


@NO_DATABASE
def test_a_private_address_wants_leave(world: World, mark: str) -> None:
    """The same address as ever, in a row of the admin's that does not allow private ones."""
    body = {"model": f"{CAREFUL}/gpt-plain.{mark}", "messages": USER}

    answer = world.post("/v1/chat/completions", body)

    assert answer.status_code == 502
    assert world.fleet.openai.seen(mark) == []
    assert world.call_of(answer)["cause"]["name"] == "unreachable"


def test_the_server_still_serves_after_all_that(world: World) -> None:
    body = {"model": model_of("openai"), "messages": USER}

    assert world.post("/v1/chat/completions", body).status_code == 200
    assert "Traceback" not in world.served.data_dir.with_suffix(".log").read_text()


def kept_by(world: World) -> list[str]:
    """All that the server has written: its log, and the files of its data directory."""
    data_dir = world.served.data_dir
    # It begins with a snippet for the first call, which holds the first key.
    log = data_dir.with_suffix(".log").read_text().partition("Ctrl-C")[2]
    files = [file for file in data_dir.rglob("*") if file.is_file()]
    return [log, *(file.read_bytes().decode("latin-1") for file in files)]


def post_raw(world: World, model: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    """A request whose headers are exactly these; a later one of a name takes its place."""
    body = json.dumps({"model": model, "messages": USER})
    named = {
        "host": f"127.0.0.1:{world.served.port}",
        "authorization": f"Bearer {world.key}",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **headers,
    }
    connection = http.client.HTTPConnection("127.0.0.1", world.served.port, timeout=20)
    try:
        connection.putrequest(
            "POST", "/v1/chat/completions", skip_host=True, skip_accept_encoding=True
        )
        for name, value in named.items():
            connection.putheader(name, value)
        connection.endheaders(body.encode())
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


def post_gemini_path(world: World, model: str) -> int:
    """The status of a question whose path holds the model as it is, but for what no line holds."""
    body: Any = json.dumps({"contents": [{"parts": [{"text": QUESTION}]}]}).encode()
    quoted = "".join(
        f"%{byte:02X}" if byte <= 0x20 or byte >= 0x7F else chr(byte) for byte in model.encode()
    )
    head = (
        f"POST /v1beta/models/{quoted}:generateContent HTTP/1.1\r\nhost: localhost\r\n"
        f"authorization: Bearer {world.key}\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return int(talk(world, head.encode() + body).split(b" ")[1])


def head_of(world: World, path: str, framing: str) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {world.key}\r\n"
        f"content-type: application/json\r\n{framing}\r\n\r\n"
    ).encode()


def talk(world: World, request: bytes) -> bytes:
    """Send bytes, give the bytes that come back until the server closes or falls silent."""
    answer = b""
    with socket.create_connection(("127.0.0.1", world.served.port), timeout=3) as connection:
        connection.sendall(request)
        try:
            while data := connection.recv(65536):
                answer += data
                if is_complete(answer):
                    break
        except OSError:
            pass  # closed by force, or silent: what came is what there is
    return answer


def is_complete(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return found is not None and len(body) >= int(found[1])


def resident_mib(world: World) -> float:
    """The memory of the server's process."""
    status = Path(f"/proc/{world.served.process.pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
