"""Two of a kind beside each other, each pair at an address of its own."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import SentSizes
from helmdash.core.calls.composition import Composition
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, Fit, PlanCatalog, Project
from tests.factories import make_capture, make_project, record
from tests.pages.hygiene import faults
from tests.plan_rows import add_attempt, make_plan


def text_of(html: str) -> str:
    """The page as people read it, blanks made one."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html.split("<main")[1])).split())


@pytest.fixture
def talk(project: ProjectInfo) -> ProjectInfo:
    """Two calls of a conversation, with their texts."""
    Project.objects.filter(pk=project.id).update(payload="full")
    kept = make_project()
    asked = {"role": "user", "content": "Count the red apples in the basket."}
    record(
        make_capture(
            id="first",
            messages=({"role": "system", "content": "Be brief."}, asked),
            content="There are three.",
            composition=Composition(system=9, user=35),
            sent=SentSizes(bytes=44, messages=2),
            latency_ms=800,
        ),
        make_capture(
            id="second",
            messages=(
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Count the green apples in the basket."},
                {"role": "assistant", "content": "There are three."},
            ),
            content="There are four.",
            usage={"prompt_tokens": 21_500, "completion_tokens": 150},
            latency_ms=1_900,
        ),
        project=kept,
    )
    return kept


def test_a_call_is_compared_with_the_one_before(viewer: Client, talk: ProjectInfo) -> None:
    pair = viewer.get("/compare/calls/", {"b": "second"})["Location"]
    html = viewer.get(pair).content.decode()

    assert pair == "/compare/calls/?a=first&b=second&project=default"
    assert faults(html) == []
    said = text_of(html)
    assert "Prompt, tokens 20,000 21,500 +1,500" in said
    assert "Latency 800 ms 1.9 s +1.1 s" in said
    assert "Purpose chat chat" in said
    assert "1 message the same" in said
    assert "Count the <del>red </del><ins>green </ins>apples in the basket." in html
    assert "<ins>There are three.</ins>" in html
    assert "There are <del>three.</del><ins>four.</ins>" in html


def test_a_call_before_that_retention_has_taken_is_none(viewer: Client, talk: ProjectInfo) -> None:
    # Its name goes later.
    Call.objects.filter(name="first").delete()

    page = viewer.get("/compare/calls/", {"b": "second"})

    assert page.status_code == 200
    assert "First: no call goes before second" in page.content.decode()


def test_any_two_calls_are_compared_and_swapped(viewer: Client, talk: ProjectInfo) -> None:
    html = viewer.get("/compare/calls/", {"a": "second", "b": "first"}).content.decode()

    assert "Prompt, tokens 21,500 20,000 -1,500" in text_of(html).replace("\u2212", "-")
    assert 'href="/compare/calls/?a=first&amp;b=second&amp;project=default"' in html


def test_calls_without_texts_are_compared_by_their_figures(viewer: Client, filled: str) -> None:
    html = viewer.get("/compare/calls/", {"a": "talk-0", "b": "talk-1"}).content.decode()

    assert faults(html) == []
    assert "Texts are not kept by this project" in html
    assert "Prompt, tokens 20,000 60,000 +40,000" in text_of(html)


@pytest.mark.parametrize(
    ("path", "query", "status", "said"),
    [
        ("calls", {}, 200, "First call, its id"),
        ("calls", {}, 200, "No two calls are chosen yet."),
        ("plans", {}, 200, "No two plans are chosen yet."),
        ("calls", {"b": "talk-0"}, 200, "First: no call goes before talk-0"),
        ("calls", {"b": "nobody"}, 404, "Second: there is no call nobody in this project"),
        ("calls", {"a": "nul\x00", "b": "talk-0"}, 404, "First: there is no call"),
        ("plans", {"a": "plan-1"}, 200, "Second plan, its id"),
        ("plans", {"a": "plan-1", "b": "no-plan"}, 404, "Second: there is no plan no-plan"),
        ("trims/none", {}, 404, "There is no fit none"),
    ],
)
def test_what_cannot_be_compared_says_why(
    viewer: Client, filled: str, path: str, query: dict[str, str], status: int, said: str
) -> None:
    page = viewer.get(f"/compare/{path}/", query)

    assert page.status_code == status
    assert said in text_of(page.content.decode())


def test_plans_stand_side_by_side_step_by_step(viewer: Client, project: ProjectInfo) -> None:
    make_plan(project, "first", entries=("blog.write", "blog.publish"))
    make_plan(project, "second", entries=("blog.write", "", "blog.publish"), latency_ms=2_000)

    html = viewer.get("/compare/plans/", {"a": "first", "b": "second"}).content.decode()

    assert faults(html) == []
    said = text_of(html)
    assert "both ask for the same" in said
    assert "Outcome ok gap differs" in said
    assert "Latency 1.2 s 2.0 s +800 ms" in said
    rows = re.findall(r"<tr[^>]*><td>(.*?)</td><td>(.*?)</td></tr>", html, re.DOTALL)
    assert ["blog.write" in side for side in rows[0]] == [True, True]
    assert ["no step" in rows[1][0], "gap" in rows[1][1]] == [True, True]
    assert ["blog.publish" in side for side in rows[2]] == [True, True]


def test_the_words_that_a_trim_took_are_struck_through(
    viewer: Client, project: ProjectInfo
) -> None:
    keywords = [f"keyword{n}" for n in range(20)]
    packs = [
        {
            "name": f"tool.{n}",
            "description": f"Does {n}.",
            "metadata": {"intent_keywords": keywords},
        }
        for n in range(50)
    ]
    now = timezone.now()
    body = {"packs": packs, "pipelines": []}
    import_catalog(actor=SHELL, project_id=project.id, name="large", body=body, now=now)
    fit = fit_catalog(
        actor=SHELL,
        project=project,
        model="some/free-model:free",
        intent="write a post",
        catalog=None,
        catalog_name="large",
        context=None,
        defaults=None,
        history=(),
        caller="owner",
        now=now,
    )

    html = viewer.get(f"/compare/trims/{fit.fit_id}/").content.decode()

    assert faults(html) == []
    assert "it comes out with the same bytes" in html
    # Keywords went, names and descriptions did not.
    name, words = re.findall(r'aria-label="Words of (tool[^"]*)">(.*?)</pre>', html, re.DOTALL)[0]
    gone = " ".join(re.findall(r"<del>(.*?)</del>", words, re.DOTALL))
    assert "keyword7" in gone
    assert name not in gone


def test_words_are_those_that_a_plans_model_was_shown(
    viewer: Client, project: ProjectInfo, filled: str
) -> None:
    fit = Fit.objects.get(name=filled)
    plan = make_plan(project, "of-it", started_at=fit.created_at)
    shown = {"packs": [{"name": "tool.1", "description": "Does it."}], "pipelines": []}
    PlanCatalog.objects.create(
        project_id=project.id,
        digest="d" * 64,
        body=str(shown).replace("'", '"'),
        latest_used_at=fit.created_at,
    )
    add_attempt(plan, fit_name=filled, catalog_digest="d" * 64)

    html = viewer.get(f"/compare/trims/{filled}/").content.decode()

    assert "The words are those that a plan&#x27;s model was shown." in html.replace("'", "&#x27;")
    assert "<ins>it.&quot;" in html


def test_without_its_catalog_a_trim_tells_names(viewer: Client, filled: str) -> None:
    fit = Fit.objects.get(name=filled)
    fit.catalog_name = ""
    fit.trim["removed"] = [{"id": "tool.9", "kind": "pack", "rank": 40, "score": 0.0}]
    fit.save()

    html = viewer.get(f"/compare/trims/{filled}/").content.decode()

    assert faults(html) == []
    assert "The catalog is not kept: it was sent with the request" in html
    assert '<del class="id" title="tool.9">' in html
    assert (
        f'href="/compare/trims/{filled}/?project=default"'
        in viewer.get("/calls/cut/").content.decode()
    )
