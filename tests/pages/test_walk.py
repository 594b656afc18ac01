"""Through the front door: every page, for whom, with what around it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.capture import Capture, CapturedTrim
from helmdash.core.calls.routes import CallRoute
from helmdash.pages.lists.list_forms import CallFilterForm
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import forget_cache
from helmdash.records.models import Fit
from tests.factories import NOW, make_capture, make_project, record
from tests.pages.hygiene import faults

PAGES = [
    "/",
    "/conversations/",
    "/conversations/talk/",
    "/conversations/plans/",
    "/conversations/quiet/",
    "/calls/",
    "/calls/talk-0/",
    "/calls/cut/",
    "/calls/also/with%20slash/",
    "/calls/lost/",
    "/plans/",
    "/plans/plan-1/",
    "/models/",
    "/weekly/",
    "/trims/",
    "/budgets/",
    "/budgets/?model=openrouter/meta-llama/llama-3.3-70b-instruct:free",
    "/budgets/preflight/",
    "/catalog/",
    "/try/fit/",
    "/try/plan/",
    "/try/route/",
    "/settings/",
    "/settings/care/",
    "/settings/members/",
    "/settings/alerts/",
    "/connect/",
    "/connect/?client=codex&model=openai/gpt-4o",
    "/settings/gateway/",
    "/settings/gateway/?model=openai/gpt-4o",
    "/settings/upstreams/",
    "/settings/recorder/",
    "/help/",
    "/find/?q=t",
    "/query/calls/?level=critical",
]
# Pages that belong to no entry of the side bar.
APART = ("/help/", "/find/")
LIVE = ["/", "/conversations/", "/conversations/talk/", "/calls/"]
FRAGMENTS = [
    *LIVE,
    "/plans/",
    "/plans/plan-1/",
    "/models/",
    "/try/plan/",
    "/trims/",
    "/catalog/",
    "/try/fit/",
    "/budgets/?model=openai/gpt-4o",
    "/settings/recorder/",
    "/care/reminders/talk/",
]


def test_every_page_reads_whole_and_clean(owner: Client, filled: str) -> None:
    for path in PAGES:
        response = owner.get(path)

        html = response.content.decode()
        assert (path, response.status_code, faults(html)) == (path, 200, [])
        assert (path, html.count("<h1")) == (path, 1)
        side_bar = html[html.index('<ul class="nav">') :].partition("</ul>")[0]
        is_marked = 'aria-current="page"' in side_bar
        assert (path, is_marked) == (path, not path.startswith(APART))
        assert "HX-Request" in response["Vary"]


def test_a_viewer_reads_every_page_too(viewer: Client, filled: str) -> None:
    assert {path: viewer.get(path).status_code for path in PAGES} == dict.fromkeys(PAGES, 200)


def test_no_page_is_shown_to_a_stranger(client: Client, filled: str) -> None:
    for path in PAGES:
        response = client.get(path)

        assert (path, response.status_code) == (path, 302)
        assert response["Location"].startswith("/login/?next=%2F")


def test_the_fit_of_a_call_is_one_link_away(owner: Client, filled: str) -> None:
    call = owner.get("/calls/cut/").content.decode()
    fit = owner.get(f"/trims/{filled}/")

    assert f"/trims/{filled}/" in call
    assert "Removed" in call or "Kept" in call
    assert fit.status_code == 200
    assert faults(fit.content.decode()) == []
    assert "/calls/cut/" in fit.content.decode()


def test_a_call_without_a_trim_of_its_own_tells_its_fits(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    record(make_capture(id="fitted", fit_id=filled, trim=None), project=project)
    row = Fit.objects.get(name=filled)

    whole = owner.get("/calls/fitted/").content.decode()
    lose_an_entry(filled)
    cut = owner.get("/calls/fitted/").content.decode()

    assert (row.before_bytes == row.after_bytes) == ("Nothing was cut" in whole)
    assert "<strong>1,000</strong> bytes before, <strong>600</strong> bytes after" in cut
    assert "whether something was cut is not known" not in whole + cut


def lose_an_entry(name: str) -> None:
    """Let a stored fit tell that it left one out."""
    row = Fit.objects.get(name=name)
    row.before_bytes, row.after_bytes = 1_000, 600
    row.trim |= {
        "before_bytes": 1_000,
        "after_bytes": 600,
        "limit_bytes": 700,
        "steps": [{"label": "lexical.top_n", "entries": 1, "bytes_saved": 400}],
        "removed": [{"id": "tool.3", "kind": "pack", "rank": 40, "score": 0.0}],
    }
    row.steps = row.trim["steps"]
    row.save()


def test_the_words_that_the_model_lost_are_struck_through(owner: Client, filled: str) -> None:
    lose_an_entry(filled)

    html = owner.get(f"/trims/{filled}/").content.decode()

    assert '<del class="id" title="tool.3">tool.3</del>' in html
    assert "Does the thing number 3. And it says so at some length.</del>" in html
    assert '<rect class="bar-step" x="60.0" width="40.0" height="6"/>' in html
    assert html.count('<line class="bar-room" x1="70.0"') == 3
    assert "\N{MINUS SIGN}400" in html
    assert "no plan was made with it" in html


def test_what_is_cut_most_and_for_whom_leads_to_those_fits(owner: Client, filled: str) -> None:
    lose_an_entry(filled)
    label = "lexical.top_n"

    html = owner.get("/trims/?range=1h").content.decode()

    assert f"/trims/?range=1h&amp;cut={label}" in html
    assert "all fits of the range" in html
    for query, is_there in (
        ({"cut": label, "model": "SOME/free-model:free", "client": "owner"}, True),
        ({"cut": "pipeline.steps[].body"}, False),
        ({"client": "somebody"}, False),
        ({"outcome": "whole"}, False),
        ({"range": "2020-01-01"}, False),
    ):
        found = owner.get("/trims/", query).content.decode()
        assert (query, f"/trims/{filled}/" in found) == (query, is_there)
        assert ("Nothing matches these filters" in found) is not is_there


def test_htmx_gets_the_fragment_alone(owner: Client, filled: str) -> None:
    for path in FRAGMENTS:
        response = owner.get(path, headers={"HX-Request": "true"})

        html = response.content.decode()
        assert "<html" not in html
        assert (path, faults(html)) == (path, [])
        assert "HX-Request" in response["Vary"]


@pytest.mark.parametrize("path", LIVE)
def test_a_live_fragment_that_did_not_change_is_a_304(
    owner: Client, filled: str, project: ProjectInfo, path: str
) -> None:
    etag = owner.get(path, headers={"HX-Request": "true"})["ETag"]

    def poll() -> int:
        headers = {"HX-Request": "true", "If-None-Match": etag}
        return owner.get(path, headers=headers).status_code

    # The tag also holds the minute, which may have turned since.
    if poll() != 304:
        etag = owner.get(path, headers={"HX-Request": "true"})["ETag"]
        assert poll() == 304

    record(make_capture(id="new"), project=project)
    assert poll() == 200


def test_a_poll_after_signing_out_leads_to_the_sign_in_page(client: Client, filled: str) -> None:
    asked = {"HX-Request": "true", "HX-Current-URL": "http://testserver/calls/?q=x"}

    response = client.get("/calls/", headers=asked)

    assert response["HX-Redirect"] == "/login/?next=http%3A%2F%2Ftestserver%2Fcalls%2F%3Fq%3Dx"
    assert response.content == b""


ADDRESSES = re.compile(r'(?:href|action|formaction|hx-get|hx-post)="(/[^"]*)"')
OF_NO_PROJECT = re.compile("/(static|admin|api|theme|logout)/")


def test_every_address_of_a_page_names_the_project(owner: Client, filled: str) -> None:
    """Whatever another tab looks at: what is shown here leads to where it came from."""
    make_project(slug="other")
    for path in PAGES:
        if not path.startswith(("/conversations/", "/calls/", "/plans/plan")):
            html = owner.get(path, {"project": "other"}).content.decode()

            searches = re.findall(r'<form[^>]*method="get"[^>]*>(<input[^>]*>)', html)
            own = re.sub(r'<form[^>]*method="get"[^>]*>', "", html)
            named = [each for each in ADDRESSES.findall(own) if not OF_NO_PROJECT.match(each)]
            elsewhere = {each for each in named if "project=other" not in each}
            assert elsewhere == {"/?project=default"}  # the switch
            assert [each for each in searches if 'value="other"' not in each] == []
            assert len(named) > 10


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-11-01", ""), ("2026-11-01", "2026-11-03"), ("", "2026-11-03"), ("7d", "2h")],
)
def test_the_field_of_a_range_says_what_the_calendars_fields_mean(since: str, until: str) -> None:
    zone = ZoneInfo("Asia/Tokyo")
    shown = CallFilterForm({"since": since, "until": until}, now=NOW, zone=zone)

    sent = CallFilterForm({"range": shown.range_text}, now=NOW, zone=zone)

    assert (shown.problems, sent.problems) == ([], [])
    assert sent.time_range == shown.time_range


@pytest.mark.parametrize("name", ["why?", "a#b", "50%25", "a&project=x", "a;project=x"])
def test_a_name_that_looks_like_a_query_is_found_in_its_project(
    owner: Client, project: ProjectInfo, name: str
) -> None:
    record(make_capture(conversation=name), project=make_project(slug="other"))
    page = f"/conversations/{quote(name, safe='')}/"
    panel = f"/budgets/of-conversation/{quote(name, safe='')}/"

    led = owner.get(page, follow=True)
    own = owner.get(page, {"project": "other", "to": "1"}).content.decode()
    edited = owner.get(panel, {"project": "other"}).content.decode()

    assert led.status_code == 200
    assert 'data-project="other"' in led.content.decode()
    links = [each for each in ADDRESSES.findall(own + edited) if not OF_NO_PROJECT.match(each)]
    # The palette's form has its project in a field.
    links = [each for each in links if each != "/find/"]
    assert [each for each in links if "project=other" not in each] == [*["/?project=default"] * 2]
    (action,) = re.findall(r'class="card-body" method="post" action="([^"]*)"', edited)
    assert owner.get(unescape(action)).status_code == 200


def test_a_sub_agents_first_name_leads_to_its_page(owner: Client, project: ProjectInfo) -> None:
    told: dict[str, Any] = {"id": "anthropic:req_9", "client_name": "claude-code", "parent": "s-1"}
    kind, own = "s-1:agent:builtin:Explore", "s-1:a1"
    for route, name in ((CallRoute.OTLP_LOG, kind), (CallRoute.OTLP_SPAN, own)):
        record(make_capture(**told, routes=(route,), conversation=name), project=project)

    page = owner.get(f"/conversations/{kind}/").content.decode()
    listed = owner.get("/calls/", {"conversation": kind}).content.decode()

    assert own in page
    assert "anthropic:req_9" in page
    assert "anthropic:req_9" in listed


def test_pages_are_sent_compressed(owner: Client, filled: str) -> None:
    plain = owner.get("/calls/")
    packed = owner.get("/calls/", headers={"Accept-Encoding": "gzip"})

    assert packed["Content-Encoding"] == "gzip"
    assert len(packed.content) < len(plain.content) / 3


def test_what_is_missing_or_forbidden_is_told_within_the_frame(
    owner: Client, viewer: Client, filled: str
) -> None:
    tokenless = Client(enforce_csrf_checks=True)
    tokenless.force_login(User.objects.get(username="owner"))
    answers = [
        owner.get("/nowhere/"),
        owner.get("/calls/?project=unheard-of"),
        viewer.post("/settings/keys/?project=default", {"name": "x"}),
        owner.post("/calls/"),
        owner.get("/settings/upstreams/1/test/"),
        owner.post("/failures/mark/", {"project": "gone", "state": "muted"}),
        tokenless.post("/settings/keys/", {"name": "x"}),
    ]

    statuses = [answer.status_code for answer in answers]
    assert statuses == [404, 404, 403, 405, 405, 409, 403]
    assert [answer.headers.get("Allow") for answer in answers[3:5]] == ["GET, HEAD", "POST"]
    for answer in answers:
        html = answer.content.decode()
        assert faults(html) == []
        assert 'href="/conversations/?project=default"' in html


# session, user, projects, newest call of the project, newest call of all; then the page's own
QUERIES = {
    "/": 35,
    "/conversations/": 19,  # the table of budgets
    "/conversations/talk/": 32,
    "/calls/": 18,
    "/calls/talk-0/": 12,
    "/calls/cut/": 15,
    "/plans/": 12,
    "/plans/plan-1/": 12,
    "/models/": 22,
    "/weekly/": 35,
    "/trims/": 19,
    "/try/plan/": 7,
    "/budgets/": 18,
    "/settings/": 11,
    "/settings/care/": 5,
    "/connect/?since=9999999999": 15,  # from now on
    "/settings/gateway/": 7,
    "/settings/upstreams/": 12,  # the table of budgets, and conversations of now
    "/settings/recorder/": 11,
}


# Of choices whose values rollups may know: whether they do is asked first.
ON_POSTGRESQL = {
    # Two of these: how far back its bars count, and when the first was.
    "/conversations/": 4,
    "/calls/": 3,
    "/plans/": 1,
    "/models/": 2,
    "/try/plan/": 1,
    "/connect/?since=9999999999": 1,
    "/settings/gateway/": 1,
}


def test_a_page_asks_the_same_number_of_questions_however_much_there_is(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    # The fit, its calls (how many are near it, and those that name it), plans, the budget's edit.
    expected = {**QUERIES, f"/trims/{filled}/": 9}
    if connection.vendor == "postgresql":
        expected.update({path: expected[path] + more for path, more in ON_POSTGRESQL.items()})

    def asked() -> dict[str, int]:
        found = {}
        for path in expected:
            # Budgets are cached for a second; without them the number is the same each time.
            forget_cache()
            with CaptureQueriesContext(connection) as queries:
                owner.get(path)
            found[path] = len(queries)
        return found

    # The first page of a session notes down that there is one.
    owner.get("/help/")
    few = asked()
    record(*(make_capture(id=f"talk-{n}") for n in range(10, 50)), project=project)
    record(*(make_capture(conversation=f"c{n}") for n in range(40)), project=project)
    record(*(make_capture(correlation_id="story") for _ in range(9)), project=project)

    assert few == expected
    assert asked() == expected


WRONG_FILTERS = [
    ("/calls/?since=banana", ("since", "24h")),
    ("/calls/?level=red", ("level", "critical")),
    ("/calls/?cause=bad-luck", ("cause", "likely_timeout")),
    ("/calls/?finish_reason=tired", ("finish_reason", "length")),
    ("/calls/?since=1h&until=2h", ("until", "later than since")),
    ("/calls/?cursor=zzz", ("cursor", "start at the top")),
    ("/conversations/?until=31-12-2026", ("until", "2026-09-01")),
    ("/conversations/?order=worst", ("order", "newest")),
    ("/conversations/?cursor=WzFd", ("cursor", "start at the top")),
    ("/conversations/?q=%00", ("q", "Null")),
    ("/calls/?since=0001-01-01T00:00%2B14:00", ("since", "24h")),
    ("/trims/?cursor=zzz", ("cursor", "start at the top")),
    ("/trims/?outcome=red", ("outcome", "whole")),
    ("/models/?since=banana", ("since", "24h")),
    ("/models/?since=1h&until=2h", ("until", "later than since")),
    ("/models/?purpose=%00", ("purpose", "Null")),
    ("/budgets/?model=", ("model", "openai/gpt-4o")),
    ("/budgets/?model=" + "x" * 256, ("model", "255")),
    ("/budgets/?model=%00", ("model", "character")),
    ("/settings/gateway/?model=%00", ("model", "printable")),
    ("/settings/gateway/?model=" + "x" * 256, ("model", "255")),
]


def test_a_filter_that_cannot_be_used_is_named_with_its_fix(owner: Client, filled: str) -> None:
    for path, said in WRONG_FILTERS:
        for headers in ({}, {"HX-Request": "true"}):
            response = owner.get(path, headers=headers)

            html = response.content.decode()
            assert (path, response.status_code, faults(html)) == (path, 400, [])
            assert [word for word in said if word not in html] == []


def test_filters_narrow_the_lists(owner: Client, filled: str) -> None:
    failed = owner.get(
        "/calls/?cause=upstream_error&since=24h&model=openai/gpt-4o"
    ).content.decode()
    critical = owner.get("/conversations/?level=critical").content.decode()

    assert "/calls/lost/" in failed
    assert "/calls/talk-0/" not in failed
    assert "/conversations/talk/" in critical
    assert "/conversations/plans/" not in critical


def one_shots(client: str, count: int, **over: Any) -> list[Capture]:
    return [
        make_capture(conversation=f"{client}-{number}", client_name=client, **over)
        for number in range(count)
    ]


def test_one_shot_calls_of_a_client_are_one_line_that_leads_to_them(
    owner: Client, project: ProjectInfo
) -> None:
    record(*one_shots("claude-cli", 4), *one_shots("curl", 2), project=project)
    record(
        make_capture(conversation="claude-cli-red", client_name="claude-cli", http_status=500,
                     status="error"),
        *(make_capture(conversation="claude-cli-long", client_name="claude-cli") for _ in range(2)),
        project=project,
    )  # fmt: skip

    html = owner.get("/conversations/?order=newest&cursor=").content.decode()

    told = html.split(">4 one-shot calls of claude-cli</a>")
    assert len(told) == 2
    href = told[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert shown(html) == {"curl-0", "curl-1", "claude-cli-red", "claude-cli-long"}
    alone = owner.get(href).content.decode()
    assert shown(alone) == {f"claude-cli-{n}" for n in (0, 1, 2, 3, "red")}
    assert "order=newest" in href
    assert faults(html) == faults(alone) == []


def shown(html: str) -> set[str]:
    """The conversations that a list leads to."""
    return set(re.findall(r'href="/conversations/([^/?"]+)/\?', html))


def test_needs_attention_comes_first_unless_asked_otherwise(owner: Client, filled: str) -> None:
    worst_first = owner.get("/conversations/").content.decode()
    newest_first = owner.get("/conversations/?order=newest").content.decode()

    assert worst_first.index("/conversations/talk/") < worst_first.index("/conversations/quiet/")
    assert newest_first.index("/conversations/quiet/") < newest_first.index("/conversations/talk/")


def test_older_leads_through_all_pages_without_gap(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    record(*(make_capture(id=f"more-{n:03}") for n in range(120)), project=project)
    path, seen = "/calls/?q=more-", []

    while path:
        html = owner.get(path).content.decode()
        seen += [part.split("/", 1)[0] for part in html.split('href="/calls/more-')[1:]]
        older = html.split('rel="next" href="', 1)[1:]
        path = older[0].split('"', 1)[0].replace("&amp;", "&") if older else ""

    assert len(seen) == len(set(seen)) == 120


def test_where_nothing_was_fitted_the_trims_that_programs_report_are_a_step_away(
    owner: Client, project: ProjectInfo
) -> None:
    trim = CapturedTrim(before_bytes=1_000, after_bytes=250)
    record(make_capture(id="cut-elsewhere", trim=trim), project=project)
    record(make_capture(id="whole"), project=project)

    html = owner.get("/trims/").content.decode()
    (path,) = re.findall(r'href="(/calls/[^"]+)"', html.split("No catalog was fitted yet", 1)[1])
    found = owner.get(unescape(path)).content.decode()

    assert "/calls/cut-elsewhere/" in found
    assert "/calls/whole/" not in found


def test_each_empty_list_says_which_kind_of_empty_it_is(
    owner: Client, project: ProjectInfo
) -> None:
    assert "Nothing received yet" in owner.get("/calls/").content.decode()
    assert "Nothing received yet" in owner.get("/conversations/").content.decode()
    assert "Nothing matches these filters" in owner.get("/calls/?q=x").content.decode()
    assert "No catalog was fitted yet" in owner.get("/trims/").content.decode()
    assert "No catalog is in force" in owner.get("/catalog/").content.decode()

    record(make_capture(conversation=None), project=project)
    assert "No conversation yet" in owner.get("/conversations/").content.decode()


def test_unknown_is_a_dash_with_its_reason_and_never_a_zero(owner: Client, filled: str) -> None:
    html = owner.get("/calls/lost/").content.decode()

    assert "usage not reported" in html
    assert "0 %" not in html
    assert "0 / " not in html


def test_text_of_callers_is_shown_as_text(owner: Client, project: ProjectInfo) -> None:
    evil = "\"><script>alert(1)</script>\n'{{ 7 }}/..?#%00"
    texts = dict.fromkeys(("id", "conversation", "model", "pack", "error_message"), evil)
    record(make_capture(**texts), project=project)
    quoted = quote(evil, safe="")

    for path in (
        "/",
        "/calls/",
        f"/calls/{quoted}/",
        "/conversations/",
        f"/conversations/{quoted}/",
    ):
        response = owner.get(path)

        html = response.content.decode()
        assert (path, response.status_code, faults(html)) == (path, 200, [])
        assert "<script>alert" not in html


NOT_THERE = [
    "/calls/nope/",
    "/conversations/nope/",
    "/trims/nope/",
    "/plans/nope/",
    "/nope/",
    "/?project=nope",
    # No database holds such ids, and PostgreSQL does not even take the question.
    "/calls/a%00b/",
    "/conversations/a%00b/",
    "/trims/a%00b/",
]


def test_what_is_not_there_gets_a_page_of_ours(owner: Client, filled: str) -> None:
    for path in NOT_THERE:
        response = owner.get(path)

        html = response.content.decode()
        assert (path, response.status_code, faults(html)) == (path, 404, [])
        assert "There is nothing here" in html


# --- time -------------------------------------------------------------------------------------


def test_every_list_has_the_time_control_and_reads_the_same_words(
    owner: Client, filled: str
) -> None:
    for path in ("/calls/", "/conversations/", "/plans/", "/models/", "/trims/"):
        for text in ("25m", "2d", "yesterday", "2026-11-01..2026-11-03", "2026-11-01T09:30Z.."):
            response = owner.get(path, {"range": text})

            html = response.content.decode()
            assert (path, text, response.status_code) == (path, text, 200)
            assert f'name="range" value="{text}"' in html
        wrong = owner.get(path, {"range": "soon"})
        assert wrong.status_code == 400
        assert "write 25m, 24h" in wrong.content.decode()


def test_a_range_is_read_in_the_zone_of_its_reader(owner: Client, filled: str) -> None:
    owner.cookies["helmdash_zone"] = "Asia/Tokyo"
    html = owner.get("/calls/?range=2d").content.decode()
    assert 'title="' in html
    assert " JST" in html
    # A name of no zone, and of a folder of them.
    for name in ("../../etc/passwd", "Asia", "x" * 500):
        owner.cookies["helmdash_zone"] = name
        assert " UTC" in owner.get("/calls/").content.decode()


def test_the_bars_above_calls_are_their_number_and_lead_to_their_time(
    owner: Client, filled: str
) -> None:
    html = owner.get("/calls/?range=2h").content.decode()
    narrowed = owner.get("/calls/?range=2h&level=critical").content.decode()

    bars = re.findall(
        r'data-range="([^"]+Z)" tabindex="[-\d]+" aria-label="[^"]*: (\d+) calls?\b', html
    )
    assert sum(int(count) for _, count in bars) == 8
    inside = [rows_of(owner.get("/calls/", {"range": bar}).content.decode()) for bar, _ in bars]
    assert [len(rows) for rows in inside] == [int(count) for _, count in bars]
    assert "<strong>1</strong> call" in narrowed


def rows_of(html: str) -> list[str]:
    return re.findall(r"data-row", html)
