"""Which model breaks at which size: rows by what is surely worst, grey where too few calls say it,
and each cell leads to the calls that it counts."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import SentSizes
from helmdash.core.rollups.facts import BAND_LABELS, BANDS, band_of, bounds_of_band
from helmdash.operations.budgets.editing import change_budget
from helmdash.pages.parts.charts.heat_map import LEAST_CALLS, Rows, heat_map
from helmdash.pages.parts.words import dollars
from helmdash.queries import models
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from tests.factories import make_capture, record
from tests.pages.hygiene import faults

SMALL, LARGE = 1_000, 100_000


def fill(project: ProjectInfo, model: str, *, clean: int, cut: int, size: int, **over: str) -> None:
    ends = ["stop"] * clean + ["length"] * cut
    captures = [
        make_capture(
            model=model,
            conversation=None,
            finish_reason=finish,
            content="Done." if finish == "stop" else "",
            decoded=finish == "stop",
            sent=SentSizes(bytes=size),
            started_at=timezone.now() - timedelta(minutes=5),
            **over,
        )
        for finish in ends
    ]
    record(*captures, project=project)


@pytest.fixture
def breaking(project: ProjectInfo) -> ProjectInfo:
    """`acme/sure` fails where prompts are large, `acme/fine` never, `acme/rare` was asked once,
    for a purpose and with a variant of its caller's own."""
    fill(project, "acme/fine", clean=LEAST_CALLS, cut=0, size=LARGE)
    fill(project, "acme/sure", clean=LEAST_CALLS, cut=0, size=SMALL, purpose="filter")
    fill(project, "acme/sure", clean=3, cut=LEAST_CALLS, size=LARGE, prompt_variant="full_steps")
    fill(project, "acme/rare", clean=0, cut=1, size=LARGE, purpose="invented", prompt_variant="own")
    return project


def test_what_the_shares_are_of_is_said_before_the_first_of_them(
    viewer: Client, breaking: ProjectInfo
) -> None:
    above, _ = viewer.get("/models/").content.decode().split('<table class="heat">', 1)

    assert "share of clean calls" in above


def cells(html: str) -> list[tuple[str, str, str]]:
    """Shade, text and address of each cell with calls, row after row."""
    table = html.split('<table class="heat">', 1)[1].split("</table>", 1)[0]
    found = re.findall(r'<td class="num (\S+)"[^>]*><a href="([^"]*)">(.*?)</a></td>', table)
    return [
        (shade, " ".join(re.sub(r"<[^>]+>", " ", text).split()), unescape(address))
        for shade, address, text in found
    ]


def test_what_most_surely_breaks_stands_first_and_few_calls_are_grey(
    owner: Client, breaking: ProjectInfo
) -> None:
    html = owner.get("/models/").content.decode()

    assert faults(html) == []
    table = html.split('<table class="heat">', 1)[1].split("</table>", 1)[0]
    assert re.findall(r'title="(acme/\w+)"', table) == ["acme/sure", "acme/rare", "acme/fine"]
    assert [(shade, text) for shade, text, _ in cells(html)] == [
        ("heat-5", "100 % n 10 · 72 % to 100 %"),
        ("heat-1", "23 % n 13 · 8.2 % to 50 %"),
        ("heat-2", "57 % n 23 · 37 % to 74 %"),
        ("heat-few", "0 % n 1 · 0 % to 79 %"),
        ("heat-few", "0 % n 1 · 0 % to 79 %"),
        ("heat-5", "100 % n 10 · 72 % to 100 %"),
        ("heat-5", "100 % n 10 · 72 % to 100 %"),
    ]


@pytest.mark.parametrize("by", Rows)
def test_each_cell_leads_to_its_calls(owner: Client, breaking: ProjectInfo, by: Rows) -> None:
    html = owner.get("/models/", {"by": by.value, "range": "1h"}).content.decode()

    found = cells(html)
    assert len(found) > 6
    for _, text, address in found:
        listed = owner.get(address).content.decode()
        assert (faults(listed), address.count("range=1h")) == ([], 1)
        (n,) = re.findall(r"n (\d+) ·", text)
        # The table, and the bars above it.
        assert listed.count("data-row") == int(n), address
        assert f"<strong>{n}</strong> call{'' if n == '1' else 's'}" in listed, address


def test_the_map_may_tell_purposes_or_variants_apart(owner: Client, breaking: ProjectInfo) -> None:
    def parts(by: str) -> list[str]:
        html = owner.get("/models/", {"by": by}).content.decode()
        table = html.split('<table class="heat">', 1)[1].split("</table>", 1)[0]
        return re.findall(r'</span><span class="sub">([a-z_ ]+)</span></th>', table)

    assert parts("purpose") == ["chat", "other", "chat", "filter"]
    assert parts("variant") == ["full_steps", "own", "no variant", "no variant"]
    assert owner.get("/models/", {"by": "color"}).status_code == 400


def test_a_purpose_of_its_callers_own_is_counted_with_the_others_and_says_so(
    owner: Client, breaking: ProjectInfo
) -> None:
    fill(breaking, "acme/rare", clean=1, cut=0, size=LARGE, purpose="another")

    html = owner.get("/models/", {"purpose": "invented"}).content.decode()

    assert (faults(html), "Figures do not tell" in html) == ([], True)
    found = cells(html)
    assert [text for _, text, _ in found] == ["50 % n 2 · 9.5 % to 91 %"] * 2
    for _, _, address in found:
        assert owner.get(address).content.decode().count("data-row") == 2
    assert "Figures do not tell" not in owner.get("/models/?purpose=other").content.decode()


def test_more_rows_than_anybody_reads_are_left_out_and_said(
    owner: Client, breaking: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helmdash.pages.parts.charts.heat_map.MOST_ROWS", 1)

    html = owner.get("/models/").content.decode()

    assert "2 more rows with better ones are left out" in html
    rows = models.model_rows(project_id=breaking.id).rows
    assert [row.model for row in heat_map(rows, by=Rows.MODEL, carried={}).rows] == ["acme/sure"]


def test_the_bands_hold_every_size_once() -> None:
    for size in [0, *(end + step for _, end in BANDS for step in (-1, 0)), 10**9]:
        inside = [
            label
            for label in BAND_LABELS
            if bounds_of_band(label)[0] <= size < (bounds_of_band(label)[1] or size + 1)
        ]
        assert inside == [band_of(size)]


def test_figures_of_a_model_tell_its_first_token_and_its_cost(
    owner: Client, project: ProjectInfo
) -> None:
    usage = {
        "prompt_tokens": 100_000,
        "completion_tokens": 20_000,
        "cached_tokens": 40_000,
        "cache_write_tokens": 10_000,
    }
    for ttft in (300, 400, 800):
        record(make_capture(usage=usage, latency_ms=9_000, ttft_ms=ttft), project=project)
    budget_id = budgets.table(project_id=project.id).lookup("openai/gpt-4o").budget_id
    assert budget_id is not None
    unpriced = owner.get("/models/").content.decode()
    prices = {"input_cost_usd_per_mtok": 2.5, "output_cost_usd_per_mtok": 10.0}
    change_budget(
        actor=SHELL,
        budget_id=budget_id,
        project_id=project.id,
        changes={
            **prices,
            "cached_input_cost_usd_per_mtok": 1.25,
            "cache_write_cost_usd_per_mtok": 4.5,
        },
    )

    (row,) = models.model_rows(project_id=project.id).rows
    html = owner.get("/models/").content.decode()

    assert (row.ttft_p50_ms, row.ttft_p95_ms, row.streamed) == (400, 800, 3)
    assert (row.latency_p99_ms, row.priced) == (9_000, 3)
    # 50,000 tokens at 2.50, 40,000 at 1.25, 10,000 at 4.50 and 20,000 at 10, three times.
    assert row.cost_usd == pytest.approx(3 * (0.125 + 0.05 + 0.045 + 0.2))
    assert "no price in its budget" in unpriced
    assert 'data-name="Cost, USD"><span>1.26</span>' in html


def test_what_a_cache_gave_of_an_uncounted_prompt_is_taken_from_no_other(
    project: ProjectInfo,
) -> None:
    """The cost was below nothing: the prompts less 50,000 tokens, at the price of plain input."""
    budget_id = budgets.table(project_id=project.id).lookup("openai/gpt-4o").budget_id
    assert budget_id is not None
    prices = {"input_cost_usd_per_mtok": 2.5, "output_cost_usd_per_mtok": 10.0}
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=prices)
    usages = [{"completion_tokens": 5, "cached_tokens": 50_000}, {"prompt_tokens": 1_000}]
    record(*(make_capture(usage=usage) for usage in usages), project=project)

    (row,) = models.model_rows(project_id=project.id).rows

    assert (row.priced, row.calls) == (1, 2)
    assert row.cost_usd == pytest.approx((1_000 * 2.5 + 5 * 10) / 1_000_000)


# USD, as a table has them
AMOUNTS = [(0.0, "0.00"), (0.000_01, "< 0.0001"), (0.004_56, "0.0046"), (1234.5, "1,234.50")]


@pytest.mark.parametrize(("amount", "said"), AMOUNTS)
def test_an_amount_is_told_in_cents_or_what_there_is_of_one(amount: float, said: str) -> None:
    assert dollars(amount) == said
