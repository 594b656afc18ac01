"""The weekly report, as a page and as Markdown."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import CapturedTrim, SentSizes
from helmdash.core.calls.failures import FailureCause
from helmdash.operations.budgets.editing import change_budget
from helmdash.operations.triage import mark_failures
from helmdash.queries import weekly
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.evidence.net_value import net_report
from helmdash.queries.failures import GroupState
from tests.factories import make_capture, make_key, make_suggestion, record

_TAGS = re.compile(r"<[^>]+>")
_LINK = re.compile(r"(?<!\\)\[((?:[^\]\\]|\\.)*)\]\(([^)]*)\)")


def _listed(owner: Client, address: str) -> int:
    """How many calls the list at an address shows."""
    shown = owner.get(address, follow=True).content.decode()
    return len(set(re.findall(r"/calls/(good|bad|before|today)/", shown)))


def test_a_week_is_told_as_a_page_and_as_markdown(owner: Client, project: ProjectInfo) -> None:
    last_week = timezone.now() - timedelta(days=2)
    record(
        make_capture(id="good", started_at=last_week),
        make_capture(id="before", started_at=last_week - timedelta(days=7)),
        make_capture(
            id="bad",
            model="acme/*tiny*",
            http_status=429,
            usage=None,
            finish_reason=None,
            error_message="rate limited",
            started_at=last_week,
        ),
        make_capture(id="today", started_at=timezone.now()),
    )
    make_suggestion(project=project)
    make_suggestion(
        project=project,
        upstream="west",
        state="dismissed",
        reason="[a test]",
        decided_at=last_week,
        decided_by="owner",
    )

    yesterday = {"to": (timezone.now() - timedelta(days=1)).date().isoformat()}
    page = owner.get("/weekly/", yesterday)
    file = owner.get("/weekly/report.md", yesterday)

    assert page.status_code == file.status_code == 200
    shown = page.getvalue().decode()
    assert "Input 100,000 → 24,575</a> of" in shown
    assert ">2</a>" in shown
    assert file.headers["Content-Type"] == "text/markdown; charset=utf-8"
    told = file.getvalue().decode()
    said = _LINK.sub(r"\1", told)
    assert "- 2 calls, 50 % clean, 20,000 prompt tokens; the week before: 1 call, 100 %" in said
    # Names are nobody's markup.
    assert "acme/\\*tiny\\*: rate\\_limited, 1 call (0 the week before)" in said
    assert "- dismissed: openai/gpt-4o: input 100,000 → 24,575 (\\[a test\\])" in said
    assert "- openai/gpt-4o: input 100,000 → 24,575. 96% of 83 answers" in said
    # Whoever pastes it somewhere else has to find back: as far as it has calls, all of them.
    counts = {text: _listed(owner, path) for text, path in _LINK.findall(told) if "calls/" in path}
    assert all(path.startswith("http://testserver/") for _, path in _LINK.findall(told))
    assert (counts["2 calls"], counts["50 % clean"], counts["1 call"]) == (2, 1, 1)
    # Without a day it goes on to this moment; the days to come are nobody's to ask for.
    assert "- [3 calls](" in owner.get("/weekly/report.md").getvalue().decode()
    tomorrow = (timezone.now() + timedelta(days=1)).date()
    for bad in (tomorrow.isoformat(), "0001-01-01", "last", "2026-02-30"):
        assert owner.get("/weekly/", {"to": bad}).status_code == 404


def test_a_week_without_anything_says_so(owner: Client, project: ProjectInfo) -> None:
    told = owner.get("/weekly/report.md").getvalue().decode()

    assert told.count("- None") == told.count("- Nothing") == 1
    assert "no calls" in told
    assert "None in these seven days" in owner.get("/weekly/").getvalue().decode()


def test_markdown_and_mail_say_what_their_net_values_leave_out(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page does: those without a price, and that a week of many is told by the newest."""
    budget_id = budgets.table(project_id=project.id).lookup("openai/gpt-4o").budget_id
    assert budget_id is not None
    prices = {"input_cost_usd_per_mtok": 2.5}
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=prices)
    at = timezone.now() - timedelta(hours=3)
    for number, model in enumerate(("openai/gpt-4o", "mistral/small")):
        trimmed = {"trim": CapturedTrim(before_bytes=900, after_bytes=600)}
        for name, more in (("whole", {}), ("cut", trimmed)):
            record(
                make_capture(
                    id=f"{name}-{number}",
                    model=model,
                    conversation=f"talk-{number}",
                    usage={"prompt_tokens": 1_000, "completion_tokens": 1, "cached_tokens": 0},
                    sent=SentSizes(bytes=600),
                    started_at=at,
                    **more,
                )
            )

    said = _LINK.sub(r"\1", owner.get("/weekly/report.md").getvalue().decode())
    assert "Net value of 2 × Trim: +1,000 tokens, +0.0013 USD; 1 of them unknown in USD" in said
    assert "newest" not in said

    monkeypatch.setattr(weekly, "net_report", partial(net_report, most=1))
    said = _LINK.sub(r"\1", owner.get("/weekly/report.md").getvalue().decode())
    assert "- Net values are of the newest 200 Trims and 200 fresh starts" in said


def test_what_shortening_came_to_is_said_once_where_nothing_of_it_is_known(
    owner: Client, project: ProjectInfo
) -> None:
    """It read "not known of 1; 1 unknown, 1 unknown in USD"; and a week without a cut "0 bytes by 0
    Trims", then "none was cut" beside the Trims that packs reported."""
    empty = _TAGS.sub(" ", owner.get("/weekly/").getvalue().decode())
    trim = CapturedTrim(before_bytes=900, after_bytes=600)
    record(make_capture(id="first", conversation="talk", trim=trim, sent=SentSizes(bytes=600)))

    said = " ".join(_TAGS.sub(" ", owner.get("/weekly/").getvalue().decode()).split())

    file = owner.get("/weekly/report.md").getvalue().decode()

    assert "HelmDash cut none" in empty
    assert "- HelmDash cut no catalog" in file
    assert "none was cut" not in said
    assert "0 bytes" not in file
    assert "not known for any of 1" in said
    assert "unknown in USD" not in said


def test_edits_by_keys_and_the_shell_are_edits_too(owner: Client, project: ProjectInfo) -> None:
    """The report said that no budget was edited, and the page of edits listed them."""
    budget_id = budgets.table(project_id=project.id).lookup("openai/gpt-4o").budget_id
    assert budget_id is not None
    secret = make_key(name="deploy", scopes=["budgets"])
    added = Client().post(
        "/api/v1/budgets",
        {"key": "acme/", "input_tokens": 9_000, "output_tokens": 900, "tier": "B"},
        content_type="application/json",
        headers={"authorization": f"Bearer {secret}"},
    )
    assert added.status_code == 201, added.content
    changes = {"input_tokens": 99_000}
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=changes)

    said = _LINK.sub(r"\1", owner.get("/weekly/report.md").getvalue().decode())
    page = owner.get("/weekly/").getvalue().decode()

    for told in (
        "budget acme/ added (API key deploy)",
        "budget openai/gpt-4o edited (the command line)",
    ):
        assert told in said
        assert told in page
    # What comes with HelmDash is nobody's edit.
    assert said.count("budget ") == 2
    assert "No budget was edited" not in said + page


def test_what_was_decided_is_told_of_its_own_week(
    owner: Client, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where many others were decided since."""
    last_week = timezone.now() - timedelta(days=7)
    decided: dict[str, Any] = {"state": "dismissed", "decided_by": "owner"}
    make_suggestion(
        project=project, upstream="then", reason="too early", decided_at=last_week, **decided
    )
    for number in range(12):
        make_suggestion(
            project=project, upstream=f"now-{number}", decided_at=timezone.now(), **decided
        )

    then = owner.get("/weekly/report.md", {"to": last_week.date().isoformat()})
    now = owner.get("/weekly/report.md")

    assert then.getvalue().decode().count("dismissed: ") == 1
    assert "too early" in then.getvalue().decode()
    assert now.getvalue().decode().count("dismissed: ") == 12
    assert owner.get("/weekly/").getvalue().decode().count("dismissed: ") == 12
    monkeypatch.setattr(weekly, "MOST_DECIDED", 5)
    for page in ("/weekly/", "/weekly/report.md"):
        told = owner.get(page).getvalue().decode()
        assert (told.count("dismissed: "), "7 more suggestions" in told) == (5, True)


@pytest.mark.parametrize("state", [GroupState.RESOLVED, GroupState.MUTED])
def test_what_was_said_after_a_week_changes_nothing_of_what_failed_in_it(
    owner: Client, project: ProjectInfo, state: GroupState
) -> None:
    last_week = timezone.now() - timedelta(days=7)
    record(make_capture(http_status=429, usage=None, finish_reason=None, started_at=last_week))
    then = {"to": (last_week + timedelta(days=1)).date().isoformat()}
    before = owner.get("/weekly/report.md", then).getvalue().decode()

    mark_failures(
        actor=SHELL,
        project=project,
        cause=FailureCause.RATE_LIMITED,
        model_key="openai/gpt-4o",
        state=state,
        now=timezone.now(),
    )

    assert "rate\\_limited, [1 call](" in before
    assert owner.get("/weekly/report.md", then).getvalue().decode() == before


def test_a_failing_group_leads_to_just_its_calls(owner: Client, project: ProjectInfo) -> None:
    """One name with and without its provider is two groups, and neither leads to the other's."""
    at = timezone.now() - timedelta(hours=3)
    named = ("tiny-1", "acme/tiny-1", "other/tiny-1", "acme/tiny-1", "odd name", "odd name")
    for number, model in enumerate(named):
        for name, back in (("now", 0), ("before", 7)):
            record(
                make_capture(
                    id=f"{name}-{number}",
                    model=model,
                    # One that tells its provider has another key than its name alone.
                    provider="west" if number >= 3 else None,
                    http_status=500,
                    usage=None,
                    finish_reason=None,
                    started_at=at - timedelta(days=back, minutes=number),
                )
            )

    for page in ("/weekly/", "/?range=24h"):
        shown = owner.get(page).getvalue().decode()
        links = re.findall(r'href="([^"]+spelt%3A[^"]+)">(\d+)[^<]*</a>', shown)
        assert sorted(count for _, count in links) == sorted(
            ["1", "1", "2", "2"] * (2 if page == "/weekly/" else 1)
        )
        for address, count in links:
            listed = owner.get(unescape(address), follow=True).content.decode()
            assert len(set(re.findall(r"/calls/((?:now|before)-\d)/", listed))) == int(count)
