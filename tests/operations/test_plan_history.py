"""Plan history as it is read: the list, one plan, like plans, and the past the ranking hears of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.answers import to_json
from helmdash.core.access.permissions import SHELL
from helmdash.operations.planning.feedback import NoSuchPlan, note_followed
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.access.project_lookup import find_project_of
from helmdash.queries.lists.paging import BadCursor
from helmdash.queries.plans import history
from helmdash.queries.plans.detail import STALLED
from helmdash.records.models import Fit, PlanCatalog, PlanRecord
from tests.factories import NOW, make_capture
from tests.plan_rows import add_attempt, make_plan
from tests.recording.support import make_ruled_project, record


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """Keeps texts."""
    return make_ruled_project(payload="full")


def ids(project: ProjectInfo, **filters: object) -> list[str]:
    found = plans.page(project_id=project.id, now=NOW, **filters)  # type: ignore[arg-type]
    return [item.id for item in found.items]


def queries_of(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as ran:
        act()
    return len(ran)


# --- the list


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        # everything, newest first
        ({}, ["late", "route", "gap", "broken", "first"]),
        # by model
        ({"model": "acme/tiny"}, ["gap"]),
        # by prompt variant
        ({"variant": "single_pick"}, ["gap"]),
        # by outcome
        ({"outcome": "gap"}, ["gap"]),
        ({"outcome": "ok"}, ["route", "first"]),
        # a plan whose server is gone is a failed one
        ({"outcome": "failed"}, ["broken"]),
        ({"outcome": "running"}, ["late"]),
        # by kind
        ({"kind": "route"}, ["route"]),
        # by a tool that some step uses, wherever it stands
        ({"tool": "image.generate"}, ["first"]),
        # by caller
        ({"caller": "stranger"}, ["route"]),
        # a part of the intent, in any letters
        ({"q": "LAUNCH"}, ["first"]),
        # the beginning of an id
        ({"q": "bro"}, ["broken"]),
        # not the middle of one
        ({"q": "roke"}, []),
        # signs of LIKE are letters
        ({"q": "%"}, []),
        # a time range, closed and open
        ({"since": NOW - timedelta(days=3), "until": NOW - timedelta(days=2)}, ["gap"]),
        # several at once
        ({"kind": "plan", "outcome": "ok", "caller": "owner"}, ["first"]),
    ],
)
def test_plans_are_narrowed_by_each_filter(
    project: ProjectInfo, filters: dict[str, object], expected: list[str]
) -> None:
    make_plan(project, "first", intent="launch the post", entries=("a.b", "image.generate"), days=5)
    make_plan(project, "broken", intent="one", entries=(), outcome="running", days=4)
    make_plan(
        project,
        "gap",
        intent="two",
        entries=("",),
        model="acme/tiny",
        prompt_variant="single_pick",
        days=3,
    )
    make_plan(project, "route", intent="three", kind="route", caller="stranger", days=2)
    make_plan(project, "late", intent="four", entries=(), outcome="running", days=1 / 1440)
    make_plan(make_ruled_project(slug="other"), "theirs")

    assert ids(project, **filters) == expected


def test_an_item_tells_its_tools_in_order_and_unknown_is_none(project: ProjectInfo) -> None:
    make_plan(project, entries=("z.last", "", "a.first"), caller="", complexity="", latency_ms=None)

    (item,) = plans.page(project_id=project.id, now=NOW).items

    assert (item.tools, item.steps, item.gaps) == (("z.last", "a.first"), 3, 1)
    assert (item.caller, item.complexity, item.latency_ms, item.cause) == (None, None, None, None)
    assert (item.before_bytes, item.more_steps_likely, item.followed) == (None, None, None)


def test_pages_follow_each_other_without_gap_or_double(project: ProjectInfo) -> None:
    for number in range(5):
        # Two of them started at the same moment.
        make_plan(project, f"plan-{number}", days=number // 2)
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = plans.page(project_id=project.id, now=NOW, cursor=cursor, limit=2)
        seen += [item.id for item in page.items]
        cursor = page.next

    assert seen == ["plan-1", "plan-0", "plan-3", "plan-2", "plan-4"]
    assert cursor is None
    with pytest.raises(BadCursor):
        plans.page(project_id=project.id, now=NOW, cursor="nonsense")


@pytest.mark.parametrize(
    "q",
    ["äpfel", "ÄPFEL", "köln 100%", "KÖLN 100%_\\(X)", "привет", "ΣΟΦΊΑ", "apfel", "köln_", "k.ln"],
)
def test_an_intent_is_found_in_any_letters_of_any_alphabet(project: ProjectInfo, q: str) -> None:
    """SQLite folds the case of ASCII alone; signs of LIKE and of patterns are letters."""
    make_plan(project, "plan", intent="Prüfe ÄPFEL in Köln 100%_\\(x), ПРИВЕТ σοφία")
    make_plan(project, "other", intent="Something else")

    found = [] if q in ("apfel", "köln_", "k.ln") else ["plan"]
    assert ids(project, q=q) == found


def test_a_list_takes_two_queries_however_much_there_is(project: ProjectInfo) -> None:
    for number in range(30):
        make_plan(project, f"plan-{number}", entries=("a.b", "c.d"))

    def look() -> None:
        plans.page(project_id=project.id, now=NOW, q="launch", tool="a.b", outcome="ok")

    assert queries_of(look) == 2


# --- whether a plan was followed


@pytest.mark.parametrize(
    ("call", "said", "followed"),
    [
        # a pack of the plan was called for it
        ({"pack": "blog.publish"}, None, True),
        # by a pack the plan does not have
        ({"pack": "image.generate"}, None, None),
        # the calls that made the plan
        ({"pack": "blog.publish", "purpose": "plan"}, None, None),
        ({"pack": "blog.publish", "purpose": "filter"}, None, None),
        # a call of no pack
        ({}, None, None),
        # of another plan
        ({"pack": "blog.publish", "correlation_id": "plan-10"}, None, None),
        # what was said counts before what is seen
        ({"pack": "blog.publish"}, False, False),
        ({"pack": "image.generate"}, True, True),
    ],
)
def test_a_plan_is_followed_when_said_or_shown(
    project: ProjectInfo, call: dict[str, str], said: bool | None, followed: bool | None
) -> None:
    make_plan(project)
    record(project, make_capture(**{"correlation_id": "plan-1", **call}))
    if said is not None:
        note_followed(actor=SHELL, project=project, plan_id="plan-1", followed=said)

    (item,) = plans.page(project_id=project.id, now=NOW).items

    assert item.followed is followed


def test_a_gap_is_no_pack_that_a_call_could_name(project: ProjectInfo) -> None:
    make_plan(project, entries=("",))
    record(project, make_capture(correlation_id="plan-1", pack=None))

    assert plans.page(project_id=project.id, now=NOW).items[0].followed is None


def test_a_call_of_another_project_shows_nothing(project: ProjectInfo) -> None:
    make_plan(project)
    other = make_ruled_project(slug="other")
    record(other, make_capture(correlation_id="plan-1", pack="blog.publish"))

    assert plans.page(project_id=project.id, now=NOW).items[0].followed is None


def test_feedback_needs_a_plan_of_the_project(project: ProjectInfo) -> None:
    make_plan(make_ruled_project(slug="other"))

    with pytest.raises(NoSuchPlan, match="plan-1"):
        note_followed(actor=SHELL, project=project, plan_id="plan-1", followed=True)


def test_following_is_looked_up_in_the_index_of_stories(project: ProjectInfo) -> None:
    make_plan(project)
    with CaptureQueriesContext(connection) as ran:
        plans.page(project_id=project.id, now=NOW)
    if connection.vendor == "postgresql":
        return  # with a handful of rows its planner reads the table, and is right
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {ran[0]['sql']}")
        told = " ".join(str(row[-1]) for row in cursor.fetchall())
    assert "call_name_by_correlation" in told
    assert "plan_by_time" in told
    assert "TEMP B-TREE" not in told


# --- one plan


def test_one_plan_is_told_with_all_that_belongs_to_it(project: ProjectInfo) -> None:
    plan = make_plan(
        project,
        entries=("blog.publish", ""),
        fit_name="fit_1",
        result={"plan_id": "plan-1"},
        cause="length_truncated",
        cause_rule="length.no_text",
        cause_advice="single_pick",
        cause_detail="The reply was cut off.",
    )
    PlanCatalog.objects.create(
        project_id=project.id, digest="d1", body='{"packs":[]}', latest_used_at=NOW
    )
    PlanCatalog.objects.create(
        project_id=project.id, digest="d2", body='{"packs":[1]}', latest_used_at=NOW
    )
    Fit.objects.create(
        project_id=project.id,
        name="fit_1",
        model=plan.model,
        intent_sha="0" * 64,
        catalog_digest="0" * 64,
        before_bytes=9,
        after_bytes=5,
        fits=True,
        trim={"dropped": ["tags"]},
        budget={"tier": "C"},
        created_at=NOW,
    )
    add_attempt(plan, 1, purpose="filter", catalog_digest="")
    add_attempt(plan, 2, catalog_digest="d1", cause="length_truncated", finish_reason="length")
    add_attempt(plan, 3, catalog_digest="d2", reason="With more room for the answer.")
    add_attempt(plan, 4, purpose="filter", catalog_digest="d1")

    found = plans.find(project_id=project.id, plan_id="plan-1", now=NOW)

    assert found is not None
    assert [(step.position, step.entry, step.gap) for step in found.steps] == [
        (1, "blog.publish", None),
        (2, None, "No entry is called that."),
    ]
    assert found.steps[0].args == {"topic": "launch"}
    assert [(each.number, each.purpose) for each in found.attempts] == [
        (1, "filter"),
        (2, "plan"),
        (3, "plan"),
        (4, "filter"),
    ]
    assert found.attempts[2].reason == "With more room for the answer."
    assert found.catalog == '{"packs":[1]}'
    assert (found.trim, found.budget) == ({"dropped": ["tags"]}, {"tier": "C"})
    assert found.result == {"plan_id": "plan-1"}
    assert found.cause is not None
    assert found.problem == found.cause.detail == "The reply was cut off."


def test_a_plan_without_a_cause_still_says_what_went_wrong(project: ProjectInfo) -> None:
    make_plan(project, entries=(), outcome="failed", cause_detail="No upstream serves acme/tiny.")

    found = plans.find(project_id=project.id, plan_id="plan-1", now=NOW)

    assert found is not None
    assert (found.cause, found.problem) == (None, "No upstream serves acme/tiny.")


@pytest.mark.parametrize(
    ("minutes", "outcome", "problem"),
    [
        # a slow model
        (14, "running", None),
        # on the line it still runs
        (15, "running", None),
        # nobody works on it any more
        (15.1, "failed", STALLED),
    ],
)
def test_a_plan_that_runs_for_too_long_reads_as_failed(
    project: ProjectInfo, minutes: float, outcome: str, problem: str | None
) -> None:
    make_plan(project, entries=(), outcome="running", progress=40, days=minutes / 1440)

    found = plans.find(project_id=project.id, plan_id="plan-1", now=NOW)

    assert found is not None
    assert (found.item.outcome, found.problem, found.progress) == (outcome, problem, 40)


def test_a_chain_shows_its_plans_from_every_link(project: ProjectInfo) -> None:
    make_plan(project, "one", days=4, entries=("a.b",))
    make_plan(project, "two", days=3, entries=("c.d",), continues="one")
    make_plan(project, "three", days=2, entries=("e.f",), continues="two")
    make_plan(project, "apart", days=1)

    for name in ("one", "two", "three"):
        found = plans.find(project_id=project.id, plan_id=name, now=NOW)
        assert found is not None
        assert [(link.id, link.tools) for link in found.chain] == [
            ("one", ("a.b",)),
            ("two", ("c.d",)),
            ("three", ("e.f",)),
        ]
    apart = plans.find(project_id=project.id, plan_id="apart", now=NOW)
    assert apart is not None
    assert apart.chain == ()


def test_a_chain_that_bites_its_tail_ends(project: ProjectInfo) -> None:
    make_plan(project, "one", days=2, continues="two")
    make_plan(project, "two", days=1, continues="one")

    found = plans.find(project_id=project.id, plan_id="one", now=NOW)

    assert found is not None
    assert [link.id for link in found.chain] == ["one", "two"]


def test_one_plan_takes_at_most_six_queries(project: ProjectInfo) -> None:
    chain = [
        make_plan(
            project,
            f"plan-{number}",
            entries=("a.b", "c.d"),
            continues=f"plan-{number - 1}",
            fit_name="fit_1",
        )
        for number in range(12)
    ]
    for number in range(1, 6):
        add_attempt(chain[-1], number, catalog_digest="d1")

    assert queries_of(lambda: plans.find(project_id=project.id, plan_id="plan-11", now=NOW)) == 6


def test_an_unknown_plan_is_none_and_its_project_is_told(project: ProjectInfo) -> None:
    other = make_ruled_project(slug="other")
    make_plan(other)

    assert plans.find(project_id=project.id, plan_id="plan-1", now=NOW) is None
    found = find_project_of(kind="plan", name="plan-1", besides=project.id, among=None)
    hidden = find_project_of(kind="plan", name="plan-1", besides=project.id, among={project.id})
    assert (found, hidden) == ("other", None)


# --- like plans


@pytest.mark.parametrize("payload", ["full", "off"])
def test_like_plans_are_found_with_and_without_texts(db: None, payload: str) -> None:
    project = make_ruled_project(payload=payload)
    make_plan(project, "same", intent="publish a blog post about the launch", days=3)
    make_plan(project, "near", intent="publish the blog post about prices", days=2)
    make_plan(project, "far", intent="scrape the weather every hour", days=1)
    make_plan(project, "this", intent="publish a blog post about the launch", days=0)

    found = plans.similar(project_id=project.id, plan_id="this", now=NOW)

    assert [each.id for each in found] == ["same", "near"]
    assert found[0].nearness == 1.0
    assert 0 < found[1].nearness < 1
    assert found[0].tools == ("blog.publish",)
    assert (found[0].intent is None) is (payload == "off")


def test_like_plans_are_few_and_take_four_queries(project: ProjectInfo) -> None:
    for number in range(12):
        make_plan(project, f"plan-{number}", intent=f"publish a blog post about launch{number}")

    found = plans.similar(project_id=project.id, plan_id="plan-3", now=NOW, limit=4)

    assert len(found) == 4
    assert "plan-3" not in {each.id for each in found}

    def look() -> None:
        plans.similar(project_id=project.id, plan_id="plan-3", now=NOW)

    assert queries_of(look) == 4


@pytest.mark.parametrize("name", ["wordless", "missing"])
def test_a_plan_without_words_is_like_none(project: ProjectInfo, name: str) -> None:
    make_plan(project, "other")
    make_plan(project, "wordless", intent="!!!", sketch=[])

    assert plans.similar(project_id=project.id, plan_id=name, now=NOW) == ()


# --- the past that the ranking hears of


def test_the_past_is_what_was_picked_oldest_first(project: ProjectInfo) -> None:
    make_plan(project, "new", entries=("a.b", "helmdeck.plan"), days=1)
    make_plan(project, "old", entries=("c.d",), days=10, kind="route", followed=True)

    past = history.past_plans(project_id=project.id, now=NOW)

    assert [(plan.tools, plan.age_days, plan.weight) for plan in past] == [
        (("c.d",), 10.0, 1.0),
        (("a.b",), 1.0, 0.5),
    ]
    assert all(plan.intent == "" and plan.sketch for plan in past)


def test_what_was_not_followed_or_picked_nothing_is_no_past(project: ProjectInfo) -> None:
    make_plan(project, "refused", followed=False)
    make_plan(project, "failed", outcome="failed", entries=())
    make_plan(project, "running", outcome="running", entries=())
    make_plan(project, "partial", outcome="partial")
    make_plan(project, "a-gap", entries=("a.b", ""))
    make_plan(project, "only-gaps", entries=("", ""))
    make_plan(project, "only-itself", entries=("helmdeck.route",))
    make_plan(make_ruled_project(slug="other"), "theirs")

    assert history.past_plans(project_id=project.id, now=NOW) == ()


def test_a_plan_with_a_gap_counts_once_it_was_followed(project: ProjectInfo) -> None:
    make_plan(project, entries=("a.b", ""), followed=True)

    assert [plan.tools for plan in history.past_plans(project_id=project.id, now=NOW)] == [("a.b",)]


def test_a_plan_whose_pack_was_called_for_it_counts_in_full(project: ProjectInfo) -> None:
    make_plan(project)
    record(project, make_capture(correlation_id="plan-1", pack="blog.publish"))

    (past,) = history.past_plans(project_id=project.id, now=NOW)

    assert past.weight == 1.0


def test_the_past_is_the_newest_plans_in_two_queries(project: ProjectInfo) -> None:
    for number in range(12):
        make_plan(project, f"plan-{number}", entries=(f"tool.{number}",), days=number)

    past = history.past_plans(project_id=project.id, now=NOW, limit=3)

    assert [plan.tools for plan in past] == [("tool.2",), ("tool.1",), ("tool.0",)]
    assert queries_of(lambda: history.past_plans(project_id=project.id, now=NOW)) == 2


def test_a_clock_that_went_back_makes_no_plan_younger_than_now(project: ProjectInfo) -> None:
    make_plan(project, days=-1)

    (past,) = history.past_plans(project_id=project.id, now=NOW)

    assert past.age_days == 0.0


# --- a caller's own groups


def test_groups_of_plans_are_told_with_their_tools_and_models(project: ProjectInfo) -> None:
    # With a pipeline and a second model.
    make_plan(project, "a", intent="abc", entries=("helmdeck.memory_store", "blog.rewrite"), days=3)
    make_plan(
        project,
        "b",
        intent="abc",
        entries=("helmdeck.memory_store", "image.generate", ""),
        days=2,
        model="acme/tiny",
        complexity="single-action",
    )
    lone = make_plan(project, "x", intent="xyz", entries=("p",), pipelines=("p",), days=1)

    mine = plans.my_plans(project_id=project.id, caller="owner", now=NOW)

    first, second = mine.groups
    assert to_json(mine) == {
        "scope": "caller=owner",
        "fetched_at": "2026-06-05T14:41:03Z",
        "groups": [
            {
                "intent_sha": first.intent_sha,
                "count": 2,
                # Of two as frequent the first by the alphabet.
                "complexity": "pack-chain",
                "top_tools": ["helmdeck.memory_store", "blog.rewrite", "image.generate"],
                "last_unix": int((NOW - timedelta(days=2)).timestamp()),
                "models": ["acme/tiny", "openai/gpt-4o"],
            },
            {
                "intent_sha": lone.intent_sha,
                "count": 1,
                "complexity": "pack-chain",
                "top_tools": ["p"],
                "last_unix": int((NOW - timedelta(days=1)).timestamp()),
                "models": ["openai/gpt-4o"],
            },
        ],
    }
    assert second.intent_sha == lone.intent_sha


def test_groups_as_frequent_come_by_their_newest_then_by_name(project: ProjectInfo) -> None:
    make_plan(project, "1", intent_sha="b" * 16, days=2)
    make_plan(project, "2", intent_sha="c" * 16, days=1)
    make_plan(project, "3", intent_sha="a" * 16, days=2)
    make_plan(project, "4", intent_sha="d" * 16, days=5)
    make_plan(project, "5", intent_sha="d" * 16, days=6)

    mine = plans.my_plans(project_id=project.id, caller="owner", now=NOW)

    assert "".join(group.intent_sha[0] for group in mine.groups) == "dcab"


def test_only_ones_own_answered_plans_of_thirty_days_are_grouped(project: ProjectInfo) -> None:
    make_plan(project, "theirs", caller="stranger")
    make_plan(project, "a route", kind="route")
    make_plan(project, "failed", outcome="failed", entries=())
    make_plan(project, "running", outcome="running", entries=())
    make_plan(project, "old", days=30.1)
    make_plan(make_ruled_project(slug="other"), "elsewhere")

    mine = plans.my_plans(project_id=project.id, caller="owner", now=NOW)

    assert mine.groups == ()
    told = to_json(mine)
    assert told["groups"] == []
    assert told["note"] == mine.note
    assert mine.note


def test_groups_tools_and_models_are_capped(project: ProjectInfo) -> None:
    entries = [f"tool.{n}" for n in range(7)]
    for number in range(27):
        make_plan(project, f"p{number}", intent_sha=f"{number:016x}", entries=entries)
    for number in range(4):
        make_plan(project, f"q{number}", intent_sha="f" * 16, model=f"m{number}")

    mine = plans.my_plans(project_id=project.id, caller="owner", now=NOW)

    assert len(mine.groups) == 25
    assert mine.groups[0].models == ("m0", "m1", "m2")
    assert mine.groups[1].top_tools == tuple(entries[:5])


def test_groups_take_two_queries(project: ProjectInfo) -> None:
    for number in range(9):
        make_plan(project, f"p{number}", entries=("a.b", "c.d"))

    def look() -> None:
        plans.my_plans(project_id=project.id, caller="owner", now=NOW)

    assert queries_of(look) == 2
    assert PlanRecord.objects.count() == 9
