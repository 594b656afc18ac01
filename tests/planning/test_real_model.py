"""Plan and route with a real, very small model on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from helmdash.core.calls.failures import FailureCause
from tests.support.model import LocalModel
from tests.support.server import Served

pytestmark = pytest.mark.model

# A hundred tokens of prompt take the model a second of CPU.
_CATALOG = {"packs": [{"name": "blog.publish", "description": "Publish a blog post."}]}


@pytest.fixture(scope="module")
def api(serve: Callable[..., Served], local_model: LocalModel) -> Iterator[httpx.Client]:
    served = serve(
        OPENAI_API_KEY="none",
        OPENAI_BASE_URL=local_model.base_url,
        HELMDASH_ALLOW_PRIVATE_UPSTREAMS="1",
        HELMDASH_DEFAULT_MODEL=f"openai/{local_model.name}",
    )
    with httpx.Client(base_url=f"{served.base_url}/api/v1", headers=served.headers) as client:
        yield client


@pytest.mark.parametrize("kind", ["plan", "route"])
def test_whatever_the_model_says_ends_in_an_answer_or_a_cause(api: httpx.Client, kind: str) -> None:
    # 135 million parameters seldom plan well. What counts is that nothing about it is silent: three
    # attempts with 8, 16 and 32 tokens are cut off as 40, 80 and 160 were, in a third of the time.
    answer = api.post(
        f"/{kind}",
        json={"user_intent": "Publish a blog post.", "catalog": _CATALOG, "max_tokens": 8},
        timeout=150,
    )

    body: Any = answer.json()
    assert answer.status_code in (200, 502), body
    if answer.status_code == 200:
        assert body["steps"] if kind == "plan" else body["recommendation"]
    else:
        assert FailureCause(body["cause"]["name"])
    stored = api.get(f"/plans/{body['plan_id']}").raise_for_status().json()
    assert len(stored["attempts"]) == len(body["attempts"]) >= 1
    for attempt in stored["attempts"]:
        call = api.get(f"/calls/{attempt['call_id']}").raise_for_status().json()
        assert call["usage"]["prompt_tokens"] > 100
        assert call["purpose"] == kind
