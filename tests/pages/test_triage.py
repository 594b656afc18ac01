"""What people say about trouble, from the pages that show it."""

from __future__ import annotations

from django.test import Client

from helmdash.queries.access import ProjectInfo
from helmdash.records.models import FailureMark
from tests.factories import make_capture, record
from tests.pages.hygiene import faults

GROUP = {"cause": "rate_limited", "model": "openai/gpt-4o"}


def failing(client: Client) -> str:
    """The strip of the overview."""
    html = client.get("/").content.decode()
    assert faults(html) == []
    return html.split('id="failing"', 1)[1].split("</section>", 1)[0]


def test_what_fails_is_resolved_on_the_overview_and_comes_back(
    owner: Client, viewer: Client, project: ProjectInfo
) -> None:
    failed = {"http_status": 429, "finish_reason": None, "usage": None}
    record(make_capture(**failed), project=project)
    before, read = failing(owner), failing(viewer)

    answer = owner.post("/failures/mark/", {**GROUP, "state": "resolved"}, follow=True)
    resolved = failing(owner)
    record(make_capture(**failed), project=project)
    again = failing(owner)

    assert "The provider&#x27;s rate limit was reached" in before
    assert "/calls/?cause=rate_limited&amp;model=openai%2Fgpt-4o&amp;since=24h" in before
    assert "Resolve" in before
    assert "Resolve" not in read
    assert "Resolved: it comes back" in answer.content.decode()
    assert "Nothing fails" in resolved
    assert "resolved by owner" in resolved
    assert "came back" in again


def test_a_mark_that_makes_no_sense_is_told_and_not_kept(
    owner: Client, project: ProjectInfo
) -> None:
    for wrong in ({"cause": "nope"}, {"model": ""}, {"model": "m" * 256}, {"state": "gone"}):
        answer = owner.post("/failures/mark/", {**GROUP, "state": "muted", **wrong}, follow=True)

        assert f"{next(iter(wrong))}: " in answer.content.decode()
    assert not FailureMark.objects.exists()
