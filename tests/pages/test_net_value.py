"""Whether trimming paid, on the pages that tell of it."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from helmdash.core.calls.capture import SentSizes
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.fitting.fit_uses import recorded_fit
from helmdash.records.models import Budget, Fit
from tests.factories import make_capture, record
from tests.shortened import GPT, SESSION, TRIMMED, at


def told(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.getvalue().decode()))


def test_every_page_tells_what_a_shortened_prompt_came_to(
    owner: Client, project: ProjectInfo, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    Budget.objects.filter(key="anthropic/claude-sonnet-").update(
        input_cost_usd_per_mtok=3.0,
        cached_input_cost_usd_per_mtok=0.3,
        cache_write_cost_usd_per_mtok=3.75,
        output_cost_usd_per_mtok=15.0,
    )
    record(*SESSION, *TRIMMED, project=project)

    with django_assert_max_num_queries(30):
        page = told(owner, "/net-value/?range=all")

    # In sum, and each, with the calls that it is from; a model without a price counts as unknown.
    assert "+123,798" in page
    assert "\N{MINUS SIGN}3,192" in page
    assert "\N{MINUS SIGN}0.07 1 unknown" in page
    assert "pays after 3 calls" in page
    # A sum leads to what it adds up.
    whole = owner.get("/net-value/?range=all").getvalue().decode()
    assert re.search(r'<dt>Net, tokens</dt><dd><a href="/net-value/\?[^"]*#each">', whole)
    assert re.search(
        r'data-name="Saved"><a href="/net-value/\?[^"]*kind=compaction[^"]*#each">', whole
    )
    html = owner.get("/net-value/?range=all&kind=compaction").getvalue().decode()
    assert all(f"/calls/{each}/" in html for each in ("c1", "c2", "c3"))
    assert "/calls/cut/" not in html
    conversation = told(owner, "/conversations/talk/")
    assert "Did it pay?" in conversation
    assert "+126,990" in conversation
    # At the marker of the curve, too.
    assert "net +126,990 tokens, \N{MINUS SIGN}0.07 USD" in conversation
    assert owner.get("/net-value/?range=all&kind=nothing").status_code == 400
    assert "Nothing matches these filters" in told(owner, "/net-value/?range=all&model=none")


def test_a_trim_tells_it_for_the_calls_that_name_it(owner: Client, project: ProjectInfo) -> None:
    Fit.objects.create(
        project_id=project.id,
        name="fit_1",
        model=GPT,
        intent_sha="",
        catalog_digest="d",
        before_bytes=68_000,
        after_bytes=48_000,
        fits=True,
        trim={"steps": [], "kept": [], "removed": [], "dropped": []},
        budget={},
        created_at=at(10.5),
    )
    first, cut = TRIMMED
    record(
        first,
        make_capture(
            id="named",
            usage=cut.usage,
            conversation="fitted",
            sent=SentSizes(bytes=48_000),
            fit_id="fit_1",
            started_at=at(11),
        ),
        project=project,
    )

    assert "\N{MINUS SIGN}3,192" in told(owner, "/trims/fit_1/")
    listed = told(owner, "/trims/?range=all")
    assert "Did it pay?" in listed
    assert "\N{MINUS SIGN}3,192" in listed
    fit = recorded_fit(project_id=project.id, fit_id="fit_1")
    assert fit is not None
    assert [each.after and each.after.id for each in fit.calls] == ["named"]


def test_where_nothing_was_shortened_the_page_says_so(owner: Client) -> None:
    assert "No prompt was shortened yet" in told(owner, "/net-value/")
    assert "Did it pay?" not in told(owner, "/trims/")


def test_every_count_leads_to_as_many(owner: Client, project: ProjectInfo) -> None:
    """Calls beside one and beside all, and what a sum leaves out."""
    record(*SESSION, *TRIMMED, project=project)
    late = [replace(each, id=f"x-{each.id}", conversation="other") for each in SESSION[1:]]
    failed = replace(SESSION[0], id="x-c0", conversation="other", http_status=500, usage=None)
    record(failed, *late, project=project)

    followed = 0
    for page in ("/net-value/?range=all", "/conversations/other/", "/trims/?range=all"):
        html = owner.get(page).getvalue().decode()
        for address, text in re.findall(r'href="(/net-value/[^"#]+)">([\d,]+(?: %)?)</a>', html):
            listed = owner.get(unescape(address), follow=True).content.decode()
            if "/calls/" in address:
                found = len(re.findall(r"data-row", listed))
            else:
                found = len(re.findall(r'<td class="num" data-name="Re-billed"', listed))
            if "%" not in text:
                assert str(found) == text, (page, address)
            followed += 1
    assert followed >= 20
    # One of two sessions began with a call that failed: 1 of 2 before, in the words of the row.
    assert "1 of 2 \N{RIGHTWARDS ARROW} 2 of 2" in told(owner, "/net-value/?range=all")
    assert owner.get("/net-value/calls/?side=beside").status_code == 400
