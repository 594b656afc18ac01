"""Figures that lead to calls: each list has exactly as many as the figure says."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from html import unescape
from random import Random
from typing import Any
from urllib.parse import urlsplit

from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.operations.evidence import refreshing
from helmdash.pages.lists.list_forms import CallFilterForm
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.filters import filtered
from tests.factories import make_capture, record


def _calls(now: datetime, model: str, *, is_counted: bool, n: int) -> list[Capture]:
    """Calls of all kinds that tell one figure and not another, some with an upstream; above 6,144
    tokens most have no answer."""
    random = Random(model)
    found = []
    for number in range(n):
        tokens = int(1_500 * 2 ** random.uniform(0, 4))
        is_clean = random.random() < (0.97 if tokens <= 6_144 else 0.1)
        is_told = is_counted or is_clean
        purpose = random.choice([*["verify"] * 9, "plan", "route", "chat", "embedding", "mine"])
        over: dict[str, Any] = random.choice(
            [*[{}] * 12, {"http_status": 429}, {"status": "cancelled"}]
        )
        found.append(
            make_capture(
                model=model,
                provider="openai" if model[:6] == "openai" and number // 9 % 2 else None,
                conversation=None,
                purpose=purpose,
                prompt_variant=random.choice(["full_steps"] * 8 + ["single_pick", None]),
                response_format=random.choice(["json_schema", None]),
                usage={
                    "prompt_tokens": tokens if random.random() < 0.97 else 40,
                    "completion_tokens": 50 * is_clean,
                    "reasoning_tokens": random.choice([None, 20 * is_clean]),
                }
                if is_told
                else None,
                sent=SentSizes(bytes=3 * tokens) if random.random() < 0.95 else None,
                trim=CapturedTrim(before_bytes=900, after_bytes=400) if number % 3 else None,
                content="{}" if is_clean else "",
                decoded=is_clean,
                finish_reason=random.choice(["stop"] * 9 + ["length"]),
                started_at=now - timedelta(minutes=97 * number + 2),
                **over,
            )
        )
    return found


def _listed(project: ProjectInfo, address: str) -> int:
    """How many calls the list at an address has."""
    where = urlsplit(unescape(address))
    assert where.path == "/calls/"
    form = CallFilterForm(QueryDict(where.query), now=timezone.now())
    assert form.is_valid(), form.problems
    return filtered(project.id, form.filters()).count()


def test_every_learned_figure_leads_to_just_its_calls(owner: Client, project: ProjectInfo) -> None:
    now = timezone.now()
    # Bare, it is also what a filter by model takes for the other; in bytes, as what fails tells no
    # tokens.
    for model, n in (("openai/gpt-4o", 150), ("phi-9", 150), ("acme/phi-9", 9)):
        record(*_calls(now, model, is_counted=model != "phi-9", n=n))
    refreshing.refresh(project_id=project.id, now=timezone.now())

    wrong, figures = [], set()
    for model in ("openai/gpt-4o", "phi-9"):
        shown = owner.get("/budgets/", {"model": model}).getvalue().decode()
        for row in re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", shown, re.S):
            found = re.search(r'href="(/calls/\?[^"]+)">([\d,]+)</a>', row)
            if found:
                told, name = int(found[2].replace(",", "")), re.sub("<.*", "", row)
                figures.add(name)
                if told != _listed(project, found[1]):
                    wrong.append(f"{model}, {name}: {told} {unescape(found[1])}")
    inbox = owner.get("/budgets/").getvalue().decode()
    for address, told in re.findall(
        r'href="(/calls/\?[^"]+)">([\d,]+) (?:calls|concerned|of them clean)<', inbox
    ):
        if int(told.replace(",", "")) != _listed(project, address):
            wrong.append(f"inbox: {told} {unescape(address)}")

    assert wrong == []
    assert len(figures) == 7
    assert inbox.count(" concerned<") >= 2
    assert " of them clean<" in inbox
