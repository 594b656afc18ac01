"""Plans and routes with a model by hand: what is tried, told, recorded and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from helmdash.operations.planning import Ask, AskProblem, PlanFailed, begin_plan, make_plan
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import (
    Budget,
    Call,
    Fit,
    PlanAttempt,
    PlanCatalog,
    PlanRecord,
    PlanStep,
    Project,
)
from tests.factories import NOW, make_project
from tests.planning.telling import CATALOG, Replies, steps, tell

TIER_C = "openrouter/openrouter/free"


def keeping(payload: str) -> ProjectInfo:
    """A project with the shipped budgets that keeps texts so far."""
    project = make_project()
    Project.objects.filter(pk=project.id).update(payload=payload)
    return replace(project, payload=payload)


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return keeping("full")


def test_a_chain_of_three_is_numbered_checked_and_kept(project: ProjectInfo) -> None:
    replies = Replies([steps("web.scrape", "image.generate", "blog.publish")])

    made = tell(project, replies)

    body: Any = made.body
    assert [step["tool"] for step in body["steps"]] == [
        "web.scrape",
        "image.generate",
        "blog.publish",
    ]
    assert [step["order"] for step in body["steps"]] == [1, 2, 3]
    assert body["complexity"] == "pack-chain"
    assert body["prompt_variant_used"] == "full_steps"
    assert "more_steps_likely" not in body
    assert "compaction" not in body
    row = PlanRecord.objects.get(name=made.plan_id)
    assert (row.outcome, row.step_count, row.gap_count, row.progress) == ("ok", 3, 0, 100)
    assert list(PlanStep.objects.order_by("position").values_list("entry", flat=True)) == [
        "web.scrape",
        "image.generate",
        "blog.publish",
    ]
    call = Call.objects.get(correlation_id=made.plan_id)
    assert (call.purpose, call.pack, call.caller) == ("plan", "helmdeck.plan", "owner")
    assert call.fit_name == Fit.objects.get().name == PlanAttempt.objects.get().fit_name
    assert PlanCatalog.objects.get().digest == PlanAttempt.objects.get().catalog_digest


def test_the_prompt_holds_the_catalog_as_it_was_counted(project: ProjectInfo) -> None:
    replies = Replies([steps("web.scrape")])

    tell(project, replies)

    sent = replies.sent[0]
    assert PlanCatalog.objects.get().body in sent.system  # gpt-4o caches prefixes
    assert sent.caches_system is True
    assert sent.json_mode is True
    attempt = PlanAttempt.objects.get()
    assert attempt.prompt_bytes == len(sent.system.encode()) + len(sent.user.encode())


def test_the_system_prompt_is_the_same_for_every_intent(project: ProjectInfo) -> None:
    replies = Replies([steps("web.scrape")])

    tell(project, replies)
    tell(project, replies, user_intent="Draw a cat", context={"style": "ink"})

    assert replies.sent[0].system == replies.sent[1].system
    assert replies.sent[0].user != replies.sent[1].user


RECOVERIES: list[tuple[str, dict[str, Any], str]] = [
    # the output was cut off before a step was complete: ask for one step only
    ("openai/gpt-4o", {"content": '{"steps": [{"ord', "finish_reason": "length"}, "single_pick"),
    # broken in JSON mode: without it
    ("openai/gpt-4o", {"content": "{steps: [}"}, "full_steps"),
    # nothing came: a smaller catalog
    (TIER_C, {"content": "", "finish_reason": None}, "single_pick"),
]


@pytest.mark.parametrize(("model", "first", "variant"), RECOVERIES)
def test_a_cause_leads_to_another_try(
    project: ProjectInfo, model: str, first: dict[str, Any], variant: str
) -> None:
    catalog = {
        "packs": CATALOG["packs"]
        + [{"name": f"noise.{n}", "description": "Makes noise. " * 20} for n in range(60)]
    }
    replies = Replies([first, steps("web.scrape", more_steps_likely=True)])

    body: Any = tell(project, replies, model=model, catalog=catalog).body

    assert body["prompt_variant_used"] == variant
    assert [each["number"] for each in body["attempts"]] == [1, 2]
    assert body["attempts"][0]["cause"]["name"]
    assert body["attempts"][1]["cause"] is None
    assert body["attempts"][1]["reason"] != body["attempts"][0]["reason"]
    assert replies.sent[0] != replies.sent[1]


def test_nothing_is_tried_more_than_three_times(project: ProjectInfo) -> None:
    replies = Replies([{"content": "I would rather talk about the weather."}])

    with pytest.raises(PlanFailed) as failed:
        tell(project, replies)

    assert failed.value.cause.name.value == "undecodable"
    assert len(replies.sent) == len(failed.value.attempts) <= 3
    row = PlanRecord.objects.get(name=failed.value.plan_id)
    assert (row.outcome, row.cause) == ("failed", "undecodable")
    assert Call.objects.filter(correlation_id=row.name).count() == len(replies.sent)


@pytest.mark.parametrize(
    "empty", ["{}", "null", "[]", '{"steps": []}', '{"colour": "red"}', '{"steps": null}']
)
def test_an_empty_plan_is_never_a_success(project: ProjectInfo, empty: str) -> None:
    with pytest.raises(PlanFailed) as failed:
        tell(project, Replies([empty]))

    assert failed.value.cause.name.value in ("empty_plan", "undecodable")
    assert PlanRecord.objects.get().outcome == "failed"


def test_what_is_safe_to_say_stays_with_the_caller(project: ProjectInfo) -> None:
    with pytest.raises(PlanFailed) as failed:
        tell(project, Replies([{"content": "", "finish_reason": "content_filter"}]))

    assert failed.value.cause.name.value == "safety_filtered"
    assert failed.value.cause.advice.value == "surface"
    assert len(failed.value.attempts) == 1


def test_a_cut_plan_keeps_its_complete_steps(project: ProjectInfo) -> None:
    whole = steps("web.scrape", "blog.publish")
    cut = whole[: whole.index('"order": 2') + 20]

    body: Any = tell(project, Replies([{"content": cut, "finish_reason": "length"}])).body

    assert body["partial"] is True
    assert [step["tool"] for step in body["steps"]] == ["web.scrape"]
    assert PlanRecord.objects.get().outcome == "partial"


def test_hallucinations_and_self_calls_become_gaps(project: ProjectInfo) -> None:
    body: Any = tell(
        project, Replies([steps("web.scrape", "blog.publisher", "helmdeck__plan", "")])
    ).body

    assert [step["tool"] for step in body["steps"]] == ["web.scrape", *["unknown"] * 3]
    assert "blog.publish" in body["steps"][1]["gap"]["suggestions"]
    assert body["gap_warning"]["steps"] == [2, 3, 4]
    assert body["gap_warning"]["missing_capability"] == "blog.publisher; It is needed here."
    assert PlanRecord.objects.get().outcome == "gap"


def test_a_pipeline_is_called_by_its_runner_whatever_the_model_wrote(project: ProjectInfo) -> None:
    body: Any = tell(project, Replies([steps("builtin.scrape-blog")])).body

    step = body["steps"][0]
    assert (step["tool"], step["args"]["id"]) == ("helmdeck__pipeline-run", "builtin.scrape-blog")
    assert body["complexity"] == "pipeline-direct"
    stored = PlanStep.objects.get()
    assert (stored.entry, stored.is_pipeline) == ("builtin.scrape-blog", True)


def test_arguments_are_held_against_the_pack_schema(project: ProjectInfo) -> None:
    reply = json.dumps({"steps": [{"tool": "web.scrape", "args": {"url": 7, "limit": "many"}}]})

    body: Any = tell(project, Replies([reply])).body

    assert {fault["field"] for fault in body["steps"][0]["arg_errors"]} == {
        "args.url",
        "args.limit",
    }


def test_the_chain_of_a_named_plan_does_not_repeat_itself(project: ProjectInfo) -> None:
    one = Replies([steps("web.scrape", more_steps_likely=True)])
    first = tell(project, one, model=TIER_C)

    with pytest.raises(PlanFailed) as failed:
        tell(project, one, model=TIER_C, continues=first.plan_id)

    assert failed.value.cause.rule == "plan.repeats_itself"
    assert "web.scrape" in one.sent[-1].user  # the model was told what was done


# What agents send along on their way, turn by turn.
GROWING_CONTEXTS: list[Callable[[int], dict[str, Any]]] = [
    lambda turn: {"notes": "It came back empty. " * turn},
    lambda turn: {f"step{each}_output": "empty" for each in range(turn)},
    lambda turn: {"steps_done": [{"tool": "web.scrape", "args": {}}] * turn},
    lambda turn: {"completed": ["web.scrape"] * turn},
]


@pytest.mark.parametrize("context", GROWING_CONTEXTS)
def test_an_agent_on_its_way_gets_out_of_a_loop(
    project: ProjectInfo, context: Callable[[int], dict[str, Any]]
) -> None:
    stuck = Replies([steps("web.scrape", more_steps_likely=True)])

    def go_on() -> None:
        for turn in range(20):
            tell(project, stuck, model=TIER_C, context=context(turn))

    with pytest.raises(PlanFailed) as failed:
        go_on()

    assert failed.value.cause.name.value == "empty_plan"
    assert len(stuck.sent) < 12


def test_the_same_work_may_be_done_many_times(project: ProjectInfo) -> None:
    for run in range(6):
        for turn, tool in enumerate(["web.scrape", "image.generate", "blog.publish"]):
            body: Any = tell(
                project,
                Replies([steps(tool, more_steps_likely=turn < 2)]),
                model=TIER_C,
                context={f"output_{done}": f"of run {run}" for done in range(turn)},
            ).body
            assert body["steps"][0]["tool"] == tool


def test_many_agents_may_do_the_same_work_at_once(project: ProjectInfo) -> None:
    first = Replies([steps("web.scrape", more_steps_likely=True)])
    second = Replies([steps("blog.publish", more_steps_likely=True)])
    for _ in range(14):
        tell(project, first, model=TIER_C)

    for agent in range(14):
        made = tell(project, second, model=TIER_C, context={"output": f"of agent {agent:02}"})
        assert made.body["steps"]


def test_the_same_request_about_another_text_is_other_work(project: ProjectInfo) -> None:
    for text in range(8):
        intent = f"Whale number {text} was seen off the coast.\n\nPlease publish this as a post."
        for turn, tool in enumerate(["web.scrape", "blog.publish"]):
            made = tell(
                project,
                Replies([steps(tool, more_steps_likely=True)]),
                model=TIER_C,
                user_intent=intent,
                context={"output": "kept"} if turn else None,
            )
            assert made.body["steps"]


def test_a_whole_plan_is_no_step_of_a_chain(project: ProjectInfo) -> None:
    one = Replies([steps("web.scrape", more_steps_likely=True)])
    for turn in range(18):
        tell(project, one, model=TIER_C, context={"n": "x" * turn} if turn % 4 else None)

    body: Any = tell(
        project, Replies([steps("web.scrape", "blog.publish")]), context={"lang": "de"}
    ).body

    assert len(body["steps"]) == 2


def test_the_same_question_twice_is_no_loop(project: ProjectInfo) -> None:
    same = Replies([steps("web.scrape", more_steps_likely=True)])

    for _ in range(5):
        body: Any = tell(project, same, model=TIER_C).body
        assert body["steps"][0]["tool"] == "web.scrape"


def test_a_continued_plan_may_be_done(project: ProjectInfo) -> None:
    first = tell(project, Replies([steps("web.scrape", more_steps_likely=True)]), model=TIER_C)
    done = Replies([json.dumps({"steps": [], "done": True, "reasoning": "All is done."})])

    body: Any = tell(project, done, model=TIER_C, continues=first.plan_id).body

    assert (body["steps"], body["done"], body["more_steps_likely"]) == ([], True, False)
    assert [each["cause"] for each in body["attempts"]] == [None]


@pytest.mark.parametrize("payload", ["off", "redacted"])
def test_a_project_that_keeps_no_texts_keeps_none_of_a_plan(db: None, payload: str) -> None:
    project = keeping(payload)
    secret = "sk-abcdefghijklmnop0123"
    reply = {"steps": [{"tool": "web.scrape", "args": {"url": secret}, "rationale": secret}]}

    made = tell(project, Replies([json.dumps(reply)]), user_intent=f"Fetch with {secret}")

    body: Any = made.body
    assert body["steps"][0]["args"] == {"url": secret}
    row = PlanRecord.objects.get()
    step = PlanStep.objects.get()
    kept = json.dumps([row.intent, row.result, step.args, step.rationale, row.sketch])
    assert secret not in kept
    assert (row.intent == "") is (payload == "off")
    assert row.intent_sha
    assert step.args_sha


def test_an_answer_made_in_the_background_waits_sealed(db: None) -> None:
    project = keeping("off")
    ask = Ask(
        kind="plan",
        user_intent="Fetch the secret page",
        model="openai/gpt-4o",
        catalog=CATALOG,
    )
    reply = {"steps": [{"tool": "web.scrape", "args": {"url": "secret-place"}}]}
    plan_id = begin_plan(project=project, ask=ask, caller="owner", now=NOW)
    async_to_sync(make_plan)(
        project=project,
        ask=ask,
        caller="owner",
        complete=Replies([json.dumps(reply)]),
        clock=lambda: NOW,
        plan_id=plan_id,
    )

    row = PlanRecord.objects.values().get()
    assert "secret" not in json.dumps(row, default=str)
    waiting = plans.find(project_id=project.id, plan_id=plan_id, now=NOW)
    assert waiting is not None
    result: Any = waiting.result
    assert result["steps"][0]["args"] == {"url": "secret-place"}
    later = plans.find(project_id=project.id, plan_id=plan_id, now=NOW + timedelta(hours=2))
    assert later is not None
    assert later.result is None


def test_the_same_request_about_another_paste_is_the_same_intent(project: ProjectInfo) -> None:
    for paste in ("A text about whales and the sea.", "Numbers of the third quarter rose."):
        tell(
            project,
            Replies([steps("blog.publish")]),
            user_intent=f"{paste}\n\nPlease publish a blog post.",
        )

    assert PlanRecord.objects.values_list("intent_sha", flat=True).distinct().count() == 1


def with_fallback(project: ProjectInfo, fallback: str, **of_fallback: Any) -> None:
    """A tier C row whose plans another model may make."""
    sizes = {"input_tokens": 16_000, "output_tokens": 2_000, "tier": "C"}
    Budget.objects.create(project_id=project.id, key="weak/one", fallback_model=fallback, **sizes)
    Budget.objects.create(project_id=project.id, key=fallback, **(sizes | of_fallback))


def test_a_silent_model_ends_with_the_fallback(project: ProjectInfo) -> None:
    with_fallback(project, "strong/one")
    noise = [{"name": f"noise.{n}", "description": "Makes noise. " * 20} for n in range(60)]
    silence = {"content": "", "finish_reason": None}
    replies = Replies([silence, silence, steps("web.scrape", more_steps_likely=True)])

    body: Any = tell(
        project, replies, model="weak/one", catalog={"packs": [*CATALOG["packs"], *noise]}
    ).body

    assert [each.model for each in replies.sent] == ["weak/one", "weak/one", "strong/one"]
    assert body["steps"][0]["tool"] == "web.scrape"


@pytest.mark.parametrize(
    ("of_fallback", "unserved"),
    [
        ({}, "strong/one"),  # no upstream serves it
        ({"input_tokens": 60}, ""),  # its budget has no room for the request
    ],
)
def test_a_fallback_that_cannot_be_asked_does_not_hide_the_cause(
    project: ProjectInfo, of_fallback: dict[str, Any], unserved: str
) -> None:
    with_fallback(project, "strong/one", **of_fallback)
    replies = Replies([{"content": "", "finish_reason": None}], unserved=unserved)

    with pytest.raises(PlanFailed) as failed:
        tell(project, replies, model="weak/one")

    assert failed.value.cause.name.value == "likely_timeout"
    assert {each.model for each in failed.value.attempts} == {"weak/one"}
    assert PlanRecord.objects.get(name=failed.value.plan_id).cause == "likely_timeout"


@pytest.mark.parametrize(
    ("of_fallback", "unserved"), [({}, "strong/one"), ({"input_tokens": 60}, "")]
)
def test_a_fallback_that_cannot_be_asked_costs_no_try(
    project: ProjectInfo, of_fallback: dict[str, Any], unserved: str
) -> None:
    with_fallback(project, "strong/one", **of_fallback)
    garble = '{"steps": [{"tool": '
    replies = Replies([garble, garble, steps("web.scrape")], unserved=unserved)

    noise = [{"name": f"noise.{n}", "description": "Makes noise. " * 20} for n in range(60)]
    body: Any = tell(
        project, replies, model="weak/one", catalog={"packs": [*CATALOG["packs"], *noise]}
    ).body

    # The last try goes to the fallback; where that cannot be, to the model as without one.
    assert [each.model for each in replies.sent] == ["weak/one"] * 3
    assert len(body["attempts"]) == 3
    assert body["steps"][0]["tool"] == "web.scrape"


def test_a_request_too_large_for_the_budget_calls_no_model(project: ProjectInfo) -> None:
    replies = Replies([steps("web.scrape")])

    with pytest.raises(AskProblem) as problem:
        tell(project, replies, model=TIER_C, context={"text": "x" * 200_000})

    assert replies.sent == []
    assert problem.value.field == "context"
    assert "16,000" in problem.value.message
    assert not PlanRecord.objects.exists()


PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"user_intent": "   "}, "user_intent"),
    ({"model": " "}, "model"),
    ({"model": None}, "model"),  # and the server has no default
    ({"catalog": None}, "catalog"),  # and the project has none
    ({"catalog": None, "catalog_name": "nope"}, "catalog_name"),
    ({"catalog": {"packs": []}}, "catalog"),
    ({"catalog": {"packs": [{"name": "helmdeck.plan"}]}}, "catalog"),  # it plans, it serves nothing
    ({"continues": "plan_nope"}, "continues"),
    ({"prompt_variant": "hybrid"}, "prompt_variant"),
]


@pytest.mark.parametrize(("over", "field"), PROBLEMS)
def test_a_bad_question_names_its_field_and_leaves_no_plan(
    project: ProjectInfo, over: dict[str, Any], field: str
) -> None:
    with pytest.raises(AskProblem) as problem:
        tell(project, Replies([steps("web.scrape")]), **over)

    assert problem.value.field == field
    assert not PlanRecord.objects.exists()


def test_a_route_names_one_entry_of_its_real_kind(project: ProjectInfo) -> None:
    reply = {
        "recommendation": {"kind": "pack", "id": "builtin.scrape-blog", "why": "It does both."},
        "alternatives": [{"kind": "pack", "id": "blog.publish"}, {"kind": "pack", "id": "nope"}],
        "reasoning": "It supersedes both packs.",
    }

    body: Any = tell(project, Replies([json.dumps(reply)]), kind="route").body

    assert body["recommendation"]["kind"] == "pipeline"
    assert [each["id"] for each in body["alternatives"]] == ["blog.publish"]
    row = PlanRecord.objects.get()
    assert (row.kind, row.outcome) == ("route", "ok")
    assert Call.objects.get().purpose == "route"


def test_an_honest_none_is_an_answer(project: ProjectInfo) -> None:
    reply = {"recommendation": {"kind": "none", "id": ""}, "reasoning": "Nothing sends faxes."}

    body: Any = tell(
        project, Replies([json.dumps(reply)]), kind="route", user_intent="Send a fax"
    ).body

    assert body["recommendation"]["kind"] == "none"
    assert body["gap_warning"]["missing_capability"]
    assert PlanRecord.objects.get().outcome == "gap"


def test_later_plans_learn_from_those_that_were_made(project: ProjectInfo) -> None:
    tell(project, Replies([steps("image.generate")]), user_intent="quarterly figures, please")

    tell(project, Replies([steps("image.generate")]), user_intent="quarterly figures again please")

    trims = [fit.trim["kept"] for fit in Fit.objects.order_by("id")]
    assert trims[1][0]["id"] == "image.generate"


# 150 packs that all say the same: ten kilobytes cannot tell what each does.
LIKE_EACH_OTHER = {
    "packs": [
        {"name": f"office.task_{n}", "description": f"Handles office work of kind {n}. " * 3}
        for n in range(150)
    ]
}


def test_where_the_ranking_is_in_doubt_the_filter_is_asked_first(project: ProjectInfo) -> None:
    replies = Replies(['{"ids": [149, 150, 999]}', steps("office.task_149")])

    made = tell(
        project, replies, model=TIER_C, catalog=LIKE_EACH_OTHER, user_intent="Help with my things"
    )

    body: Any = made.body
    assert [each["purpose"] for each in body["attempts"]] == ["filter", "plan"]
    assert body["compaction"]["dropped"][-2:] == [
        "lexical.low_confidence",
        "llm_filter(picks=2,kept=2)",
    ]
    assert body["compaction"]["after_bytes"] <= 10_000
    assert '"name":"office.task_149","description"' in replies.sent[1].user
    assert replies.sent[0].max_tokens > 600
    assert replies.sent[0].json_mode is False
    calls = Call.objects.filter(correlation_id=made.plan_id).order_by("attempt")
    assert [(call.purpose, call.attempt) for call in calls] == [("filter", 1), ("plan", 2)]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no idea",
        "{}",
        '{"ids": []}',
        '{"ids": [4000]}',
        {"status": "error", "http_status": 500, "error_message": "down"},
    ],
)
def test_a_filter_that_fails_does_not_fail_the_plan(project: ProjectInfo, reply: Any) -> None:
    replies = Replies([reply, steps("office.task_7")])

    body: Any = tell(
        project, replies, model=TIER_C, catalog=LIKE_EACH_OTHER, user_intent="Help with my things"
    ).body

    assert [each["purpose"] for each in body["attempts"]] == ["filter", "plan"]
    assert body["attempts"][0]["cause"] is not None
    assert not [label for label in body["compaction"]["dropped"] if "llm_filter" in label]


@pytest.mark.parametrize(
    ("of_planner", "of_filter"),
    [
        ({"filter_model": "small/one"}, {"input_tokens": 200}),  # less than the question takes
        ({"max_catalog_bytes": 300}, {}),  # the list would have a single entry
    ],
)
def test_a_filter_without_room_for_its_question_is_not_asked(
    project: ProjectInfo, of_planner: dict[str, Any], of_filter: dict[str, Any]
) -> None:
    sizes: dict[str, Any] = {"input_tokens": 16_000, "output_tokens": 2_000, "tier": "C"}
    capped = {"max_catalog_bytes": 10_000, "allows_llm_filter": True, **of_planner}
    Budget.objects.create(project_id=project.id, key="weak/one", **sizes, **capped)
    Budget.objects.create(project_id=project.id, key="small/one", **(sizes | of_filter))
    replies = Replies([steps("office.task_7")])

    body: Any = tell(
        project, replies, model="weak/one", catalog=LIKE_EACH_OTHER, user_intent="Help with things"
    ).body

    assert [each.model for each in replies.sent] == ["weak/one"]
    assert [each["purpose"] for each in body["attempts"]] == ["plan"]
    assert body["compaction"]["dropped"][-1] == "lexical.low_confidence"
