"""Clients at addresses that are not there: told the right one in their format, and counted."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import anthropic
import httpx
import openai
import pytest
from django.utils import timezone

from helmdash.core.access.permissions import MemberRole
from helmdash.core.access.wrong_addresses import Dialect
from helmdash.doors.callers.knocks import Knocks
from helmdash.operations.access import wrong_addresses
from helmdash.operations.access.wrong_addresses import MOST_ROWS, Knocked
from helmdash.queries.access import wrong_addresses as queries
from tests import factories
from tests.support.server import Served

MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("below", ["", "/openai/v1", "/v1/v1", "/api/v1", "/v1beta/openai"])
def test_openai_s_sdk_says_which_base_url_to_use(served: Served, below: str) -> None:
    with openai.OpenAI(base_url=served.base_url + below, api_key="any", max_retries=0) as client:
        for ask in (
            lambda: client.chat.completions.create(model="m", messages=MESSAGES),
            lambda: client.embeddings.create(model="m", input="x"),
            lambda: client.responses.create(model="m", input="x"),
            client.models.list,
        ):
            with pytest.raises(openai.NotFoundError) as refused:
                ask()
            if below != "/v1beta/openai":  # Google's own address for it
                assert f"use base_url {served.base_url}/v1" in str(refused.value)


@pytest.mark.parametrize("below", ["/v1", "/anthropic"])
def test_anthropic_s_sdk_says_which_base_url_to_use(served: Served, below: str) -> None:
    with (
        anthropic.Anthropic(
            base_url=served.base_url + below, api_key="any", max_retries=0
        ) as client,
        pytest.raises(anthropic.NotFoundError) as refused,
    ):
        client.messages.create(model="m", max_tokens=1, messages=MESSAGES)

    assert f"use base_url {served.base_url}." in str(refused.value)
    assert refused.value.body["type"] == "error"


@pytest.mark.parametrize(
    ("method", "path", "member"),
    [
        ("POST", "/chat/completions", "error"),
        ("GET", "/models", "error"),
        ("GET", "/v1/nothing", "error"),
        ("DELETE", "/v1/files/x", "error"),
        ("POST", "/models/m:generateContent", "error"),
        ("POST", "/v1beta/cachedContents", "error"),
        ("POST", "/api/embeddings", "error"),
        ("POST", "/api/pull", "error"),
        ("POST", "/ollama/api/chat", "error"),
        ("POST", "/api/v1/call", "code"),
        ("GET", "/api/v1/nothing", "code"),
        ("GET", "/.well-known/oauth-protected-resource", "code"),
        ("POST", "/sse", "code"),
    ],
)
@pytest.mark.parametrize("key", [{}, {"Authorization": "Bearer sk-of-another-vendor"}])
def test_programs_get_json_and_never_the_sign_in_page(
    served: Served, method: str, path: str, member: str, key: dict[str, str]
) -> None:
    body = {"model": "m"} if method == "POST" else None
    answer = httpx.request(method, served.base_url + path, json=body, headers=key)

    assert answer.status_code == 404, answer.text
    assert member in answer.json()
    assert served.base_url in answer.text or "/v1" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("POST", "/calls", "/api/v1/calls"),
        ("POST", "/calls/", "/api/v1/calls"),
        ("GET", "/conversations", "/api/v1/conversations"),
        ("POST", "/fit", "/api/v1/fit"),
        ("POST", "/v2/calls/batch", "/api/v1/calls/batch"),
        ("GET", "/plans", "/api/v1/plans"),
        ("GET", "/calls/some-id", "/api/v1"),
        ("POST", "/settings/keys/", "/api/v1"),
    ],
)
@pytest.mark.parametrize("name", ["Authorization", "x-api-key"])
def test_a_program_that_brings_a_key_to_a_page_is_told_where_the_api_is(
    served: Served, method: str, path: str, right: str, name: str
) -> None:
    key = f"Bearer {served.api_key}" if name == "Authorization" else served.api_key
    answer = httpx.request(method, served.base_url + path, headers={name: key})

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
    assert right in answer.json()["detail"]


def test_a_program_fetches_the_reader_of_transcripts_with_or_without_a_key(served: Served) -> None:
    for key in ({}, {"Authorization": f"Bearer {served.api_key}"}):
        answer = httpx.get(f"{served.base_url}/connect/helmdash.pyz", headers=key)

        assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/nothing", "/models", "/nothing/"])
def test_browsers_get_pages(served: Served, path: str) -> None:
    answer = httpx.get(served.base_url + path, headers={"Accept": "text/html,*/*;q=0.8"})

    assert answer.status_code in (301, 302)


@pytest.mark.parametrize("path", ["/", "/conversations/", "/conversations", "/healthz"])
def test_what_is_there_is_left_alone(served: Served, path: str) -> None:
    answer = httpx.get(served.base_url + path)

    assert answer.status_code in (200, 301, 302)


def test_they_are_counted_in_figures_and_kept_with_the_server_s_end(served: Served) -> None:
    for _ in range(3):
        httpx.post(
            served.base_url + "/chat/completions?key=hidden-secret",
            headers={"User-Agent": "AsyncOpenAI/Python 1.99.0"},
        )
    figures = httpx.get(served.base_url + "/metrics", headers=served.headers).text
    deadline = time.monotonic() + 15
    code = (
        "from helmdash.queries.access.wrong_addresses import latest\n"
        "for k in latest(): print(k.method, k.path, k.client, k.count)"
    )
    while "POST /chat/completions openai-python 1.99.0 3" not in (
        said := served.manage("shell", "-c", code).stdout
    ):
        assert time.monotonic() < deadline, said

    assert 'helmdash_unknown_address_requests_total{format="openai"}' in figures
    assert "hidden-secret" not in said


def test_what_is_held_in_memory_is_bounded() -> None:
    async def story() -> int:
        knocks = Knocks(flush_seconds=60)
        for number in range(5 * MOST_ROWS):
            knocks.note(
                method="GET",
                path=f"/scan/{number}",
                user_agent="x" * 10_000,
                dialect=Dialect.PROBLEM,
                advice="a" * 10_000,
                now=timezone.now(),
            )
        held = knocks._held
        assert len(max(held.values(), key=lambda each: len(each.advice)).advice) <= 400
        count = len(held)
        held.clear()
        await knocks.close()
        return count

    assert asyncio.run(story()) == MOST_ROWS


@pytest.mark.django_db
def test_what_is_kept_is_bounded_and_shown_to_those_who_set_things_up() -> None:
    now = timezone.now()
    found = [
        Knocked(
            method="GET",
            path=f"/scan/{number}",
            client="curl",
            advice="use <b>this</b>",
            count=2,
            first_at=now,
            latest_at=now + timedelta(seconds=number),
        )
        for number in range(MOST_ROWS + 50)
    ]
    wrong_addresses.store(knocks=found)
    wrong_addresses.store(knocks=found[-1:])

    kept = queries.latest(limit=1000)

    assert len(kept) == MOST_ROWS
    assert (kept[0].path, kept[0].count) == (found[-1].path, 4)
    project = factories.make_project()
    pages = {
        role: factories.sign_in(role.value, project=project, role=role)
        .get("/settings/gateway/")
        .content.decode()
        for role in (MemberRole.OWNER, MemberRole.VIEWER)
    }
    assert f"GET {found[-1].path}" in pages[MemberRole.OWNER]
    assert "use &lt;b&gt;this" in pages[MemberRole.OWNER]
    assert found[-1].path not in pages[MemberRole.VIEWER]
