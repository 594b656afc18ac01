"""What a hostile upstream says: no client hangs or gets a 500 for it, every call is recorded, and a
project that keeps no texts keeps none of an error that quotes the prompt."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from helmdash.gateway.forwarding.attempt import Attempt
from helmdash.gateway.forwarding.upstream_reply import read_reply
from helmdash.providers.wire import Reply
from tests.gateway.mirror import (
    RESPONSES,
    SHAPES,
    UPSTREAMS,
    Mirror,
    chat,
    path_of,
    plain_reply,
    streamed_reply,
)
from tests.gateway.world import open_http
from tests.support.server import Served

pytestmark = pytest.mark.xdist_group("gateway")

NAMES = {
    "openai": "gpt-x",
    "anthropic": "claude-x",
    "gemini": "gemini-x",
    "ollama": "llama-x",
    RESPONSES: "answer-x",
}
_FURNISH = """
from helmdash.records.models import Upstream
Upstream.objects.create(name="responses", kind="openai", base_url={url!r}, formats="responses",
                        models_served="answer-*", allow_private=True)
"""
SECRET = "my diagnosis is Q17-melanoma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A HelmDash whose upstreams are all one mirror."""

    served: Served
    mirror: Mirror
    http: httpx.Client
    api: httpx.Client

    def ask(self, shape: str, kind: str, *, stream: bool = False, **over: Any) -> httpx.Response:
        model = f"{kind}/{NAMES[kind]}"
        body = chat(shape, model, stream=stream, **over)
        return self.http.post(path_of(shape, model, stream=stream), json=body)

    def assert_recorded(self, ids: list[str]) -> None:
        deadline = time.monotonic() + 20
        while missing := self._missing(ids):
            assert time.monotonic() < deadline, (missing, self.served.log)
            time.sleep(0.1)

    def _missing(self, ids: list[str]) -> list[str]:
        answer = self.api.post("/calls/reconcile", json={"ids": ids}).raise_for_status()
        missing: list[str] = answer.json()["missing"]
        return missing


@pytest.fixture(scope="module")
def place(serve: Callable[..., Served]) -> Iterator[Place]:
    mirror = Mirror()
    mirror.server.start()
    served = serve(**mirror.environment())
    done = served.manage("shell", "-c", _FURNISH.format(url=mirror.responses_url))
    assert done.returncode == 0, done.stderr
    time.sleep(1.0)  # what holds for a key is at most 0.9 s old
    with (
        open_http(served.base_url, served.api_key) as http,
        open_http(f"{served.base_url}/api/v1", served.api_key) as api,
    ):
        yield Place(served=served, mirror=mirror, http=http, api=api)
    mirror.server.stop()


@pytest.fixture(autouse=True)
def _plain(place: Place) -> None:
    place.mirror.forget()


def nested(text: str) -> bytes:
    """The text with objects of so many levels for each mark "nested:N"."""

    def levels(found: re.Match[bytes]) -> bytes:
        count = int(found[1])
        return b'{"a":' * count + b"1" + b"}" * count

    return re.sub(rb'"nested:(\d+)"', levels, text.encode())


# By the vendor whose reply it is; "nested:N" stands for so many levels.
def hostile(kind: str) -> dict[str, bytes]:
    def whole(**over: Any) -> bytes:
        return nested(json.dumps(plain_reply(kind, **over)))

    return {
        "deep usage": whole(usage={"prompt_tokens": "nested:300", "input_tokens": "nested:300"}),
        "odd usage": whole(usage={"prompt_tokens": -1, "input_tokens": 1e308, "x": "\0"}),
        "usage that is a text": whole(usage="many"),
        "counts beyond 64 bits": whole(
            usage=dict.fromkeys(("prompt_tokens", "input_tokens", "promptTokenCount"), 2**70)
        ),
        "deep arguments": whole(arguments="nested:300"),
        "arguments beyond all readers": whole(arguments="nested:3000"),
        "a deep member": whole(extra="nested:600"),
        "NUL": whole(extra="\0", arguments={"a\0": "\0"}),
        "half a reply": whole()[:-7],
        "a list": b"[1]",
        "null": b"null",
        "nothing": b"",
        "deep brackets": b"[" * 100_000,
        "no UTF-8": b'{"choices":"\xff\xfe"}',
        "empty object": b"{}",
        "text for lists": re.sub(rb"\[.*\]", b'"x"', whole()),
        "a number for a text": whole().replace(b'"Hi"', b"5"),
        "null for a text": whole().replace(b'"Hi"', b"null"),
        "an error that is odd": b'{"error":{"message":{"a":[1]},"code":[],"type":5}}',
        "a deep error": nested('{"error":"nested:400"}'),
    }


@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_a_hostile_reply_is_an_answer_and_a_record_in_every_format(place: Place, kind: str) -> None:
    ids: list[str] = []
    wrong: list[tuple[str, str, int, str]] = []
    for name, body in hostile(kind).items():
        for status in (200, 400):
            place.mirror.whole, place.mirror.status = body, status
            for shape in SHAPES:
                answer = place.ask(shape, kind)
                ids.append(answer.headers.get("x-helmdash-call-id", f"none: {name} {shape}"))
                if answer.status_code in (500, 599):
                    wrong.append((name, shape, answer.status_code, answer.text[:200]))

    assert wrong == []
    place.assert_recorded(ids)


@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_a_hostile_stream_ends_and_is_recorded_in_every_format(place: Place, kind: str) -> None:
    ids: list[str] = []
    sound = streamed_reply(kind)
    streams = {
        "deep usage": nested(streamed_reply(kind, usage={"prompt_tokens": "nested:300"}).decode()),
        "deep arguments": nested(streamed_reply(kind, arguments="nested:300").decode()),
        "beyond all readers": nested(streamed_reply(kind, arguments="nested:3000").decode()),
        "NUL": streamed_reply(kind, arguments={"a": "\0"}),
        "half": sound[: len(sound) // 2],
        "garbage": b"\xff\xfe\0" * 1000,
        "garbage and the rest": b"data: {]\n\n{]\n" + sound,
        "nothing": b"",
        "brackets": b"data: " + b"[" * 50_000 + b"\n\n",
        "null": b"data: null\n\nnull\n",
        "an error": b'data: {"error":{"message":["x"]}}\n\n{"error":{"message":["x"]}}\n',
    }
    for body in streams.values():
        place.mirror.stream = body
        for shape in SHAPES:
            answer = place.ask(shape, kind, stream=True)
            ids.append(answer.headers["x-helmdash-call-id"])
            assert answer.status_code == 200

    place.assert_recorded(ids)


# A browser takes the last of several.
@pytest.mark.parametrize("media", ["text/html", "image/svg+xml", "application/json;a=b, text/html"])
@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_a_reply_that_calls_itself_a_page_is_none_of_ours(
    place: Place, kind: str, media: str
) -> None:
    """A form of another site has a browser ask as Gemini's clients do, with a key in the address;
    what comes is on our origin, where somebody is signed in."""
    place.mirror.media = media
    for body in (b"<script>steal()</script>", b'"<script>steal()</script>"'):
        for status in (200, 400):
            place.mirror.whole, place.mirror.status = body, status
            for shape in SHAPES:
                for stream in (False, True):
                    answer = place.ask(shape, kind, stream=stream)

                    is_page = answer.headers["content-type"] == media
                    assert is_page or answer.headers["content-type"].startswith("application/json")
                    policy = answer.headers.get("content-security-policy", "")
                    assert ("sandbox" in policy) == is_page, (shape, status)
                    assert (answer.headers.get("x-content-type-options") == "nosniff") == is_page

    place.mirror.forget()
    plain = place.ask("openai_responses" if kind == RESPONSES else kind, kind)
    assert "content-security-policy" not in plain.headers


# As JavaScript writes a text that it cut within an emoji.
HALF = b"H\\ud83d i"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_half_a_character_costs_a_reply_nothing_else(place: Place, kind: str, stream: bool) -> None:
    place.mirror.whole = json.dumps(plain_reply(kind)).encode().replace(b"Hi", HALF)
    place.mirror.stream = streamed_reply(kind).replace(b"Hi", HALF) if stream else None
    for shape in SHAPES:
        answer = place.ask(shape, kind, stream=stream)

        assert answer.status_code == 200, (shape, answer.text)
        is_passed = HALF in answer.content  # byte for byte
        said = answer.text.replace(r"\ufffd", "\ufffd")
        assert is_passed or "H\ufffd i" in said, (shape, answer.text)
        call_id = answer.headers["x-helmdash-call-id"]
        place.assert_recorded([call_id])
        call = place.api.get(f"/calls/{call_id}").json()
        told = (call["status"], call["cause"], call["usage"]["prompt_tokens"])
        assert told == ("success", None, 12), (shape, call)


@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_what_is_no_answer_is_a_failure_and_another_success_keeps_its_status(
    place: Place, kind: str
) -> None:
    shape = "openai_responses" if kind == RESPONSES else kind
    for status, told in ((201, 201), (300, 502)):
        place.mirror.whole, place.mirror.status = json.dumps(plain_reply(kind)).encode(), status

        answer = place.ask(shape, kind)

        assert answer.status_code == told
        assert (answer.content == place.mirror.whole) == (told == status)
        call_id = answer.headers["x-helmdash-call-id"]
        place.assert_recorded([call_id])
        call = place.api.get(f"/calls/{call_id}").json()
        assert call["http_status"] == status
        assert call["status"] == ("success" if told == status else "error")
        cause = None if told == status else "unreachable"
        assert (call["cause"] or {}).get("name") == cause


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_a_success_without_a_body_keeps_its_status_too(
    place: Place, kind: str, stream: bool
) -> None:
    shape = "openai_responses" if kind == RESPONSES else kind
    for status in (201, 204, 205):
        place.mirror.whole, place.mirror.status = b"", status

        answer = place.ask(shape, kind, stream=stream)

        assert (answer.status_code, answer.content) == (status, b"")
        lengths = None if status == 204 else "0"
        assert answer.headers.get("content-length") == lengths
        assert "transfer-encoding" not in answer.headers
        call_id = answer.headers["x-helmdash-call-id"]
        place.assert_recorded([call_id])
        call = place.api.get(f"/calls/{call_id}").json()
        assert (call["http_status"], call["cause"]["name"]) == (status, "likely_timeout")
    # The connection goes on behind an answer that says no length.
    place.mirror.forget()
    assert place.ask(shape, kind).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", [*UPSTREAMS, RESPONSES])
def test_a_coding_that_cannot_be_undone_is_told_with_a_status(
    place: Place, kind: str, stream: bool
) -> None:
    place.mirror.coding = "br"
    place.mirror.stream = streamed_reply(kind) if stream else None
    for shape in SHAPES:
        answer = place.ask(shape, kind, stream=stream)

        assert answer.status_code == 502, (shape, answer.text)
        assert "compressed its answer" in answer.text

    place.mirror.stream, place.mirror.status = None, 400
    for shape in SHAPES:
        answer = place.ask(shape, kind, stream=stream)

        assert answer.status_code == 400, (shape, answer.text)
        assert "compressed its answer" in answer.text
        place.assert_recorded([answer.headers["x-helmdash-call-id"]])


def test_a_large_reply_is_read_beside_the_event_loop() -> None:
    read_by: list[threading.Thread] = []

    class Reading:
        is_native = True

        def is_streamed(self, content_type: str) -> bool:
            return False

        def read_whole(self, data: bytes) -> Reply:
            read_by.append(threading.current_thread())
            return Reply()

    class Whole:
        status, headers, attempts = 200, {"content-type": "application/json"}, ()

        async def close(self) -> None: ...

    async def scene(size: int) -> None:
        nobody: Any = None
        reading: Any = Reading()
        attempt = Attempt(endpoint=nobody, http_request=nobody, translator=reading, secret=None)
        opened: Any = Whole()
        opened.read = lambda limit: asyncio.sleep(0, bytes(size))
        await read_reply(attempt, opened)

    for size in (1000, 300_000):
        asyncio.run(scene(size))

    own = threading.current_thread()
    assert [thread is own for thread in read_by] == [True, False]


_PICTURE = "iVBORw0KGgo="
_URL = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PICTURE}"}}
_DRAWN = {"type": "image_generation_call", "id": "ig1", "status": "completed", "result": _PICTURE}
# Replies without a word that hold a picture, or speech: what replaces the text of a plain one.
SEEN = {
    "openai": [
        ('"content": "Hi"', f'"content": null, "images": {json.dumps([_URL])}'),
        ('"content": "Hi"', '"content": null, "audio": {"id": "a", "data": "AAAA"}'),
    ],
    "gemini": [
        ('{"text": "Hi"}', json.dumps({"inlineData": {"mimeType": kind, "data": _PICTURE}}))
        for kind in ("image/png", "audio/wav")
    ],
    RESPONSES: [
        (json.dumps(plain_reply(RESPONSES)["output"][0]), json.dumps(_DRAWN)),
    ],
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", SEEN)
def test_a_picture_or_speech_without_a_word_is_an_answer(
    place: Place, kind: str, stream: bool
) -> None:
    for text, seen in SEEN[kind]:
        whole, streamed = json.dumps(plain_reply(kind)), streamed_reply(kind).decode()
        assert text in whole
        assert text in streamed
        place.mirror.whole = whole.replace(text, seen).encode()
        place.mirror.stream = streamed.replace(text, seen).encode() if stream else None

        answer = place.ask("openai_responses" if kind == RESPONSES else kind, kind, stream=stream)

        assert answer.status_code == 200
        call_id = answer.headers["x-helmdash-call-id"]
        place.assert_recorded([call_id])
        call = place.api.get(f"/calls/{call_id}").json()
        assert (call["status"], call["cause"]) == ("success", None), (seen, call)
        assert call["raw_content_len"] is None


ERRORS = {
    "openai": {"error": {"message": f"Invalid value: '{SECRET}'. Limit is 4096 tokens.",
                         "code": f"because {SECRET}", "type": "invalid_request_error"}},
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error",
                                             "message": f"messages.0: '{SECRET}'"}},
    "gemini": {"error": {"code": 400, "message": f"Bad: {SECRET}", "status": SECRET}},
    "ollama": {"error": f"cannot say {SECRET}"},
}  # fmt: skip
# One word of the prompt, where a code should stand, and one made like a code.
CODES = {
    "openai": {"error": {"message": "No.", "code": "diagnosis", "type": "bad_diagnosis"}},
    "anthropic": {"type": "error", "error": {"type": "bad_diagnosis", "message": "No."}},
    "gemini": {"error": {"code": 400, "message": "No.", "status": "my_diagnosis"}},
}


@pytest.mark.parametrize(
    ("kind", "error"),
    [*((kind, ERRORS[kind]) for kind in UPSTREAMS), *CODES.items()],
)
def test_a_project_without_texts_keeps_none_of_an_error_that_quotes_the_prompt(
    place: Place, kind: str, error: dict[str, Any]
) -> None:
    done = place.served.manage(
        "shell",
        "-c",
        "from helmdash.records.models import Project; Project.objects.update(payload='off')",
    )
    assert done.returncode == 0, done.stderr
    time.sleep(1.0)  # what holds for a key is at most 0.9 s old
    said = json.dumps(error).encode()
    ids = []
    for status, stream in ((400, False), (503, False), (200, False), (400, True)):
        place.mirror.whole, place.mirror.status = said, status
        answer = place.ask(kind, kind, stream=stream, text=SECRET)
        assert "diagnosis" in answer.text  # the client has it as it came
        ids.append(answer.headers["x-helmdash-call-id"])
    place.assert_recorded(ids)

    for name in ids:
        call = place.api.get(f"/calls/{name}")
        assert call.status_code == 200
        assert "diagnosis" not in call.text
        assert call.json()["cause"]["detail"]
    assert "diagnosis" not in place.served.log
    spool = place.served.data_dir / "spool"
    assert not any(b"diagnosis" in path.read_bytes() for path in spool.iterdir())
    for path in place.served.data_dir.glob("helmdash.sqlite3*"):
        assert b"diagnosis" not in path.read_bytes()
    for path in place.served.data_dir.rglob("*.jsonl"):
        assert b"diagnosis" not in path.read_bytes()
