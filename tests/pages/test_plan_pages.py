"""The pages of plans: the list, one with all it took, trying one, and the way there from a call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from helmdash.pages.parts.plans import parts_of
from helmdash.queries.access.access import ProjectInfo, default_project
from helmdash.records.models import Fit, PlanAttempt, PlanRecord, Project, Upstream
from tests.factories import make_capture, make_project, record
from tests.pages.hygiene import faults
from tests.plan_rows import add_attempt, make_plan
from tests.support.upstreams.scripted import Heard, Said, run_scripted

HTMX = {"HX-Request": "true"}
ANSWER = {
    "steps": [
        {
            "order": 1,
            "tool": "blog.publish",
            "client_tool": "helmdeck__blog-publish",
            "args": {"title": 7},
            "rationale": "Publish it <first>.",
            "arg_errors": [{"field": "title", "message": "7 is not of type string"}],
            "missing_args": ["text", "author.name"],
        },
        {
            "order": 2,
            "tool": "unknown",
            "args": {},
            "rationale": "Fetch the captions.",
            "gap": {
                "reason": "No entry is called that.",
                "asked": "youtube.transcript",
                "suggestions": ["video.fetch"],
            },
        },
        {
            "order": 3,
            "tool": "helmdeck__pipeline-run",
            "args": {"id": "brief-to-blog", "inputs": {}},
            "rationale": "One call.",
        },
    ],
    "rewritten_prompt": "Step 1: call blog.publish",
    "reasoning": "First things first.",
    "notes": ["A step that called the planner itself was left out."],
}
ROUTE = {
    "recommendation": {
        "kind": "pack",
        "id": "content.ground",
        "suggested_inputs": {"text": "notes"},
        "why": "It adds citations.",
        "missing_args": ["sources"],
    },
    "alternatives": [{"kind": "pipeline", "id": "digest", "why": "If it has to be short."}],
    "gap_warning": {
        "missing_capability": "dubbing videos",
        "proposed_pack": {"name": "video.dub"},
        "suggestions": ["video.fetch"],
    },
    "reasoning": "Nothing else checks facts.",
}


@pytest.fixture
def talkative(project: ProjectInfo) -> ProjectInfo:
    """The default project, which keeps texts."""
    Project.objects.filter(pk=project.id).update(payload="full")
    return default_project()


def read(client: Client, path: str) -> str:
    """A page as people read it; it is clean."""
    response = client.get(path)
    html = response.content.decode()
    assert (path, response.status_code, faults(html)) == (path, 200, [])
    main = html.split("<main", 1)[1].split("</main>", 1)[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def linked(client: Client, path: str) -> set[str]:
    """Plans that a page links to."""
    return set(re.findall(r'href="/plans/([^/"?]+)/\?project', client.get(path).content.decode()))


# --- the list ---------------------------------------------------------------------------------


def test_the_list_tells_intent_outcome_steps_and_bytes(
    owner: Client, talkative: ProjectInfo
) -> None:
    make_plan(
        talkative, entries=("blog.publish", ""), before_bytes=30_000, after_bytes=9_000, cause=""
    )

    text = read(owner, "/plans/")

    assert "publish a blog post about the launch" in text
    assert "plan · openai/gpt-4o · full_steps" in text
    assert "Gap" in text
    assert "blog.publish 1 gap" in text
    assert "30,000 to 9,000 bytes 70 % cut" in text
    assert "1.2 s" in text


def test_an_intent_that_is_not_kept_is_told_by_its_hash(
    owner: Client, project: ProjectInfo
) -> None:
    Project.objects.filter(pk=project.id).update(payload="off")
    plan = make_plan(project, intent="a secret", intent_sha="0123456789abcdef")
    PlanRecord.objects.filter(pk=plan.pk).update(intent="")

    for path in ("/plans/", f"/plans/{plan.name}/"):
        text = read(owner, path)
        assert "0123456789abcdef" in text
        assert "text not kept" in text
        assert "a secret" not in text


# filter, the plans that are left
FILTERS = [
    ("", {"one", "two", "three"}),
    ("?model=other/model", {"two"}),
    ("?variant=single_pick", {"two"}),
    ("?outcome=failed", {"three"}),
    ("?kind=route", {"three"}),
    ("?tool=image.generate", {"two"}),
    ("?q=illustration", {"two"}),
    ("?q=thr", {"three"}),
    ("?since=36h", set()),
]


@pytest.mark.parametrize(("query", "left"), FILTERS)
def test_filters_narrow_the_plans(
    owner: Client, talkative: ProjectInfo, query: str, left: set[str]
) -> None:
    make_plan(talkative, "one")
    make_plan(
        talkative,
        "two",
        intent="draw an illustration",
        entries=("image.generate",),
        model="other/model",
        prompt_variant="single_pick",
    )
    make_plan(talkative, "three", kind="route", outcome="failed", entries=())

    assert linked(owner, f"/plans/{query}") == left


def test_each_empty_list_of_plans_says_which_kind_of_empty_it_is(
    owner: Client, project: ProjectInfo
) -> None:
    text = read(owner, "/plans/")

    assert "No plan was made yet" in text
    assert "curl -sS http://testserver/api/v1/plan" in text
    assert "There is no catalog in force" in text
    assert "Nothing matches these filters" in read(owner, "/plans/?q=x")


# path, words of the answer
WRONG = [
    ("/plans/?outcome=good", ("outcome", "partial")),
    ("/plans/?kind=walk", ("kind", "route")),
    ("/plans/?variant=both", ("variant", "single_pick")),
    ("/plans/?since=banana", ("since", "24h")),
    ("/plans/?cursor=zzz", ("cursor", "start at the top")),
    ("/plans/?tool=%00", ("tool", "character")),
]


@pytest.mark.parametrize(("path", "said"), WRONG)
def test_a_filter_of_plans_that_cannot_be_used_is_named_with_its_fix(
    owner: Client, project: ProjectInfo, path: str, said: tuple[str, ...]
) -> None:
    for headers in ({}, HTMX):
        response = owner.get(path, headers=headers)

        html = response.content.decode()
        assert (response.status_code, faults(html)) == (400, [])
        assert [word for word in said if word not in html] == []


def test_older_leads_through_all_plans_without_gap(owner: Client, project: ProjectInfo) -> None:
    for n in range(70):
        make_plan(project, f"more-{n}", days=n / 10)
    path, seen = "/plans/", []

    while path:
        html = owner.get(path).content.decode()
        seen += re.findall(r'href="/plans/(more-\d+)/\?', html)
        older = html.split('rel="next" href="', 1)[1:]
        path = older[0].split('"', 1)[0].replace("&amp;", "&") if older else ""

    assert len(seen) == len(set(seen)) == 70


def test_the_list_of_plans_polls_and_an_unchanged_one_is_a_304(
    owner: Client, project: ProjectInfo
) -> None:
    plan = make_plan(project)

    def poll(etag: str) -> int:
        return owner.get("/plans/", headers={**HTMX, "If-None-Match": etag}).status_code

    etag = owner.get("/plans/", headers=HTMX)["ETag"]
    if poll(etag) != 304:  # the minute has turned
        etag = owner.get("/plans/", headers=HTMX)["ETag"]
        assert poll(etag) == 304
    PlanRecord.objects.filter(pk=plan.pk).update(outcome="failed")
    assert poll(etag) == 200


# --- one plan ---------------------------------------------------------------------------------


def test_a_plan_shows_its_steps_with_what_is_wrong_with_them(
    owner: Client, talkative: ProjectInfo
) -> None:
    make_plan(talkative, result=ANSWER, outcome="gap")

    text = read(owner, "/plans/plan-1/")

    assert "1 blog.publish clients see it as helmdeck__blog-publish Publish it <first>." in text
    assert "title : 7 is not of type string Still to be filled in: text , author.name" in text
    assert "2 Gap the model wrote youtube.transcript No entry is called that." in text
    assert "Nearest entries: video.fetch" in text
    assert "3 brief-to-blog pipeline" in text
    assert "Step 1: call blog.publish" in text
    assert "A step that called the planner itself was left out." in text


def test_a_plan_whose_answer_is_not_kept_shows_its_rows(
    owner: Client, project: ProjectInfo
) -> None:
    Project.objects.filter(pk=project.id).update(payload="off")
    plan = make_plan(project, entries=("blog.publish", ""), result=None)
    plan.steps.update(args=None)
    plan.steps.filter(entry="").update(suggestions=["video.fetch"])

    text = read(owner, "/plans/plan-1/")

    assert "1 blog.publish Its arguments are not kept." in text
    assert "2 Gap the model wrote made.up No entry is called that. Nearest entries: video" in text


def test_a_route_shows_where_it_leads_and_what_the_catalog_lacks(
    owner: Client, talkative: ProjectInfo
) -> None:
    make_plan(talkative, kind="route", entries=("content.ground",), result=ROUTE)

    text = read(owner, "/plans/plan-1/")

    assert "content.ground pack It adds citations." in text
    assert "Still to be filled in: sources" in text
    assert "digest pipeline If it has to be short." in text
    assert "The catalog lacks: dubbing videos" in text
    assert "video.dub" in text


def test_every_call_of_a_plan_is_told_with_its_purpose_and_reason(
    owner: Client, project: ProjectInfo
) -> None:
    plan = make_plan(project)
    add_attempt(plan, 1, purpose="filter", prompt_variant="", cause="length_truncated")
    add_attempt(
        plan,
        2,
        reason="As it was asked.",
        response_format="json_object",
        max_tokens=1_500,
        prompt_bytes=12_000,
        catalog_bytes=9_900,
        latency_ms=94_958,
    )

    text = read(owner, "/plans/plan-1/")

    assert "Call 1 filter picks entries of the catalog" in text
    assert "length_truncated" in text
    assert "Call 2 plan makes the plan As it was asked. openai/gpt-4o full_steps · json" in text
    assert "12,000 9,900 1,500 stop 1 min 35 s" in text
    assert 'href="/calls/plan-1-2/?project=default"' in owner.get("/plans/plan-1/").content.decode()


def test_the_catalog_the_model_saw_stands_beside_what_was_cut(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    html = owner.get("/plans/plan-1/").content.decode()
    shown, cut = html.split("<h3>Shown: ", 1)[1].split("<h3>Cut: ", 1)

    assert "write-blog" in shown
    assert "Rank" in shown and "Score" in shown  # noqa: PT018
    assert f'href="/trims/{filled}/?project=default"' in html
    assert cut.split(" ", 1)[0].isdigit()


def test_a_failed_plan_says_why_and_what_to_do(owner: Client, project: ProjectInfo) -> None:
    make_plan(
        project,
        entries=(),
        outcome="failed",
        cause="reasoning_exhausted",
        cause_rule="length.reasoning",
        cause_advice="raise_output",
        cause_detail="All 1,500 tokens went into thinking.",
    )

    text = read(owner, "/plans/plan-1/")

    assert "Reasoning used up the output limit reasoning_exhausted by rule length.reasoning" in text
    assert "All 1,500 tokens went into thinking." in text
    assert "Advice: allow more output tokens raise_output" in text
    assert "Was it followed?" not in text


def test_a_plan_that_broke_off_says_so(owner: Client, project: ProjectInfo) -> None:
    make_plan(project, entries=(), outcome="failed", cause_detail="HelmDash was stopped.")

    assert "There is no plan. HelmDash was stopped." in read(owner, "/plans/plan-1/")


def test_plans_of_one_piece_of_work_and_similar_ones_are_linked(
    owner: Client, project: ProjectInfo
) -> None:
    make_plan(project, "first", days=2, prompt_variant="single_pick", more_steps_likely=True)
    make_plan(project, "second", days=1, continues="first", entries=("image.generate",))
    make_plan(project, "alike", days=3, intent="publish a post about our prices on the blog")

    html = owner.get("/plans/first/").content.decode()
    chain = html.split('id="chain"', 1)[1].split("</section>", 1)[0]
    similar = html.split('id="similar"', 1)[1].split("</section>", 1)[0]

    assert "this plan" in chain
    assert "/plans/second/" in chain
    assert "/plans/alike/" not in chain
    assert "/plans/alike/" in similar
    assert "/try/plan/?continues=first" in html


def test_a_running_plan_polls_until_it_is_over(owner: Client, project: ProjectInfo) -> None:
    plan = make_plan(project, entries=(), outcome="running", progress=40, started_at=timezone.now())
    etag = owner.get("/plans/plan-1/", headers=HTMX)["ETag"]

    def poll() -> Any:
        return owner.get("/plans/plan-1/", headers={**HTMX, "If-None-Match": etag})

    if poll().status_code != 304:  # the minute has turned
        etag = owner.get("/plans/plan-1/", headers=HTMX)["ETag"]
        assert poll().status_code == 304
    assert "data-etag" in owner.get("/plans/plan-1/").content.decode()

    PlanRecord.objects.filter(pk=plan.pk).update(progress=60)
    going_on = poll()
    assert (going_on.status_code, "60 %" in going_on.content.decode()) == (200, True)

    PlanRecord.objects.filter(pk=plan.pk).update(outcome="ok", progress=100)
    over = poll().content.decode()
    assert "data-etag" not in over
    assert "Under way" not in over


def test_a_plan_that_runs_no_more_does_not_poll(owner: Client, project: ProjectInfo) -> None:
    make_plan(project, entries=(), outcome="running", days=1)

    html = owner.get("/plans/plan-1/").content.decode()

    assert "It was never finished" in html
    # The frame of the page has live parts of its own.
    assert "hx-get" not in html.partition('id="live"')[2].partition(">")[0]


def test_whether_a_plan_was_followed_can_be_said_and_changed(
    owner: Client, editor: Client, project: ProjectInfo
) -> None:
    plan = make_plan(project)

    for client, said, meant in ((owner, "yes", True), (editor, "no", False)):
        response = client.post("/plans/plan-1/followed/", {"followed": said}, follow=True)

        plan.refresh_from_db()
        assert plan.followed is meant
        assert "Noted" in response.content.decode()

    owner.post("/plans/plan-1/followed/", {"followed": "perhaps"})
    plan.refresh_from_db()
    assert plan.followed is False
    assert owner.post("/plans/nope/followed/", {"followed": "yes"}).status_code == 404
    assert owner.get("/plans/plan-1/followed/").status_code == 405


def test_what_is_said_of_a_plan_needs_a_token(project: ProjectInfo) -> None:
    make_plan(project)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_user("reader"))

    assert strict.post("/plans/plan-1/followed/", {"followed": "yes"}).status_code == 403


def test_a_plan_of_another_project_is_found_there(owner: Client, project: ProjectInfo) -> None:
    make_plan(make_project(slug="other"), "there")

    assert owner.get("/plans/there/")["Location"] == "/plans/there/?project=other"
    assert owner.get("/plans/nowhere/").status_code == 404
    assert owner.get("/plans/a%00b/").status_code == 404


def test_texts_of_callers_and_models_are_shown_as_text(
    owner: Client, talkative: ProjectInfo
) -> None:
    evil = '"><script>alert(1)</script>{{ 7 }}'
    answer = {"steps": [{"tool": evil, "args": {evil: evil}, "rationale": evil}]}
    plan = make_plan(
        talkative, intent=evil, entries=(evil,), model=evil, caller=evil, result=answer
    )
    add_attempt(plan, reason=evil, call_name=evil)

    for path in ("/plans/", "/plans/plan-1/"):
        assert "<script>alert" not in owner.get(path).content.decode()
        assert evil in read(owner, path)


# Answers that no version of ours writes: nothing of them breaks the page.
ODD: list[object] = [
    None,
    [],
    "text",
    {"steps": "x"},
    {"steps": [7, {}]},
    {"recommendation": 1, "gap_warning": 2},
]


@pytest.mark.parametrize("result", ODD, ids=str)
def test_an_answer_of_any_form_is_taken_apart(result: object) -> None:
    parts = parts_of(result, ())

    assert parts.recommendation is None
    assert [step.tool for step in parts.steps] in ([], [""])


def test_the_plan_pages_ask_the_same_number_of_questions_however_much_there_is(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    def asked() -> dict[str, int]:
        found = {}
        for path in ("/plans/", "/plans/plan-1/"):
            with CaptureQueriesContext(connection) as queries:
                owner.get(path)
            found[path] = len(queries)
        return found

    make_plan(project, "two", continues="plan-1")
    # The first page of a session notes down that there is one.
    owner.get("/help/")
    few = asked()
    for n in range(30):
        make_plan(project, f"more-{n}", continues="plan-1", entries=("a.b", "c.d"))

    assert asked() == few


# --- from a call, and trying one --------------------------------------------------------------


def test_a_call_leads_to_the_plan_it_was_made_for(owner: Client, project: ProjectInfo) -> None:
    make_plan(project, "plan_1")
    record(
        make_capture(id="ours", correlation_id="plan_1"),
        make_capture(id="theirs", correlation_id="plan_of_theirs"),
        project=project,
    )

    assert linked(owner, "/calls/ours/") == {"plan_1"}
    assert linked(owner, "/calls/theirs/") == set()


def script(heard: Heard) -> Said:
    """Models that plan and route at once; the one called mute says nothing."""
    if "mute" in heard.model:
        return Said(content="")
    if "router" in heard.model:
        chosen = {"kind": "pack", "id": "tool.2", "why": "It serves."}
        return Said(content=json.dumps({"recommendation": chosen, "reasoning": "One is enough."}))
    return Said(content='{"steps": [{"tool": "tool.1", "args": {}, "rationale": "It does."}]}')


@pytest.fixture
def model(project: ProjectInfo) -> Iterator[str]:
    """A model that answers; "sim/mute" does not."""
    with run_scripted(script) as scripted:
        Upstream.objects.create(
            name="sim", kind="openai", base_url=scripted.base_url, allow_private=True
        )
        yield "sim/gpt-4o"


def test_trying_a_plan_makes_one_and_leads_to_its_page(
    editor: Client, filled: str, model: str
) -> None:
    asked = {"intent": "write a blog post", "model": model, "prompt_variant": "full_steps"}
    response = editor.post("/try/plan/", asked)

    assert response.status_code == 303
    text = read(editor, response["Location"])
    assert "page:editor" in text
    assert "1 tool.1" in text
    assert "Shown:" in text
    plan = PlanRecord.objects.latest("id")
    assert (plan.kind, plan.prompt_variant, plan.outcome) == ("plan", "full_steps", "ok")
    assert PlanAttempt.objects.get(plan=plan).cause == ""


def test_trying_a_route_with_htmx_leads_the_whole_page_there(
    owner: Client, filled: str, model: str
) -> None:
    response = owner.post(
        "/try/route/", {"intent": "write a blog post", "model": "sim/router"}, headers=HTMX
    )

    plan = PlanRecord.objects.latest("id")
    assert (response.status_code, response["HX-Redirect"]) == (204, f"/plans/{plan.name}/")
    assert (plan.kind, plan.outcome) == ("route", "ok")
    assert "Recommendation 1 tool.2" in read(owner, f"/plans/{plan.name}/")


def test_a_try_that_fails_leads_to_the_page_that_says_why(
    owner: Client, filled: str, model: str
) -> None:
    response = owner.post("/try/plan/", {"intent": "write a blog post", "model": "sim/mute"})

    assert response.status_code == 303
    text = read(owner, response["Location"])
    assert "empty_completion" in text
    assert "Advice:" in text


# what is posted, the field it concerns, a word of the fix
FAULTS = [
    ({"intent": " "}, "Intent", "in the words of a user"),
    ({"model": ""}, "Model", "HELMDASH_DEFAULT_MODEL"),
    ({"model": "nobody/has-it"}, "Model", "No upstream serves"),
    ({"model": "x" * 256}, "Model", "255"),
    ({"catalog": "{"}, "Catalog", "is not JSON: line 1"),
    ({"catalog": '{"packs": [{}]}'}, "Catalog", "packs.0.name"),
    ({"context": "[]"}, "Context", "must be an object"),
    ({"max_tokens": "0"}, "Output, tokens at most", "give 1 or more"),
    ({"max_tokens": "many"}, "Output, tokens at most", "whole number"),
    ({"prompt_variant": "both"}, "Prompt variant", "single_pick"),
    ({"continues": "nope"}, "The plan to go on with", "there is no plan"),
    # no address of a plan, and something else is wrong as well
    ({"continues": "../nope", "intent": ""}, "The plan to go on with", "there is no plan"),
]


@pytest.mark.one_database
@pytest.mark.parametrize(("posted", "field", "said"), FAULTS)
def test_what_is_wrong_with_a_try_is_said_at_its_field(
    owner: Client, filled: str, model: str, posted: dict[str, str], field: str, said: str
) -> None:
    asked = {"intent": "write a blog post", "model": model, **posted}
    for headers in ({}, HTMX):
        response = owner.post("/try/plan/", asked, headers=headers)

        html = response.content.decode()
        assert (response.status_code, faults(html)) == (422, [])
        assert said in unescape(html.split(f"{field}: ", 1)[1].split("</p>", 1)[0])
    assert PlanRecord.objects.count() == 1  # the one that was there


def test_the_form_says_what_is_missing_and_offers_an_example(
    owner: Client, project: ProjectInfo
) -> None:
    for kind in ("plan", "route"):
        text = read(owner, f"/try/{kind}/")
        assert "No upstream can be called yet" in text
        assert "none in this project" in text
        html = owner.get(f"/try/{kind}/").content.decode()
        example = re.search(r'href="(/try/\w+/\?intent=[^"]+)"', html)
        assert example is not None
        assert owner.get(example[1]).status_code == 200
    assert "generate an illustration" in read(owner, example_of(owner, "plan"))


def example_of(client: Client, kind: str) -> str:
    """The link that fills the form in."""
    html = client.get(f"/try/{kind}/").content.decode()
    return (
        unescape(html.split("?intent=", 1)[0].rsplit('"', 1)[1])
        + "?intent="
        + unescape(html.split("?intent=", 1)[1].split('"', 1)[0])
    )


def test_a_plan_fills_the_form_to_do_it_again_or_to_go_on(
    owner: Client, talkative: ProjectInfo
) -> None:
    make_plan(talkative, prompt_variant="single_pick", model="sim/one")

    again = owner.get("/try/plan/?like=plan-1").content.decode()
    go_on = owner.get("/try/plan/?continues=plan-1").content.decode()

    assert "publish a blog post about the launch</textarea>" in again
    assert 'value="sim/one"' in again
    assert "Goes on with the plan" not in again
    assert "Goes on with the plan" in go_on
    assert '<input type="hidden" name="continues" value="plan-1"' in go_on
    assert owner.get("/try/plan/?like=nope").status_code == 200


# --- what an outside look at the pages found missing ------------------------------------------

FLAGS = ["metadata.typical_use", "lexical.low_confidence", "llm_filter(picks=4,kept=3)"]


def flagged(fit: str, *dropped: str, **over: object) -> None:
    """Let a stored fit tell what its filter pass did."""
    row = Fit.objects.get(name=fit)
    row.trim = row.trim | {"dropped": list(dropped)} | over
    row.save()


def test_what_the_filter_pass_did_is_told_in_words_wherever_a_trim_is(
    owner: Client, filled: str
) -> None:
    flagged(filled, *FLAGS)

    for path in ("/plans/plan-1/", f"/trims/{filled}/", "/trims/"):
        text = read(owner, path)
        assert "The ranking was in doubt lexical.low_confidence" in text, path
        assert "The filter picked 4, 3 of them shown llm_filter(picks=4,kept=3)" in text, path


def test_the_part_of_a_score_that_past_plans_gave_stands_beside_it(
    owner: Client, filled: str
) -> None:
    entry = {"id": "a.b", "kind": "pack", "rank": 1, "score": 4.5}
    none = entry | {"id": "c.d", "rank": 2, "history": 0.0}
    flagged(filled, kept=[entry | {"history": 1.87}, none], removed=[entry | {"id": "old"}])

    for path in ("/plans/plan-1/", f"/trims/{filled}/"):
        text = read(owner, path)
        assert "1 a.b pack 4.500 past 1.870" in text
        assert text.count("past 1.870") == 1
        assert "past 0" not in text


def test_asking_again_carries_what_is_known_and_says_what_is_not(
    owner: Client, talkative: ProjectInfo
) -> None:
    make_plan(talkative, prompt_variant="single_pick", catalog_name="tools")
    make_plan(talkative, "route", kind="route", prompt_variant="full_steps")

    plan, route = read(owner, "/plans/plan-1/"), read(owner, "/plans/route/")
    form = owner.get("/try/plan/?like=plan-1").content.decode()

    assert '"prompt_variant": "single_pick"' in plan
    assert '"catalog_name": "tools"' in plan
    assert "A context or limits that may have come with it are not kept" in plan
    assert "current catalog" not in plan
    assert "prompt_variant" not in route
    assert "nor is its catalog, which came with the request: this takes the project" in route
    assert '<option value="single_pick" selected>' in form
    assert 'name="catalog_name" value="tools"' in form
    assert "A context or limits that may have come with it are not kept" in form


def test_a_try_takes_a_catalog_by_its_name(owner: Client, filled: str, model: str) -> None:
    asked = {"intent": "write a blog post", "model": model, "catalog_name": "tools"}

    assert owner.post("/try/plan/", asked).status_code == 303
    assert PlanRecord.objects.latest("id").catalog_name == "tools"
    refused = owner.post("/try/plan/", asked | {"catalog_name": "nope"})
    assert refused.status_code == 422
    assert "Catalog by name: there is no catalog called nope" in unescape(refused.content.decode())


def test_a_route_says_nothing_of_prompt_variants(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    plan = make_plan(
        project, "way", kind="route", prompt_variant="single_pick", more_steps_likely=True
    )
    add_attempt(plan, purpose="route", call_name="talk-0")

    for path in ("/plans/way/", "/try/route/", "/plans/?kind=route"):
        text = read(owner, path).rsplit("More filters", 1)[-1]
        assert re.findall("variant|single_pick|next step|plan the next", text) == [], path


def test_a_route_that_is_tried_has_no_variant_whatever_is_posted(
    owner: Client, filled: str, model: str
) -> None:
    asked = {"intent": "write a blog", "model": "sim/router", "prompt_variant": "both"}

    assert owner.post("/try/route/", asked).status_code == 303


def test_a_plan_of_nothing_but_a_gap_is_not_told_as_empty(
    owner: Client, project: ProjectInfo
) -> None:
    make_plan(project, "first", days=2)
    make_plan(project, "second", days=1, continues="first", entries=("",))
    make_plan(project, "alike", days=3, intent="publish a post about our launch", entries=("",))

    html = owner.get("/plans/first/").content.decode()
    chain = html.split('id="chain"', 1)[1].split("</section>", 1)[0]
    similar = html.split('id="similar"', 1)[1].split("</section>", 1)[0]

    assert ("1 gap" in chain, "no step" in chain) == (True, False)
    assert ("1 gap" in similar, "nothing" in similar) == (True, False)


def test_without_texts_the_form_says_that_the_intent_has_to_be_typed_again(
    owner: Client, project: ProjectInfo
) -> None:
    Project.objects.filter(pk=project.id).update(payload="off")
    make_plan(default_project())

    for link in ("like", "continues"):
        text = read(owner, f"/try/plan/?{link}=plan-1")
        assert "This project keeps no texts: type the intent again" in text


def test_a_partial_plan_says_so_once(owner: Client, talkative: ProjectInfo) -> None:
    note = "The reply was cut off; the steps that were written to their end are kept."
    result = ANSWER | {"partial": True, "notes": [note]}
    make_plan(talkative, result=result, outcome="partial")
    make_plan(talkative, "silent", result=result | {"notes": []}, outcome="partial")

    assert read(owner, "/plans/plan-1/").count("cut off") == 1
    assert read(owner, "/plans/silent/").count("cut off") == 1


def test_plans_of_one_text_are_one_row_with_their_number(
    owner: Client, project: ProjectInfo
) -> None:
    make_plan(project, "first", intent="publish a post about our launch")
    for days in (2, 3, 4):
        make_plan(project, f"same-{days}", days=days)

    html = owner.get("/plans/first/").content.decode()
    similar = html.split('id="similar"', 1)[1].split("</section>", 1)[0]

    assert re.findall(r'href="/plans/([^/]+)/\?', similar) == ["same-2"]
    assert "3 plans" in similar


def test_filters_by_whole_ids_say_so(owner: Client, project: ProjectInfo) -> None:
    html = owner.get("/plans/").content.decode()

    for name in ("model", "tool"):
        field = re.search(rf'<input[^>]*name="{name}"[^>]*>', html)
        assert field is not None
        assert 'placeholder="whole id"' in field[0]


def test_all_that_is_wrong_with_a_try_is_said_at_once(
    owner: Client, filled: str, model: str
) -> None:
    pack = {"name": "a.b"}
    asked = {
        "intent": "",
        "max_tokens": "many",
        "model": model,
        "catalog": json.dumps({"packs": [pack, pack]}),
    }

    html = unescape(owner.post("/try/plan/", asked).content.decode())

    assert "Intent: say what is to be done" in html
    assert "Output, tokens at most: write a whole number" in html
    assert "Catalog: packs.1" in html


def test_json_is_offered_without_a_word_about_keys(owner: Client, filled: str) -> None:
    for path in ("/plans/plan-1/", "/calls/talk-0/"):
        html = owner.get(path).content.decode()
        assert re.search(r'href="/api/v1/[^>]*>JSON</a>', html), path


def test_a_call_of_a_project_without_texts_says_that_they_are_not_kept(
    owner: Client, filled: str, project: ProjectInfo
) -> None:
    Project.objects.filter(pk=project.id).update(payload="off")

    text = read(owner, "/calls/talk-0/")

    assert "not kept by this project" in text
    assert "No texts came with this call" not in text
