"""From a real intent to a light on a page: fit, a real model's answer, its record, the browser."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest

from tests.support.browser import BrowserPage
from tests.support.model import LocalModel
from tests.support.server import Served

# A tenth of the demo catalog. A hundred tokens of prompt take the model a second of CPU.
CATALOG_BYTES = 1200
INTENT = "take a screenshot of our pricing page"


@pytest.mark.model
@pytest.mark.browser
def test_a_fitted_prompt_a_real_answer_and_the_light_it_leads_to(
    served: Served, local_model: LocalModel, browser_page: BrowserPage
) -> None:
    model = f"ollama/{local_model.name}"
    base_url = f"{served.base_url}/api/v1"
    with httpx.Client(base_url=base_url, headers=served.headers, timeout=60) as api:
        prompt_tokens = _fit_ask_and_record(api, model, local_model)

    _sign_in(browser_page, served)
    browser_page.goto(f"{served.base_url}/conversations/real-model/")
    text = browser_page.inner_text("main")
    assert "healthy" in text.lower()
    assert f"{prompt_tokens:,}" in text
    assert browser_page.problems() == []


def _fit_ask_and_record(api: httpx.Client, model: str, local_model: LocalModel) -> int:
    """Fit the demo catalog, ask the model, record its reply; gives the reported prompt tokens."""
    # What the local server really offers; the shipped ollama/ row is about larger models.
    budget = {
        "key": model,
        "input_tokens": 3000,
        "output_tokens": 200,
        "max_catalog_bytes": CATALOG_BYTES,
        "tier": "C",
        "context_length": 8192,
        "evidence": "n_ctx of the local server",
    }
    assert api.post("/budgets", json=budget).status_code == 201

    fit = api.post("/fit", json={"model": model, "intent": INTENT}).raise_for_status().json()
    assert fit["compaction"]["fits"]
    assert fit["budget"]["context_length"] == 8192
    assert 0.85 * CATALOG_BYTES <= fit["compaction"]["after_bytes"] <= CATALOG_BYTES
    assert "browser.screenshot_url" in [entry["id"] for entry in fit["compaction"]["kept"]]

    answer = _ask(local_model, fit["catalog"])
    usage = answer.usage
    assert usage is not None
    recorded = api.post(
        "/calls",
        json={
            "conversation": "real-model",
            "model": model,
            "provider": "ollama",
            "purpose": "chat",
            "fit_id": fit["fit_id"],
            "usage": usage.model_dump(mode="json"),
            "finish_reason": answer.choices[0].finish_reason,
            "content": answer.choices[0].message.content,
            "trim": {
                "before_bytes": fit["compaction"]["before_bytes"],
                "after_bytes": fit["compaction"]["after_bytes"],
                "dropped": fit["compaction"]["dropped"],
            },
        },
    )
    assert recorded.status_code == 201, recorded.text
    health = recorded.json()["health"]
    assert health["level"] == "healthy"
    assert health["prompt_tokens"] == usage.prompt_tokens
    assert health["limit_tokens"] == 8192
    return int(usage.prompt_tokens)


def _ask(local_model: LocalModel, catalog: dict[str, Any]) -> Any:
    tools = json.dumps(catalog, ensure_ascii=False, separators=(",", ":"))
    with openai.OpenAI(
        base_url=local_model.base_url, api_key="none", max_retries=0, timeout=240
    ) as client:
        return client.chat.completions.create(
            model=local_model.name,
            messages=[
                {"role": "system", "content": f"Pick one tool for the task.\n{tools}"},
                {"role": "user", "content": INTENT},
            ],
            max_tokens=8,
            temperature=0,
            seed=1,
        )


def _sign_in(browser: BrowserPage, served: Served) -> None:
    browser.goto(f"{served.base_url}/login/")
    browser.fill("input[name=username]", "admin")
    browser.fill("input[name=password]", served.admin_password)
    browser.click("form:has(input[name=password]) button")
    browser.wait_for_url(f"{served.base_url}/?project=default")
