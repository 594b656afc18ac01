"""The page of models: rates with n and interval; the rows of helmdeck ADR 053 for what they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.calls.capture import SentSizes
from helmdash.core.rollups.figures import Marginal
from helmdash.operations.rollups.folding import fold_all
from helmdash.pages.parts.words import ends, seconds
from helmdash.pages.templatetags import formats
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import forget_cache
from helmdash.queries.models import MOST_MODELS, MOST_OF_MODEL, Rate
from helmdash.records.models import Budget, Project, Rollup, RollupState
from tests.factories import make_capture, record
from tests.pages.hygiene import faults
from tests.plan_rows import make_plan

MODEL = "openrouter/nvidia/nemotron-3-super-120b-a12b:free"
# helmdeck ADR 053's table, oldest first: end, latency in ms, finish reason, output tokens, answer
# in bytes.
ADR_053 = [
    ("14:36:59", 34_139, "length", 600, 2_549),
    ("14:38:34", 94_958, "stop", 1_547, 685),
    ("14:38:49", 14_776, "stop", 423, 71),
    ("14:39:17", 28_854, "stop", 710, 791),
    ("14:39:33", 15_184, "length", 600, 2_627),
    ("14:41:03", 90_199, "stop", 1_535, 743),
]


@pytest.fixture
def nemotron(project: ProjectInfo) -> str:
    """The six calls as three groups of a filter pass and its plan. Gives the model's id."""
    for row, (end, latency, finish, tokens, size) in enumerate(ADR_053):
        ended = datetime.fromisoformat(f"2026-06-05T{end}").replace(tzinfo=UTC)
        story = f"plan_{row // 2}"
        record(
            make_capture(
                id=f"row-{row}",
                conversation=None,
                model=MODEL,
                purpose="plan" if row % 2 else "filter",
                prompt_variant="full_steps" if row % 2 else None,
                correlation_id=story,
                started_at=ended - timedelta(milliseconds=latency),
                latency_ms=latency,
                finish_reason=finish,
                raw_content_len=size,
                usage={"prompt_tokens": 3_000, "completion_tokens": tokens},
                sent=SentSizes(bytes=12_000, messages=2),
            ),
            project=project,
        )
    make_plan(project, "plan_0")
    return MODEL


def read(client: Client, path: str) -> tuple[str, str]:
    """A page's own part as markup, and as people read it; it is clean."""
    response = client.get(path)
    html = response.content.decode()
    assert (path, response.status_code, faults(html)) == (path, 200, [])
    main = html.split("<main", 1)[1].split("</main>", 1)[0]
    return main, " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def test_filter_passes_and_plans_are_counted_apart(owner: Client, nemotron: str) -> None:
    _, text = read(owner, "/models/")

    assert f"{MODEL} plan full_steps 100 % · 3 of 3 44 % to 100 %" in text
    assert f"{MODEL} filter 33 % · 1 of 3 6.1 % to 79 % 67 % 2 of 3" in text


def test_the_latest_calls_are_the_rows_of_the_adr_as_three_stories(
    owner: Client, nemotron: str
) -> None:
    html, text = read(owner, "/models/")

    assert text.count("2 related calls") == 3
    assert "2 related calls, 2 min 9 s in all: plan_0" in text
    # The group that is a plan of ours leads to it, the others to their calls.
    assert 'href="/plans/plan_0/?project=default"' in html
    assert 'href="/calls/?q=plan_1&amp;project=default"' in html
    latest = text.split("Latest calls of", 1)[1]
    assert "filter length 600 2,549 34.1 s Truncated length_truncated row-0" in latest
    assert "plan full_steps stop 1,547 685 95.0 s" not in latest
    assert "plan full_steps stop 1,547 685 1 min 35 s Clean row-1" in latest
    assert latest.index("row-4") < latest.index("row-5") < latest.index("row-2")


def test_rates_say_sizes_finish_reasons_and_how_good_the_estimate_was(
    owner: Client, nemotron: str
) -> None:
    _, text = read(owner, "/models/?purpose=filter")

    assert "length 2 of 3" in text
    assert "stop 1 of 3" in text
    assert "4 to 16 KB 33 % · 1 of 3" in text
    assert re.search(r"\d\.\d\d n 3", text)


def test_rates_and_the_ends_of_intervals_are_rounded(owner: Client, nemotron: str) -> None:
    _, text = read(owner, "/models/?purpose=filter")

    assert "67 % 2 of 3" in text
    assert "6.1 % to 79 %" in text


def test_tokens_and_fullness_are_told_by_model_and_tokens_in_all(
    owner: Client, project: ProjectInfo
) -> None:
    """A model that is far too large for what it is sent is said so, of 20 calls and more."""
    for model, calls, tokens in (("openai/gpt-4o", 20, 12_000), ("openai/gpt-4", 19, 300)):
        for number in range(calls):
            usage = {"prompt_tokens": tokens, "completion_tokens": 50}
            record(
                make_capture(id=f"{model}-{number}", conversation=None, model=model, usage=usage),
                project=project,
            )

    _, text = read(owner, "/models/")

    figures = text.split("Tokens, cost and fullness", 1)[1].split("How fast", 1)[0]
    assert "All 245,700 1,950" in figures
    assert "240,000 1,000" in figures
    # Of 128,000 and 6,000 tokens.
    assert "9.3 % 9.3 % a tenth of the limit would do" in figures
    assert "5 % 5 % a tenth" not in figures


def test_the_story_of_the_adr_is_told_only_in_the_demo(
    owner: Client, project: ProjectInfo, nemotron: str
) -> None:
    said = "Filter passes and plans are counted apart: a filter pass is a short call before its"

    _, text = read(owner, "/models/")
    assert said in text
    assert "helmdeck ADR" not in text
    Project.objects.filter(pk=project.id).update(is_demo=True)
    _, text = read(owner, "/models/")
    assert "helmdeck ADR 053" in text


def test_routes_are_not_told_apart_by_variant(owner: Client, project: ProjectInfo) -> None:
    for variant in ("full_steps", "single_pick", None):
        call = make_capture(
            model="a", purpose="route", prompt_variant=variant, content="{}", decoded=True
        )
        record(call, project=project)

    _, text = read(owner, "/models/")

    assert "3 of 3" in text
    assert "full_steps" not in text


def test_an_outcome_is_not_said_twice(owner: Client, project: ProjectInfo) -> None:
    call = make_capture(model="a", purpose="plan", content="I would search first.")
    record(call, project=project)

    _, text = read(owner, "/models/")

    assert "Undecodable undecodable" not in text


# filter, words that are there, words that are not
NARROWED = [
    (f"?model={MODEL}", [MODEL, "3 of 3"], ["openai/gpt-4o"]),
    ("?purpose=filter", ["1 of 3"], ["3 of 3"]),
    ("?purpose=invented", ["No call matches these filters"], [MODEL]),
    ("?model=nobody", ["No call matches these filters"], [MODEL]),
    ("?until=2026-06-05T14:38:45Z", ["1 of 1", "1 of 2"], ["3 of 3"]),
]


@pytest.mark.parametrize(("query", "there", "not_there"), NARROWED)
def test_filters_narrow_the_rates(
    owner: Client,
    project: ProjectInfo,
    nemotron: str,
    query: str,
    there: list[str],
    not_there: list[str],
) -> None:
    record(make_capture(id="other"), project=project)

    _, text = read(owner, f"/models/{query}")

    assert [words for words in there if words not in text] == []
    assert [words for words in not_there if words in text] == []


def test_what_failed_leads_to_its_calls(owner: Client, project: ProjectInfo) -> None:
    for number, said in enumerate(('{"steps": []}', "I would search first.", '{"steps": []}')):
        call = make_capture(id=f"c{number}", model="a", purpose="plan", content=said)
        record(call, project=project)

    html = owner.get("/models/").content.decode()
    links = re.findall(r'data-name="Undecodable"><a class="failures" href="([^"]+)"', html)

    assert len(links) == 1
    listed = owner.get(unescape(links[0])).content.decode()
    assert [f'href="/calls/c{n}/' in listed for n in range(3)] == [False, True, False]


def test_without_a_call_there_is_a_word_about_it(owner: Client, project: ProjectInfo) -> None:
    assert "Nothing received yet" in read(owner, "/models/")[1]
    assert "No call matches these filters" in read(owner, "/models/?since=1h")[1]


def test_the_rows_of_a_model_stand_together(owner: Client, project: ProjectInfo) -> None:
    for model, purpose, count in (("a", "chat", 3), ("b", "chat", 4), ("a", "plan", 2)):
        record(*(make_capture(model=model, purpose=purpose) for _ in range(count)), project=project)

    html, _ = read(owner, "/models/")

    assert re.findall(r'data-row href="[^"]*" title="(.)"', html) == ["a", "a", "b"]


def test_of_models_beyond_number_those_with_most_calls_are_shown(
    owner: Client, project: ProjectInfo
) -> None:
    """A key that reports calls names their models: 20,000 made a page of 56 MB in 37 s."""
    named = [f"made/up-{number:03}" for number in range(MOST_MODELS + 5)]
    record(*(make_capture(model=name) for name in [*named, *named[3:]]), project=project)

    html, text = read(owner, "/models/")
    rare, _ = read(owner, f"/models/?model={named[0]}")

    assert set(re.findall(r'title="(made/up-[0-9]+)"', html)) == set(named[3:-2])
    assert "The 200 models with most calls are shown, of 205." in text
    assert set(re.findall(r'title="(made/up-[0-9]+)"', rare)) == {named[0]}


def test_each_number_of_a_row_leads_to_as_many_calls(owner: Client, project: ProjectInfo) -> None:
    """A row is a model's calls of one purpose and variant: links without the variant led to those
    of all, and links to suspected cuts to those of every purpose and time."""
    lately, long_ago = timezone.now() - timedelta(hours=1), timezone.now() - timedelta(days=30)
    cut = {"usage": {"prompt_tokens": 2_050}, "sent": SentSizes(bytes=90_000)}
    ends: list[dict[str, Any]] = [
        {},
        {"usage": None, "raw_content_len": 0, "finish_reason": None},
        {"usage": None, "http_status": 500},
        cut,
    ]
    for purpose in ("chat", "plan", "route", "title"):
        for variant in ("full_steps", "single_pick", None, None):
            given = {"model": "ollama/llama3.1:8b", "purpose": purpose, "prompt_variant": variant}
            made = [make_capture(started_at=lately, **given, **told) for told in ends]
            record(*made, project=project)
    record(make_capture(model="ollama/llama3.1:8b", started_at=long_ago, **cut), project=project)

    html, _ = read(owner, "/models/?range=24h")

    links = re.findall(r'<a class="failures" href="([^"]+)">.*?([0-9]+) of [0-9]+<', html)
    cuts = re.findall(r'<a class="sub is-caution" href="([^"]+)">([0-9]+) suspected', html)
    assert min(len(links), len(cuts)) > 5
    for address, number in links + cuts:
        listed = owner.get(unescape(address).replace("/calls/?", "/export/calls.csv?"))
        rows = listed.getvalue().decode().strip().splitlines()
        assert (address, len(rows) - 1) == (address, int(number))


def test_of_prompt_variants_beyond_number_those_with_most_calls_are_shown(
    owner: Client, project: ProjectInfo
) -> None:
    named = [f"variant-{number:02}" for number in range(MOST_OF_MODEL + 3)]
    made = [make_capture(purpose="plan", prompt_variant=name) for name in [*named, *named[2:]]]
    record(*made, project=project)

    html, text = read(owner, "/models/")

    rates = html.split('id="latest"')[0]
    shown = re.findall(r'<strong>plan</strong><span class="sub">([^<]*)</span>', rates)
    assert set(named[2:-1]) == set(shown)
    assert "Of each model the 20 rows with most calls are shown: 3 are left out." in text


def test_a_rate_of_nothing_is_a_dash() -> None:
    nothing = Rate(count=0, n=0, share=None, low=None, high=None)

    assert "no call was counted" in formats.rate(nothing)
    assert "no call was counted" in formats.interval(nothing)


def test_an_interval_is_drawn_where_it_lies() -> None:
    drawn = formats.interval(Rate(count=1, n=2, share=0.5, low=0.1, high=0.9))

    assert '<rect class="bar-range" x="10.0" width="80.0" height="6"/>' in drawn
    assert '<rect class="bar-mark" x="50.0"' in drawn


# ms, as people read it
SPANS = [
    (None, "–"),
    (0, "0 ms"),
    (999, "999 ms"),
    (1_000, "1.0 s"),
    (59_949, "59.9 s"),
    (59_950, "1 min 0 s"),
    (123_400, "2 min 3 s"),
    (3_599_400, "59 min 59 s"),
    (3_599_500, "1 h 0 min"),
    (15_000_000, "4 h 10 min"),
    (86_370_000, "1 d 0 h"),
    (900_000_000, "10 d 10 h"),
]


@pytest.mark.parametrize(("ms", "said"), SPANS)
def test_a_duration_is_told_in_the_unit_people_use(ms: int | None, said: str) -> None:
    assert seconds(ms) == said


def test_of_a_long_text_both_ends_are_shown() -> None:
    text = "First the paste. " + "And more of it. " * 50 + "Then remember this."

    assert ends("short", 40) == "short"
    assert ends(text, 60).startswith("First the paste.")
    assert ends(text, 60).endswith("Then remember this.")
    assert len(ends(text, 60)) <= 60


@pytest.mark.parametrize("model", ["acme/m", "nemo"])
def test_models_that_are_spelt_alike_are_told_apart(
    owner: Client, project: ProjectInfo, model: str
) -> None:
    """Two upstreams serve a model by one name, and some reports do not say who answered: three
    rows, each by another name, and each number leads to just its calls."""
    asked = {"up1": 3, "up2": 2, None: 1}
    for provider, calls in asked.items():
        for turn in range(calls):
            over = {} if turn else {"http_status": 500, "content": None, "finish_reason": None}
            sizes = SentSizes(bytes=9_000)
            record(
                make_capture(conversation=None, model=model, provider=provider, sent=sizes, **over),
                project=project,
            )

    page = owner.get("/models/").text

    keys = [f"up1/{model}", f"up2/{model}", model]
    for part in (r'<table class="heat">.*?</table>', r'<table class="rows[^>]*rates">.*?</table>'):
        (table,) = re.findall(part, page, re.S)
        names = re.findall(r'<th scope="row"><(?:a|span) class="id"[^>]*>([^<]+)<', table)
        assert sorted(names) == sorted(keys)
        links = re.findall(r'href="(/calls/[^"]+)"[^>]*>(?:<b>)?.*?(?:n |of )(\d+)', table, re.S)
        assert len(links) == {"heat": 6, "rows": 3}[part[len('<table class="') :][:4]]
        for address, calls in links:
            found = owner.get(unescape(address)).text
            is_failed = "cause" in address
            assert found.count("data-row") == (1 if is_failed else int(calls)), address


def test_who_used_the_models_is_told_by_client(owner: Client, project: ProjectInfo) -> None:
    """Cost by the prices of today, a dash where no model of the client has one; each leads to its
    calls, also those of nobody who is named."""
    Budget.objects.filter(key="openai/gpt-4o").update(
        input_cost_usd_per_mtok=2, output_cost_usd_per_mtok=8
    )
    forget_cache()
    for client, model, tokens in (
        ("claude-code", "openai/gpt-4o", 500_000),
        ("claude-code", "made/up", 2_000),
        ("a&b", "made/up", 700),
        (None, "made/up", 30),
    ):
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        call = make_capture(id=f"{client}-{model}", client_name=client, model=model, usage=usage)
        record(call, project=project)

    html, text = read(owner, "/models/")

    part = text.split("Which clients used them", 1)[1].split("How fast", 1)[0]
    assert "claude-code openai/gpt-4o , made/up 2 100 % 502,000 2" in part
    assert "1.00 n 1" in part
    assert "a&b made/up 1 100 % 700 1 – not reported – no price in its budget" in part
    section = html.split('id="clients"', 1)[1].split("</details>", 1)[0]
    links = [unescape(each) for each in re.findall(r'data-row href="([^"]+)"', section)]
    listed = [owner.get(each, follow=True).content.decode() for each in links]
    ids = ["claude-code-openai", "claude-code-made", "a&amp;b-made", "None-made"]
    assert [[each in page for each in ids] for page in listed] == [
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]
    # Of a model, and of one that is asked for with a purpose, of which clients are not told apart.
    assert "2,000" in read(owner, "/models/?model=made/up")[1]
    assert "of every purpose" in read(owner, "/models/?purpose=chat")[1]


def test_models_of_a_client_that_are_spelt_alike_lead_to_their_own_calls(
    owner: Client, project: ProjectInfo
) -> None:
    for client in ("pack", None):
        for provider in ("up1", "up2"):
            call = make_capture(
                id=f"{client}-{provider}", client_name=client, model="nemo", provider=provider
            )
            record(call, project=project)

    html, _ = read(owner, "/models/")

    section = html.split('id="clients"', 1)[1].split("</section>", 1)[0]
    links = re.findall(r'<a class="id" href="([^"]+)">(up.)/nemo</a>', section)
    assert [up for _, up in links] == ["up1", "up2"] * 2
    for (address, up), client in zip(links, [None] * 2 + ["pack"] * 2, strict=True):
        page = owner.get(unescape(address), follow=True).text
        assert re.findall(r"(?:pack|None)-up\d", page.split("<tbody", 1)[1])[0] == f"{client}-{up}"
        assert page.count("data-row") == 1


def test_calls_that_are_not_counted_by_client_are_said_to_be_missing(
    owner: Client, project: ProjectInfo
) -> None:
    """Retention had deleted them before an update began to count by client."""
    for number in range(3):
        record(make_capture(id=f"c{number}"), project=project)
    fold_all()
    Rollup.objects.filter(marginal=Marginal.SPENDING.value).delete()
    record(make_capture(id="new"), project=project)

    _, text = read(owner, "/models/")
    assert "3 older calls are not among these: they were deleted" in text
    RollupState.objects.update_or_create(project_id=project.id, defaults={"version": 5})
    assert "still being counted by client" in read(owner, "/models/")[1]
