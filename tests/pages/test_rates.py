"""The rates of the first page: each leads to the calls it is of, with a line of how it went."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.pages.parts.charts.sparkline import Sparkline, sparkline
from helmdash.queries.access.access import ProjectInfo
from tests.factories import make_capture, record
from tests.pages.hygiene import faults

# shares, what is drawn
LINES = [
    ([], None),
    ([None, None], None),
    ([0.5], None),
    ([None, 0.5, None], None),
    ([0.0, 0.0], Sparkline(path="M0.0,18.5H50.0V18.5H100.0", text="0 % to 0 % over the range")),
    # The largest reaches the top, whatever it is.
    ([0.0, 0.02], Sparkline(path="M0.0,18.5H50.0V1.5H100.0", text="0 % to 2 % over the range")),
    ([1.0, None, 0.5, None],
     Sparkline(path="M0.0,1.5H25.0M50.0,10.0H75.0", text="50 % to 100 % over the range")),
]  # fmt: skip


@pytest.mark.parametrize(("shares", "drawn"), LINES)
def test_a_line_is_of_what_is_known(shares: list[float | None], drawn: Sparkline | None) -> None:
    assert sparkline(shares) == drawn


def rates_of(client: Client, path: str) -> tuple[str, str]:
    html = client.get(path).content.decode()
    assert faults(html) == []
    part = html.split('aria-labelledby="rates"', 1)[1].split("</section>", 1)[0]
    return part, " ".join(unescape(re.sub(r"<title>.*?</title>|<[^>]+>", " ", part)).split())


def test_rates_of_the_range_lead_to_their_calls(owner: Client, project: ProjectInfo) -> None:
    now = timezone.now()
    for call, over in (
        ("short", {"finish_reason": "length", "purpose": "plan", "content": '{"steps": ['}),
        ("nothing", {"content": ""}),
        ("untold", {"usage": None}),
        ("cached", {"usage": {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 5}}}),
    ):
        record(make_capture(id=call, conversation=None, started_at=now, **over), project=project)
    old = now - timedelta(days=3)
    record(make_capture(id="old", usage=None, content="", started_at=old), project=project)

    html, text = rates_of(owner, "/?range=24h")

    assert "Truncated 25 % 1 of 4 Empty 25 % 1 of 4 Suspected cuts 0 % 0 of 4" in text
    assert "Level unknown 25 % 1 of 4 From cache 50 % of tokens, n 1" in text
    listed = [owner.get(unescape(each), follow=True).content.decode()
              for each in re.findall(r'href="([^"]+)"', html)]  # fmt: skip
    calls = ["short", "nothing", "untold", "cached"]
    assert [[each for each in [*calls, "old"] if f'href="/calls/{each}/' in page]
            for page in listed] == [[each] for each in calls]  # fmt: skip


def test_rates_of_no_call_say_so(owner: Client, project: ProjectInfo) -> None:
    record(make_capture(started_at=timezone.now() - timedelta(days=9)), project=project)

    _, text = rates_of(owner, "/?range=1h")

    assert text.count("no call in this range") == 4
    assert "no call told of its cache" in text
