"""Answers that do not stand in the text: in calls of tools, in what those pass, in reasoning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.core.calls.beside import Beside, ToolUse
from helmdash.operations.planning import PlanFailed
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, CallPayload
from tests.factories import make_project
from tests.planning.telling import Replies, steps, tell

SCRAPE = ToolUse("web.scrape", '{"url": "https://a.example"}')
PUBLISH = ToolUse("blog__publish", "")
PLAN = steps("web.scrape", "blog.publish")
ROUTE = json.dumps({"recommendation": {"kind": "pack", "id": "web.scrape", "why": "It reads."}})


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project(payload="full")


def told_of(call: Call) -> dict[str, Any]:
    """The metadata of a call."""
    return dict(CallPayload.objects.get(call=call).metadata or {})


def reply(*calls: ToolUse, reasoning: str = "", content: str = "", finish: str = "stop") -> Any:
    return {
        "content": content,
        "finish_reason": finish,
        "tool_calls": len(calls),
        "reasoning_len": len(reasoning),
        "beside": Beside(calls=calls, reasoning=reasoning) if calls or reasoning else None,
    }


@pytest.mark.parametrize(
    ("said", "tools", "place"),
    [
        pytest.param(
            reply(SCRAPE, PUBLISH, finish="tool_calls"),
            ["web.scrape", "blog.publish"],
            "tool_calls",
            id="calls are steps",
        ),
        pytest.param(
            reply(SCRAPE, content="I will fetch the page."),
            ["web.scrape"],
            "tool_calls",
            id="prose beside the calls",
        ),
        pytest.param(
            reply(ToolUse("submit_plan", PLAN), finish="tool_calls"),
            ["web.scrape", "blog.publish"],
            "tool_arguments",
            id="the plan is what a tool was called with",
        ),
        pytest.param(
            reply(ToolUse("answer", json.dumps({"plan": json.loads(PLAN)}))),
            ["web.scrape", "blog.publish"],
            "tool_arguments",
            id="and wrapped",
        ),
        pytest.param(
            reply(reasoning=f"First the page. Then the post.\n{PLAN}"),
            ["web.scrape", "blog.publish"],
            "reasoning",
            id="only thoughts",
        ),
        pytest.param(
            reply(reasoning=f"Perhaps {steps('image.generate')}? No:\n```json\n{PLAN}\n```\nDone."),
            ["web.scrape", "blog.publish"],
            "reasoning",
            id="the last of the thoughts counts",
        ),
        pytest.param(
            reply(reasoning=f"<think>First the page. {PLAN}</think>"),
            ["web.scrape", "blog.publish"],
            "reasoning",
            id="only thoughts, with the marks left on",
        ),
        *(
            pytest.param(
                reply(content=thoughts.format(PLAN)),
                ["web.scrape", "blog.publish"],
                "reasoning",
                id=f"only thoughts, in the text: {thoughts[:12]}",
            )
            for thoughts in (
                "<think>First the page. {}</think>",
                "First the page. {}\n</think>\n\n",  # the chat template wrote the opening tag
                "<reasoning>First the page. {}</reasoning>",
                "◁think▷First the page. {}◁/think▷",
                "[THINK]First the page. {}[/THINK]",
                "<think>Perhaps.</think>\n<think>{}</think>",
            )
        ),
        pytest.param(
            reply(ToolUse("no_such_tool", "{}"), reasoning=PLAN),
            ["web.scrape", "blog.publish"],
            "reasoning",
            id="a call of nothing hides no plan",
        ),
    ],
)
def test_a_plan_is_read_wherever_it_stands(
    project: ProjectInfo, said: Any, tools: list[str], place: str
) -> None:
    body: Any = tell(project, Replies([said])).body

    call = Call.objects.get()
    assert [step["tool"] for step in body["steps"]] == tools
    assert any("tool" in note or "reasoning" in note for note in body["notes"])
    assert len(body["attempts"]) == 1
    assert (call.cause or None) is None
    assert told_of(call)["answer_from"] == place


def test_a_step_that_was_called_has_the_arguments_of_the_call(project: ProjectInfo) -> None:
    body: Any = tell(project, Replies([reply(SCRAPE, ToolUse("blog.publish", "a post"))])).body

    assert body["steps"][0]["args"] == {"url": "https://a.example"}
    assert body["steps"][1]["arg_errors"][0]["field"] == "args"


@pytest.mark.parametrize(
    "said",
    [
        reply(SCRAPE, PUBLISH),
        reply(ToolUse("submit_route", ROUTE)),
        reply(reasoning=f"It is plain. {ROUTE}"),
        reply(content=f"<think>It is plain. {ROUTE}</think>"),
    ],
    ids=["called", "passed", "thought", "thought in the text"],
)
def test_a_route_is_read_wherever_it_stands(project: ProjectInfo, said: Any) -> None:
    body: Any = tell(project, Replies([said]), kind="route").body

    assert body["recommendation"]["id"] == "web.scrape"
    assert told_of(Call.objects.get())["answer_from"]


def test_text_that_holds_a_plan_rules_over_all_else(project: ProjectInfo) -> None:
    said = reply(SCRAPE, content=steps("image.generate"), reasoning=PLAN)

    body: Any = tell(project, Replies([said])).body

    assert [step["tool"] for step in body["steps"]] == ["image.generate"]
    assert "answer_from" not in told_of(Call.objects.get())


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        # Thoughts that were cut off hold drafts.
        (reply(reasoning=f"Maybe {PLAN} or", finish="length"), "reasoning_exhausted"),
        (reply(reasoning="Let me think.", finish="length"), "reasoning_exhausted"),
        (reply(reasoning="Let me think."), "empty_completion"),
        (reply(content=f"<think>Maybe {PLAN}</think>", finish="length"), "reasoning_exhausted"),
        (reply(content=f"<think>Maybe {PLAN}</think>None of it."), "undecodable"),
        (reply(ToolUse("no_such_tool", "{}"), finish="tool_calls"), None),
        (reply(ToolUse("submit_plan", '{"steps": [{"to'), finish="length"), "length_truncated"),
        (reply(reasoning=PLAN, finish="content_filter"), "safety_filtered"),
    ],
)
def test_what_holds_no_answer_keeps_its_cause(
    project: ProjectInfo, said: Any, cause: str | None
) -> None:
    with pytest.raises(PlanFailed):
        tell(project, Replies([said]))

    found = Call.objects.order_by("id")[0].cause
    assert found == cause if cause else found


def test_calls_that_were_cut_off_give_what_is_complete_and_say_so(project: ProjectInfo) -> None:
    said = reply(SCRAPE, ToolUse("blog.publish", '{"text": "half a'), finish="length")

    body: Any = tell(project, Replies([said, PLAN])).body

    causes = list(Call.objects.order_by("id").values_list("cause", flat=True))
    text = {"content": PLAN[:-20], "finish_reason": "length"}
    as_text: Any = tell(project, Replies([text, PLAN])).body
    assert causes[0] == "length_truncated"
    assert len(body["attempts"]) == len(as_text["attempts"])
