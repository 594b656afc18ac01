"""Limits at every face of a running server, each in its client's own shape.

The server trusts a proxy on this machine, so that each test has addresses of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import anthropic
import httpx
import openai
import pytest

from tests.support.server import Served

_PER_SECOND, _WRONG = 3, 5

Answers = Callable[[Any], Any]
# For each face: method, path, a body, and where its errors say what kind they are.
FACES: dict[str, tuple[str, str, Answers, str]] = {
    "openai": (
        "POST",
        "/v1/chat/completions",
        lambda body: body["error"]["type"],
        "rate_limit_error",
    ),
    "anthropic": ("POST", "/v1/messages", lambda body: body["error"]["type"], "rate_limit_error"),
    "gemini": (
        "POST",
        "/v1beta/models/gemini:generateContent",
        lambda body: body["error"]["status"],
        "RESOURCE_EXHAUSTED",
    ),
    "ollama": ("POST", "/api/chat", lambda body: isinstance(body["error"], str), True),  # type: ignore[dict-item]
    "api": ("GET", "/api/v1/calls", lambda body: body["code"], "too_many_requests"),
    "reports": ("POST", "/api/v1/calls", lambda body: body["code"], "too_many_requests"),
    "mcp": ("POST", "/mcp", lambda body: body["error"]["data"]["error"], "too_many_requests"),
    "otlp": ("POST", "/v1/traces", lambda body: body["code"], 8),  # type: ignore[dict-item]
    "metrics": ("GET", "/metrics", lambda body: body["code"], "too_many_requests"),
}


@pytest.fixture(scope="module")
def limited(serve: Callable[..., Served]) -> Served:
    return serve(
        HELMDASH_TRUSTED_PROXIES="127.0.0.0/8",
        HELMDASH_REQUESTS_PER_SECOND=str(_PER_SECOND),
        HELMDASH_WRONG_TRIES_PER_MINUTE=str(_WRONG),
    )


def _ask(http: httpx.Client, face: str, key: str) -> httpx.Response:
    method, path, _, _ = FACES[face]
    headers = {"authorization": f"Bearer {key}", "anthropic-version": "2023-06-01"}
    body = {"json": {"model": "m", "messages": []}} if method == "POST" else {}
    return http.request(method, path, headers=headers, **body)  # type: ignore[arg-type]


def _http(limited: Served, address: str) -> httpx.Client:
    headers = {"x-forwarded-for": address}
    return httpx.Client(base_url=limited.base_url, headers=headers, timeout=30)


def _is_in_shape(face: str, answer: httpx.Response) -> bool:
    _, _, word, expected = FACES[face]
    return (
        answer.status_code == 429
        and int(answer.headers["retry-after"]) >= 1
        and word(answer.json()) == expected
    )


@pytest.mark.parametrize("face", FACES)
def test_wrong_keys_beyond_the_limit_are_told_to_wait(face: str, limited: Served) -> None:
    address = f"2001:db8:0:{list(FACES).index(face):x}::1"
    with _http(limited, address) as http:
        told = [_ask(http, face, uuid4().hex) for _ in range(_WRONG + 2)]

        assert [each.status_code for each in told] == [401] * _WRONG + [429] * 2
        assert _is_in_shape(face, told[-1]), told[-1].text
        # The same network under another address; and what works goes on.
        again = _ask(http, face, uuid4().hex)
        assert again.status_code == 429
    with _http(limited, address.replace("::1", "::beef")) as http:
        assert _ask(http, face, uuid4().hex).status_code == 429


@pytest.mark.parametrize("face", FACES)
def test_a_key_that_asks_too_often_is_told_to_wait(face: str, limited: Served) -> None:
    with _http(limited, "198.51.100.1") as http, ThreadPoolExecutor(6) as threads:
        ask = lambda _: _ask(http, face, limited.api_key)  # noqa: E731
        answers = list(threads.map(ask, range(6 * _PER_SECOND)))

    refused = [each for each in answers if each.status_code == 429]
    assert refused
    assert all(_is_in_shape(face, each) for each in refused), refused[0].text


def _until_refused(ask: Callable[[], object], kind: type[Exception]) -> Any:
    for _ in range(50):
        try:
            ask()
        except kind as error:
            return error
    raise AssertionError("never refused")


def test_the_official_clients_wait_and_come_back(limited: Served) -> None:
    key, url = limited.api_key, limited.base_url
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as one,
        anthropic.Anthropic(base_url=url, api_key=key, max_retries=0) as other,
    ):
        sdks: tuple[tuple[Any, type[Exception]], ...] = (
            (one, openai.RateLimitError),
            (other, anthropic.RateLimitError),
        )
        for sdk, error in sdks:
            told = _until_refused(sdk.models.list, error)
            assert told.response.headers["retry-after"] == "1"

            begun = time.monotonic()
            assert list(sdk.with_options(max_retries=1).models.list()) == []
            assert time.monotonic() - begun < 10


def test_an_expired_key_is_refused_at_every_face_at_once(limited: Served) -> None:
    """Though the caches of keys hold what they know for a while."""
    made = limited.manage("apikey", "create", "--name", "short", "--expires", "1d")
    key = made.stdout.strip()
    with _http(limited, "203.0.113.5") as http:
        _until(lambda: _ask(http, "openai", key).status_code not in (401, 429))
        ended = limited.manage("shell", "-c", _END)
        assert ended.returncode == 0, ended.stderr
        _until(lambda: _ask(http, "openai", key).status_code == 401)
        told = {face: _ask(http, face, key) for face in FACES}

    assert {face: each.status_code for face, each in told.items()} == dict.fromkeys(FACES, 401)
    assert all("short expired at 20" in each.text for each in told.values())


_END = """
from django.utils import timezone
from helmdash.records.models import ApiKey
ApiKey.objects.filter(name="short").update(expires_at=timezone.now())
"""


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_guesses_of_passwords_are_held_back_before_anything_is_read(limited: Served) -> None:
    with _http(limited, "203.0.113.7") as http:
        page = http.get("/login/").text
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', page)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "username": "admin", "password": "guess"}
        told = [http.post("/login/", data=form)]
        # How soon depends on how long a hash takes here; waits grow, so it comes to that.
        while len(told) < 20 and "Overview" not in told[-1].text:
            told.append(http.post("/login/", data=form))

    assert [each.status_code for each in told[:_WRONG]] == [200] * _WRONG
    # What this process knows is said without Django.
    assert "Overview" in told[-1].text
    refused = [each for each in told if each.status_code == 429]
    assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
