"""The page of one call: how often it was tried, and how each try went."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from helmdash.core.calls.capture import SentSizes
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.tool_schemas import offered_tools
from helmdash.core.conversations.fingerprints import ChatTurn, links_of
from helmdash.core.text.tokens import compact_json
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import forget_cache
from helmdash.queries.calls.calls import find
from helmdash.records.models import Budget, Project
from tests.factories import NOW, make_capture, record
from tests.pages.hygiene import faults

LIMITED = {
    "number": 1,
    "at_ms": 0,
    "took_ms": 1412,
    "status": 429,
    "message": "Rate limit <reached>.",
    "waited_ms": 1000,
}
ANSWERED = {"number": 2, "at_ms": 2413, "took_ms": 300, "status": 200}


def shown(client: Client, project: ProjectInfo, *attempts: dict[str, Any]) -> tuple[str, str]:
    """The part of the page about the attempts, as markup and as people read it."""
    record(make_capture(id="tried", attempts=attempts), project=project)
    html = client.get("/calls/tried/").content.decode()
    assert faults(html) == []
    part = html.split('aria-labelledby="attempts"', 1)[1].split("</section>", 1)[0]
    return part, " ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split())


def test_all_attempts_are_counted_and_told_in_a_table(owner: Client, project: ProjectInfo) -> None:
    html, text = shown(owner, project, LIMITED, ANSWERED)

    assert "Attempts 2 in all" in text
    assert "1 0 ms 1.4 s HTTP 429 1.0 s Rate limit <reached>." in text
    assert "2 2.4 s 300 ms HTTP 200 – did not wait – no message" in text
    assert "<pre" not in html


def test_an_earlier_attempt_at_a_stream_leads_to_the_latest(
    owner: Client, project: ProjectInfo
) -> None:
    told = links_of([ChatTurn(role="user", text="Do it.")], reply=None, is_retry=False)
    links = replace(told, is_stream=True)
    for number, status in enumerate(("error", "success")):
        at = NOW + timedelta(seconds=10 * number)
        record(
            make_capture(id=f"try-{number}", links=links, status=status, started_at=at),
            project=project,
        )

    pages = [
        client_page.content.decode()
        for client_page in map(
            owner.get, ("/calls/try-0/", "/calls/try-1/", "/conversations/talk/", "/calls/")
        )
    ]

    assert [faults(html) for html in pages] == [[]] * 4
    assert [html.count("asked for again") for html in pages] == [1, 0, 2, 1]
    assert '"/generations/1/talk/' in pages[0]
    assert owner.get("/generations/1/talk/")["Location"].startswith("/calls/try-1/")


# what is told of the try, its result, whether it stands out as a failure
RESULTS = [
    ({"status": 200}, "HTTP 200", False),
    ({"status": 503}, "HTTP 503", True),
    ({"error": "timeout_connect"}, "timeout_connect", True),
    # It had begun to answer.
    ({"status": 200, "error": "closed_early"}, "HTTP 200, then closed_early", True),
    # A reporter's own form.
    ({"status": "gone"}, "HTTP gone", False),
]


@pytest.mark.parametrize(("told", "result", "is_failure"), RESULTS)
def test_a_result_is_a_status_or_the_word_of_the_error(
    owner: Client, project: ProjectInfo, told: dict[str, Any], result: str, is_failure: bool
) -> None:
    html, _ = shown(owner, project, told)

    assert f">{result}</span>" in html
    assert ('class="cause"' in html) is is_failure


# Reports may hold objects of any form: nothing of them is left out, and nothing made up.
ODD = [
    {},
    {"number": "second", "took_ms": 0.5, "at_ms": None},
    {"where": {"zone": [1, None]}, "message": {"code": 7}},
    {"number": True, "message": ""},
]


@pytest.mark.parametrize("attempt", ODD, ids=compact_json)
def test_attempts_of_any_form_are_shown(
    owner: Client, project: ProjectInfo, attempt: dict[str, Any]
) -> None:
    _, text = shown(owner, project, attempt)

    for value in attempt.values():
        told = "not reported" if value is None else value
        assert (told if isinstance(told, str) else compact_json(told)) in text


def test_a_call_without_attempts_says_nothing_of_them(owner: Client, project: ProjectInfo) -> None:
    record(make_capture(id="once"), project=project)

    assert "Attempts" not in owner.get("/calls/once/").content.decode()


def test_a_budget_whose_name_is_where_ids_begin_says_so(
    owner: Client, project: ProjectInfo
) -> None:
    """Its name alone looks like one that was cut."""
    record(
        make_capture(id="begun", model="openrouter/qwen/qwen-2.5-coder-32b"),
        make_capture(id="whole", model="openai/gpt-4o"),
        project=project,
    )

    begun = owner.get("/calls/begun/").content.decode()
    assert 'qwen-2.5-</a><span class="sub">ids that begin so</span>' in begun
    assert "ids that begin so" not in owner.get("/calls/whole/").content.decode()


def offering(sizes: dict[str, int], **over: Any) -> Any:
    return make_capture(
        id="tools",
        offered=offered_tools(sizes.items()),
        composition=Composition(system=1_000, user=1_000),
        sent=SentSizes(bytes=9_000, messages=2, tools_bytes=sum(sizes.values())),
        **over,
    )


# sizes of tools; what the page says, and what it does not
OFFERED = [
    ({"Read": 6_000, "Bash": 2_000},
     ["2 tools, 8,000 bytes", "Read 6,000 60 % Bash 2,000 20 %"], ["more", "smaller"]),
    ({f"t{n:02}": 100 - n for n in range(12)},
     ["t00 100 3.1 %", "2 more The tools after these", "t10 90 2.8 % t11 89 2.8 %"], ["smaller"]),
    ({f"t{n:03}": 1_000 - n for n in range(157)},
     ["157 tools", "30 more, of 147", "117 smaller ones take", "bytes together"], ["t040"]),
    # A name that a request does not give.
    ({"": 50}, ["1 tool,", "without a name 50"], []),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "there", "not_there"), OFFERED)
def test_tools_are_told_by_what_their_schemas_take(
    owner: Client,
    project: ProjectInfo,
    sizes: dict[str, int],
    there: list[str],
    not_there: list[str],
) -> None:
    record(offering(sizes), project=project)

    html = owner.get("/calls/tools/").content.decode()

    part = html.split('id="tools"', 1)[1].split("</section>", 1)[0]
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split())
    assert faults(html) == []
    assert [words for words in there if words not in text] == []
    assert [words for words in not_there if words in text] == []


def test_tools_that_nobody_told_apart_are_said_to_be_unknown(
    owner: Client, project: ProjectInfo
) -> None:
    for tools_bytes, said in ((700, True), (0, False), (None, False)):
        call = make_capture(id=f"c{tools_bytes}", sent=SentSizes(bytes=9, tools_bytes=tools_bytes))
        record(call, project=project)
        html = owner.get(f"/calls/c{tools_bytes}/").content.decode()
        assert ("bytes of schemas is not known of this call" in html) is said


def test_pages_of_a_call_and_of_its_conversation_tell_the_cost(
    owner: Client, project: ProjectInfo
) -> None:
    Budget.objects.filter(key="openai/gpt-4o").update(
        input_cost_usd_per_mtok=2, output_cost_usd_per_mtok=8
    )
    forget_cache()
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    record(make_capture(id="one", usage=usage), project=project)
    record(make_capture(id="unpriced", model="acme/tiny", usage=usage), project=project)
    record(make_capture(id="none", usage=None), project=project)
    cost = "<dt>Cost, USD</dt><dd>"
    said = '<span class="sub">at today\'s prices'

    assert f"{cost}2.00{said}</span>" in owner.get("/calls/one/").content.decode()
    assert f"{cost}2.00{said}, n 1</span>" in owner.get("/conversations/talk/").content.decode()
    for call, why in (("unpriced", "no price in its budget"), ("none", "not reported")):
        told = owner.get(f"/calls/{call}/").content.decode().split(cost)[1].split("</dd>")[0]
        assert why in told


SYSTEM, FIRST = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}
REPLY, NEXT = {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on."}
OTHER = {"role": "user", "content": "Hello!"}
TWO_TOOLS = offered_tools([("Read", 6_000), ("Bash", 2_000)])

# what the second call is besides a longer prompt; what its page says of the cache, what its row in
# its conversation's table, its JSON's cause
MISSES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"offered": offered_tools([("Read", 7_000), ("Grep", 1_000)])},
     "else . New: Grep . Gone: Bash . With another schema: Read .",
     # Of tools a row goes by their bytes alone, which are the same.
     "0 0 % missed", "tools_changed"),
    ({"messages": (SYSTEM, OTHER, REPLY, NEXT),
      "usage": {"prompt_tokens": 21_000, "cached_tokens": 1_024, "completion_tokens": 9}},
     "20 s earlier: an earlier message changed or went . Both begin with the same 1 message.",
     "1,024 4.9 % missed", "messages_changed"),
    ({"started_at": NOW + timedelta(minutes=7)},
     "of the call before , 7 min earlier: it may have expired",
     "0 0 % maybe expired", "may_have_expired"),
    # It goes on from what its provider keeps, and sends what is new alone.
    ({"messages": (NEXT,), "sent_is_prompt": False, "composition": Composition(system=0, user=6),
      "sent": SentSizes(bytes=90, messages=1, tools_bytes=8_000)},
     "of the call before , 20 s earlier", "0 0 % missed", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("over", "words", "in_row", "cause"), MISSES, ids=[each[3] for each in MISSES]
)
def test_why_the_cache_missed_is_told_by_the_call_before(
    owner: Client, project: ProjectInfo, over: dict[str, Any], words: str, in_row: str, cause: str
) -> None:
    Project.objects.filter(pk=project.id).update(payload="full")
    kept = replace(project, payload="full")
    common: dict[str, Any] = {
        "offered": TWO_TOOLS,
        "composition": Composition(system=40, user=9),
        "sent": SentSizes(bytes=9_000, messages=2, tools_bytes=8_000),
    }
    record(make_capture(id="c1", messages=(SYSTEM, FIRST), started_at=NOW, **common), project=kept)
    second: dict[str, Any] = {
        "id": "c2",
        "messages": (SYSTEM, FIRST, REPLY, NEXT),
        "usage": {"prompt_tokens": 21_000, "cached_tokens": 0, "completion_tokens": 9},
        "started_at": NOW + timedelta(seconds=20),
    }
    record(make_capture(**{**second, **common, **over}), project=kept)

    html = owner.get("/calls/c2/").content.decode()
    assert faults(html) == []
    assert words in " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())
    assert "/compare/calls/?a=c1&amp;b=c2" in html
    assert 'id="cache"' not in owner.get("/calls/c1/").content.decode()

    row = owner.get("/conversations/talk/").content.decode().split("/calls/c2/", 1)[1]
    cell = " ".join(re.sub(r"<[^>]+>", " ", row.split("</tr>", 1)[0]).split())
    assert in_row in cell

    told = find(project_id=project.id, call_id="c2")
    assert told is not None
    assert told.cache_miss is not None
    assert (told.cache_miss.cause, told.cache_miss.before) == (cause, "c1")
