"""What comes off the wire, through raw sockets at a served HelmDash: refused, quickly, in one line.

One server with short times and small limits for all cases; each is a connection of its own.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from tests.support.server import Served

pytestmark = pytest.mark.xdist_group("doors")

KEYED = b"Host: localhost\r\nAuthorization: Bearer %s\r\n"
PLAIN = b"Host: localhost\r\n"
MB = 1024 * 1024


@pytest.fixture(scope="module")
def door(serve: Callable[..., Served]) -> Served:
    return serve(
        HELMDASH_HEADER_SECONDS="1",
        HELMDASH_BODY_SECONDS="1",
        HELMDASH_IDLE_SECONDS="2",
        HELMDASH_MAX_HEADERS="40",
        HELMDASH_MAX_ANONYMOUS_CONNECTIONS="60",
        HELMDASH_MAX_CONNECTIONS="80",
        HELMDASH_MAX_BODY_BYTES="65536",
        HELMDASH_MAX_ANONYMOUS_BODY_BYTES="4096",
    )


@contextmanager
def connected(door: Served) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", door.port), timeout=8) as client:
        yield client


def send(client: socket.socket, data: bytes) -> None:
    """Send what the server still takes."""
    with suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(data)


def read_to_end(client: socket.socket) -> bytes:
    """All that comes until the server closes. Raises TimeoutError when it does not."""
    got = b""
    try:
        while part := client.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def read_one(client: socket.socket) -> bytes:
    """The head of one answer with a Content-Length; its body is read, too."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += client.recv(65536)
    assert len(body) == length, "two answers at once"
    return head


def ask(door: Served, data: bytes) -> bytes:
    """Send it and give what comes until the server closes the connection."""
    with connected(door) as client:
        send(client, data)
        return read_to_end(client)


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    return int(answer.split(b" ", 2)[1])


def keyed(door: Served) -> bytes:
    return KEYED % door.api_key.encode()


CALL = b'{"model": "m"}'


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        # Not HTTP.
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200, 400),
        (b"GET / HTTP/9.9\r\n" + PLAIN + b"\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET  HTTP/1.1\r\n" + PLAIN + b"\r\n", 400),
        (b"GET /\xff\xfe HTTP/1.1\r\n" + PLAIN + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + PLAIN + b"X: a\0b\r\n\r\n", 400),
        (b"CONNECT evil.example:443 HTTP/1.1\r\n" + PLAIN + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        # Two readings of where the body ends.
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Content-Length: 4\r\nTransfer-Encoding: chunked", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Transfer-Encoding: chunked\r\nContent-Length: 4", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Content-Length: 4\r\nContent-Length: 5", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Content-Length: 4\r\nContent-Length: 4", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Content-Length: -4", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Content-Length: 0x4", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Content-Length: 4, 4", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Transfer-Encoding: xchunked", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Transfer-Encoding: chunked, identity", 400),
        (b"POST / HTTP/1.1\r\n" + PLAIN + b"Transfer-Encoding : chunked", 400),
        (b"POST / HTTP/1.0\r\n" + PLAIN + b"Transfer-Encoding: chunked", 400),
        (
            b"POST / HTTP/1.1\r\n" + PLAIN + b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
            b"Content-Length: 4\r\nTransfer-Encoding: chunked",
            400,
        ),
        # WebSocket is not spoken; an upgrade of any method is answered.
        (
            b"GET / HTTP/1.1\r\n" + PLAIN + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            426,
        ),
        (
            b"POST /v1/responses HTTP/1.1\r\n" + PLAIN + b"Connection: keep-alive, Upgrade\r\n"
            b"Upgrade: WebSocket\r\nContent-Length: 2",
            426,
        ),
        # Too much of it.
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + PLAIN, 414),
        (b"GET / HTTP/1.1\r\n" + PLAIN + b"X: " + b"a" * 20_000, 431),
        (b"GET / HTTP/1.1\r\n" + PLAIN + b"X: a\r\n" * 41, 431),
        (b"GET / HTTP/1.1\r\n" + PLAIN + b"X: " + b"a" * 1500 + b"\r\n" * 1, 200),
        (b"GET / HTTP/1.1\r\n" + PLAIN + (b"X: " + b"a" * 1500 + b"\r\n") * 30, 431),
    ],
)
def test_what_is_no_request_is_refused_in_one_line_and_closed(
    door: Served, request_bytes: bytes, expected: int
) -> None:
    ending = b"Connection: close\r\n\r\n" if request_bytes.endswith(b"\r\n") else b"\r\n\r\n"
    if expected == 200:
        request_bytes = request_bytes.replace(b"GET / ", b"GET /healthz ")
    started = time.monotonic()

    answer = ask(door, request_bytes + ending)

    assert status(answer) == expected
    assert b"connection: close" in answer.lower()
    assert len(answer) < 1000
    # Before anything is waited for: the header time of this server is a second.
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("accept", "kind", "said"),
    [
        (b"text/html,application/xhtml+xml,*/*;q=0.8", b"text/html", b"</h1>"),
        (b"application/json, text/plain", b"application/problem+json", b'"detail":'),
        (b"*/*", b"text/plain", b""),
    ],
)
def test_a_refusal_is_told_as_its_client_reads(
    door: Served, accept: bytes, kind: bytes, said: bytes
) -> None:
    head = b" HTTP/1.1\r\n" + PLAIN + b"Accept: " + accept + b"\r\n\r\n"

    answer = ask(door, b"GET /calls/?q=" + b"a" * 20_000 + head)

    assert status(answer) == 414
    assert b"content-type: " + kind in answer.lower()
    assert said in answer
    assert b"An address may have 16384 bytes at most" in answer


def test_who_says_no_more_behind_it_is_answered_too(door: Served) -> None:
    with connected(door) as client:
        send(client, b"hello\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        assert status(read_to_end(client)) == 400


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nX: ",
        b"GET / HTTP/1.1\r\n" + b"X" * 100,
        b"GET /",
        # Behind a chunked body, and between its pieces.
        b"POST /login/ HTTP/1.1\r\n" + PLAIN + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        b"POST /login/ HTTP/1.1\r\n" + PLAIN + b"Transfer-Encoding: chunked\r\n\r\n4;x=",
    ],
)
def test_an_endless_header_of_64_mb_stops_nobody(door: Served, head: bytes) -> None:
    with connected(door) as client, httpx.Client(base_url=door.base_url) as good:
        good.get("/healthz")
        send(client, head)
        started = time.monotonic()
        for _ in range(64):
            send(client, b"a" * MB)
        assert good.get("/healthz").status_code == 200
        assert time.monotonic() - started < 20
        assert read_to_end(client)[9:12] in (b"431", b"414", b"400", b"")


def test_slow_headers_have_a_time(door: Served) -> None:
    first = b"GET / HTTP/1.1\r\n"
    whole = b"GET /healthz HTTP/1.1\r\n" + PLAIN + b"\r\n"
    with connected(door) as silent, connected(door) as slow, connected(door) as second:
        slow.sendall(first)
        # Behind an answered request, too.
        second.sendall(whole)
        read_one(second)
        second.sendall(first)
        started = time.monotonic()
        assert status(read_to_end(slow)) == 408
        assert status(read_to_end(second)) == 408
        assert read_to_end(silent) == b""
        assert time.monotonic() - started < 20


def test_an_idle_connection_is_closed_after_its_time_and_not_before(door: Served) -> None:
    whole = b"GET /healthz HTTP/1.1\r\n" + PLAIN + b"\r\n"
    with connected(door) as client:
        client.sendall(whole)
        read_one(client)
        time.sleep(1.2)
        client.sendall(whole)
        assert status(read_one(client)) == 200
        started = time.monotonic()
        assert read_to_end(client) == b""
        assert time.monotonic() - started > 1.5


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"POST /api/v1/calls", 401),
        (b"POST /v1/chat/completions", 401),
        (b"POST /v1/messages", 401),
        (b"POST /api/chat", 401),
        (b"POST /v1beta/models/gemini-2.5-pro:generateContent", 401),
        (b"POST /mcp", 401),
        (b"POST /v1/traces", 401),
        (b"POST /", 302),
        (b"POST /settings/keys/", 302),
        (b"POST /admin/", 302),
        (b"PUT /conversations/", 302),
        (b"POST /healthz", 403),
    ],
)
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 60000\r\n", b"Transfer-Encoding: chunked\r\n"]
)
def test_who_is_not_known_is_answered_without_their_body(
    door: Served, target: bytes, expected: int, framing: bytes
) -> None:
    with connected(door) as client:
        client.sendall(target + b" HTTP/1.1\r\n" + PLAIN + framing + b"\r\n")
        answer = client.recv(65536)
        assert status(answer) == expected
        assert read_to_end(client) is not None  # and closed, though the body never came


def test_a_wrong_session_is_no_session(door: Served) -> None:
    answer = ask(
        door,
        b"POST /settings/keys/ HTTP/1.1\r\n"
        + PLAIN
        + b"Cookie: sessionid=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nContent-Length: 5000\r\n\r\n",
    )

    assert status(answer) == 302


@pytest.mark.parametrize(
    ("target", "head", "kind"),
    [
        (b"/api/v1/calls", True, b"application/problem+json"),
        (b"/v1/chat/completions", True, b"application/json"),
        (b"/v1/messages", True, b"application/json"),
        (b"/mcp", True, b"application/json"),
        (b"/login/", False, b"text/html"),
    ],
)
def test_a_body_over_its_size_or_time_is_told_in_the_face_s_own_shape(
    door: Served, target: bytes, head: bool, kind: bytes
) -> None:
    start = b"POST " + target + b" HTTP/1.1\r\n" + (keyed(door) if head else PLAIN)
    start += b"Content-Type: application/json\r\n"
    announced = ask(door, start + b"Content-Length: 70000\r\n\r\n")
    chunk = b"%x\r\n" % 5000 + b"x" * 5000 + b"\r\n"
    found_out = ask(door, start + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 14)
    slow = ask(door, start + b"Content-Length: 100\r\n\r\n{")

    for answer, expected in ((announced, 413), (found_out, 413), (slow, 408)):
        assert status(answer) == expected
        assert b"content-type: " + kind in answer.lower()
        assert b"connection: close" in answer.lower()


def test_a_form_that_is_too_large_is_told_so_within_the_frame(door: Served) -> None:
    with httpx.Client(base_url=door.base_url) as person:
        person.get("/login/")
        name = {"username": "admin", "password": door.admin_password}
        token = {"X-CSRFToken": person.cookies["csrftoken"]}
        person.post("/login/", data=name, headers=token)
        page, part, program = (
            person.post("/try/fit/", content=b"x" * 70_000, headers=headers)
            for headers in ({}, {"HX-Request": "true"}, {"Accept": "application/json"})
        )

    assert [each.status_code for each in (page, part, program)] == [413, 413, 413]
    assert "HELMDASH_MAX_BODY_BYTES" in page.text
    assert 'aria-label="Main"' in page.text
    assert (part.headers["HX-Retarget"], part.text.startswith("<p")) == ("#main", True)
    assert program.json()["code"] == "body_too_large"


def test_the_sign_in_form_is_read_and_little_of_it(door: Served) -> None:
    form = b"username=a&password=b"
    head = b"POST /login/ HTTP/1.1\r\n" + PLAIN + b"Connection: close\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\n"

    read = ask(door, head + b"Content-Length: %d\r\n\r\n" % len(form) + form)
    large = ask(door, head + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000)

    assert status(read) == 403  # it was read: its CSRF token is missing
    assert status(large) == 413
    assert b"HELMDASH_MAX_ANONYMOUS_BODY_BYTES" in large


@pytest.mark.parametrize("credentials", [b"Basic dTpw", b"Bearer", b"Bearer someone-elses", b""])
def test_a_good_key_counts_at_every_door_whatever_stands_beside_it(
    door: Served, credentials: bytes
) -> None:
    for method, target in (
        (b"GET", b"/api/v1/calls"),
        (b"POST", b"/api/v1/calls"),
        (b"GET", b"/metrics"),
        (b"GET", b"/v1/models"),
        (b"POST", b"/mcp"),
        (b"POST", b"/v1/logs"),
    ):
        for name in (b"x-api-key", b"X-Goog-Api-Key"):
            answer = ask(
                door,
                method + b" " + target + b" HTTP/1.1\r\n" + PLAIN + b"Connection: close\r\n"
                b"Authorization: "
                + credentials
                + b"\r\n"
                + name
                + b": "
                + door.api_key.encode()
                + b"\r\nContent-Length: 0\r\n\r\n",
            )
            assert status(answer) not in (401, 403), (method, target, name)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b" ", "The body is empty; send a JSON object."),
        (b'{"a":', "The body is not valid JSON at line 1 column 6."),
        (b'{"a": NaN}', "The body is not valid JSON at line 1 column 7."),
        (
            b'{"a": "\xff"}',
            "The body is not valid JSON: it is not UTF-8, byte 8 is none; send UTF-8.",
        ),
        (
            b'\xef\xbb\xbf{"a": 1}',
            "The body is not valid JSON: it begins with a byte order mark; send it without.",
        ),
        (
            '{"a": 1}'.encode("utf-16"),
            "The body is not valid JSON: it is in UTF-16 or UTF-32; send UTF-8.",
        ),
        (
            '{"a": 1}'.encode("utf-32-be"),
            "The body is not valid JSON: it is in UTF-16 or UTF-32; send UTF-8.",
        ),
        (b"[]", "body: must be an object"),
        (b"null", "body: must be an object"),
        (b"[" * 3000, "The body is nested more than 200 levels deep."),
    ],
)
def test_a_bad_body_has_one_sentence_at_every_door(
    door: Served, body: bytes, sentence: str
) -> None:
    headers = {**door.headers, "Content-Type": "application/json", "Accept": "application/json"}
    for target in (
        "/api/v1/calls",
        "/api/v1/fit",
        "/v1/chat/completions",
        "/v1/messages",
        "/v1beta/models/m:generateContent",
        "/api/chat",
        "/mcp",
        "/v1/traces",
        "/v1/logs",
    ):
        answer = httpx.post(door.base_url + target, content=body, headers=headers)
        is_of_a_field = sentence.startswith("body") and target.startswith("/api/v1/")
        assert answer.status_code == (422 if is_of_a_field else 400), (target, answer.text)
        assert sentence in answer.text, (target, answer.text)


def test_an_upgrade_to_http_2_is_ignored_and_the_connection_goes_on(door: Served) -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    get = b"GET /healthz HTTP/1.1\r\n" + PLAIN + upgrade + b"\r\n"
    post = b"POST /api/v1/calls HTTP/1.1\r\n" + keyed(door) + upgrade
    post += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(CALL) + CALL
    with connected(door) as client:
        for request, expected in ((get, 200), (post, 201), (get, 200), (post, 201)):
            client.sendall(request)
            assert status(read_one(client)) == expected


def test_http_1_0_is_answered(door: Served) -> None:
    answer = ask(door, b"GET /healthz HTTP/1.0\r\n\r\n")

    assert (status(answer), answer.endswith(b'{"status": "ok"}')) == (200, True)


def test_requests_in_one_piece_are_answered_in_order_up_to_a_bound(door: Served) -> None:
    one = b"GET /healthz HTTP/1.1\r\n" + PLAIN + b"\r\n"

    few = ask(door, one * 5 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    many = ask(door, one * 5000)
    broken = ask(door, one * 3 + b"nonsense\r\n\r\n")

    assert few.count(b"HTTP/1.1 200 ") == 6
    assert 0 < many.count(b"HTTP/1.1 200 ") < 50
    assert broken.count(b"HTTP/1.1 200 ") == 3


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (b"zz\r\n{}\r\n0\r\n\r\n", 400),
        (b"2\r\n{}nonsense", 400),
        (b"1;" + b"x" * 200_000, 431),
        (b"2\r\n{}\r\n0\r\n" + b"X-T: " + b"y" * 20_000 + b"\r\n\r\n", 431),
    ],
    ids=["size", "piece", "extension", "trailer"],
)
@pytest.mark.parametrize(
    "target", ["/api/v1/calls", "/v1/chat/completions", "/mcp", "/v1/traces", "/login/"]
)
def test_a_body_that_breaks_off_in_its_framing_is_told_so(
    door: Served, target: str, broken: bytes, expected: int
) -> None:
    head = f"POST {target} HTTP/1.1\r\n".encode() + keyed(door) + b"Transfer-Encoding: chunked\r\n"
    head += b"Content-Type: application/json\r\n"

    with connected(door) as client:
        send(client, head + b"\r\n")
        time.sleep(0.05)  # its application waits for the body by now
        send(client, broken)
        apart = read_to_end(client)

    assert status(apart) == expected, apart
    assert status(ask(door, head + b"\r\n" + broken)) == expected


@pytest.mark.parametrize(
    ("target", "gzip"),
    [("/api/v1/calls", 415), ("/v1/chat/completions", 400), ("/v1/messages", 400), ("/mcp", 415)],
)
def test_a_packed_body_is_told_so_at_every_door(door: Served, target: str, gzip: int) -> None:
    for encoding, expected in (("gzip", gzip), ("br", 415), ("identity", 400)):
        headers = {**door.headers, "Content-Type": "application/json", "Content-Encoding": encoding}
        answer = httpx.post(door.base_url + target, content=b"{", headers=headers)

        assert answer.status_code == expected, (target, answer.text)
        assert ("Content-Encoding" in answer.text) == (expected == 415)


@pytest.fixture(scope="module")
def patient(serve: Callable[..., Served]) -> Served:
    return serve()


# What becomes of a key meanwhile, and what is answered then.
@pytest.mark.parametrize(
    ("ends", "refused", "words"),
    [
        ("revoke", 401, b"unknown or revoked"),
        ("expire", 401, b"expired"),
        # MCP looks at scopes with each tool, and none is called here.
        ("lose", 403, b"lacks the scope record"),
    ],
)
def test_a_slow_body_does_not_outlive_its_key(
    patient: Served, ends: str, refused: int, words: bytes
) -> None:
    door = patient
    targets = ("/api/v1/calls", "/v1/chat/completions", "/v1/messages", "/v1/traces", "/mcp")
    name = f"slow-{ends}"
    made = door.manage("apikey", "create", "--name", name, "--scopes", "record,read")
    key = next(word for word in made.stdout.split() if word.startswith("hd_"))
    head = (
        f"Host: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        "Content-Length: 2\r\nConnection: close\r\n\r\n{"
    )
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(door)) for _ in targets]
        for target, client in zip(targets, clients, strict=True):
            send(client, f"POST {target} HTTP/1.1\r\n{head}".encode())
        # One whose body comes as slowly, and whose key stays.
        other = stack.enter_context(connected(door))
        good = head.replace(key, door.api_key).replace("{", "[").encode()
        send(other, b"POST /api/v1/calls HTTP/1.1\r\n" + good)
        time.sleep(0.5)
        code = "from django.utils import timezone; from helmdash.records.models import ApiKey;"
        now = "scopes=['read']" if ends == "lose" else "expires_at=timezone.now()"
        code += f"ApiKey.objects.filter(name={name!r}).update({now})"
        ended = ("apikey", "revoke", name) if ends == "revoke" else ("shell", "-c", code)
        done = door.manage(*ended)
        assert done.returncode == 0, done.stderr
        time.sleep(1.2)

        for target, client in zip(targets, clients, strict=True):
            send(client, b"}")
            answer = read_to_end(client)
            if (target, refused) == ("/mcp", 403):
                assert status(answer) == 400
                continue
            assert status(answer) == refused, (target, answer)
            assert words in answer
        send(other, b"]")
        assert status(read_to_end(other)) != 401


# Forms for who is not signed in: what others send who are not is left unread.
@pytest.mark.parametrize(
    "target",
    ["/login/", "/login/link/MQ/abc/", "/login/reset/", "/login/reset/MQ/set-password/"],
)
def test_a_packed_form_is_told_so(door: Served, target: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Content-Encoding": "gzip"}

    answer = httpx.post(door.base_url + target, content=b"username=a", headers=headers)

    assert answer.status_code == 415
    assert "Content-Encoding" in answer.text


def test_trailers_change_no_request(door: Served) -> None:
    answer = ask(
        door,
        b"POST /api/v1/calls HTTP/1.1\r\n" + PLAIN + b"Connection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer "
        + door.api_key.encode()
        + b"\r\n\r\n",
    )

    assert status(answer) == 401


def test_strangers_have_a_number_of_connections_and_known_clients_more(door: Served) -> None:
    get = b"GET /api/v1/calls?limit=1 HTTP/1.1\r\n"
    held = [socket.create_connection(("127.0.0.1", door.port), timeout=8) for _ in range(5)]
    try:
        for client in held:  # these are known from here on
            client.sendall(get + keyed(door) + b"\r\n")
            assert status(read_one(client)) == 200
        strangers = [
            socket.create_connection(("127.0.0.1", door.port), timeout=8) for _ in range(65)
        ]
        held += strangers
        refused = strangers[-1].recv(65536)
        assert (status(refused), b"retry-after" in refused.lower()) == (503, True)
        held[0].sendall(get + keyed(door) + b"\r\n")
        assert status(read_one(held[0])) == 200
    finally:
        for client in held:
            client.close()
    # Who leaves makes room.
    deadline = time.monotonic() + 5
    while status(ask(door, b"GET /healthz HTTP/1.0\r\n\r\n")) != 200:
        assert time.monotonic() < deadline


def test_nothing_of_all_that_is_a_fault_of_ours(door: Served) -> None:
    assert "Traceback" not in door.log
    assert "Exception" not in door.log
