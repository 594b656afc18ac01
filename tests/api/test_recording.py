"""POST /calls: what is stored and told, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.api.openapi import examples
from helmdash.queries.access.access import ProjectInfo
from tests.api.conftest import Door, fields_of

UNAVAILABLE = {
    "left out": None,
    "no counter": {},
    "null": {"prompt_tokens": None},
    "all zero": {"prompt_tokens": 0, "completion_tokens": 0},
    "negative": {"prompt_tokens": -5},
    "text": {"prompt_tokens": "20000"},
    "a fraction": {"prompt_tokens": 1.5},
    "true": {"prompt_tokens": True},
    "beyond 2**53": {"prompt_tokens": 2**60},
    "a list": {"prompt_tokens": [1]},
    "another vendor's words we do not know": {"tokens": 5},
}


def _call(**over: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "conversation": "talk",
        "model": "openai/gpt-4o",
        "usage": {"prompt_tokens": 20_000, "completion_tokens": 200},
        "finish_reason": "stop",
        **over,
    }


def test_a_call_is_stored_and_judged(owner: Door) -> None:
    response = owner.post("/calls", _call())

    assert response.status_code == 201
    told = response.json()
    health = told.pop("health")
    assert told == {
        "id": "c1",
        "conversation": "talk",
        "round": 1,
        "generation": 1,
        "finish_reason": "stop",
        "cause": None,
        "duplicate": False,
    }
    assert health.pop("hard_util") == pytest.approx(20_000 / health["limit_tokens"])
    assert health.pop("optimal_util") == pytest.approx(0.2)
    assert health.pop("limit_tokens") > 0
    assert health.pop("critical_max_tokens") > 0
    assert health == {
        "level": "healthy",
        "reason": None,
        "prompt_tokens": 20_000,
        "limit_source": "context_length",
        "optimal_max_tokens": 100_000,
    }


def test_a_repeat_gets_the_first_answer_whatever_it_says(owner: Door) -> None:
    first = owner.post("/calls", _call())

    again = owner.post("/calls", _call(model="other/model", conversation="another", usage=None))

    assert again.status_code == 200
    assert again.json() == {**first.json(), "duplicate": True}
    assert owner.get("/conversations/another").status_code == 404
    assert len(owner.get("/calls").json()["items"]) == 1


def test_a_call_without_an_id_gets_one(owner: Door) -> None:
    one = owner.post("/calls", {"model": "m"}).json()
    two = owner.post("/calls", {"model": "m"}).json()

    assert one["id"] != two["id"]
    assert owner.get(f"/calls/{one['id']}").status_code == 200
    assert (one["conversation"], one["round"], one["generation"]) == (None, None, None)


@pytest.mark.parametrize("usage", UNAVAILABLE.values(), ids=UNAVAILABLE)
def test_usage_without_usable_numbers_is_unavailable(owner: Door, usage: object) -> None:
    response = owner.post("/calls", _call(usage=usage))

    assert response.status_code == 201
    health = response.json()["health"]
    assert (health["level"], health["reason"]) == ("unknown", "usage_unavailable")
    assert health["prompt_tokens"] is None
    assert health["hard_util"] is None
    assert owner.get("/calls/c1").json()["usage"]["prompt_tokens"] is None


def test_a_model_without_a_budget_has_no_limit(owner: Door) -> None:
    health = owner.post("/calls", _call(model="nobody/knows")).json()["health"]

    assert (health["level"], health["reason"]) == ("unknown", "model_limit_unavailable")
    assert (health["limit_tokens"], health["limit_source"]) == (None, None)
    assert health["prompt_tokens"] == 20_000


@pytest.mark.parametrize(
    ("usage", "prompt_tokens", "cached_tokens"),
    [
        # Anthropic: the three counters are added.
        (
            {
                "input_tokens": 1_000,
                "cache_creation_input_tokens": 2_000,
                "cache_read_input_tokens": 30_000,
                "output_tokens": 5,
            },
            33_000,
            30_000,
        ),
        # OpenAI: cached tokens are a part of the prompt.
        (
            {"prompt_tokens": 9_000, "prompt_tokens_details": {"cached_tokens": 8_000}},
            9_000,
            8_000,
        ),
        # Gemini
        ({"promptTokenCount": 700, "cachedContentTokenCount": 600}, 700, 600),
        # Ollama
        ({"prompt_eval_count": 512, "eval_count": 8}, 512, None),
        # our own flat words
        ({"prompt_tokens": 40, "cached_tokens": 10}, 40, 10),
    ],
)
def test_each_vendors_usage_is_understood(
    owner: Door, usage: dict[str, Any], prompt_tokens: int, cached_tokens: int | None
) -> None:
    told = owner.post("/calls", _call(usage=usage)).json()
    stored = owner.get("/calls/c1").json()

    assert told["health"]["prompt_tokens"] == prompt_tokens
    assert stored["usage"]["prompt_tokens"] == prompt_tokens
    assert stored["usage"]["cached_tokens"] == cached_tokens
    assert stored["usage_raw"] == usage


def test_everything_that_is_told_comes_back(owner: Door) -> None:
    given = _call(
        provider="openai",
        pack="web.scrape",
        purpose="plan",
        correlation_id="story-1",
        attempt=2,
        attempts=[{"status": 500, "after_ms": 12}],
        caller="planner",
        upstream_model="gpt-4o-2024-11-20",
        prompt_variant="full_steps",
        response_format="json_object",
        raw_content_len=812,
        latency_ms=1234.6,
        ttft_ms=230,
        overhead_ms=3,
        status="error",
        http_status=502,
        error_code="bad_gateway",
        error_message="upstream said no",
        trim={"before_bytes": 35_000, "after_bytes": 9_900, "dropped": ["metadata.examples"]},
        parent="trip",
        lane="main",
        composition={"system": 900, "user": 0, "results_by_tool": {"": 9, "read": 4, "bash": 7}},
        sent={"bytes": 52_000, "messages": 9, "tools_bytes": 800, "images": 1},
        started_at="2026-02-03T04:05:06.789+02:00",
        metadata={"run": {"step": 3}, "tags": ["a", None, 1.5]},
        fit_id="fit_1",
        finish_reason="MAX_TOKENS",
    )

    owner.post("/calls", given)
    stored = owner.get("/calls/c1").json()

    same = [
        "id", "conversation", "model", "provider", "pack", "purpose", "correlation_id", "attempt",
        "attempts", "caller", "upstream_model", "prompt_variant", "response_format",
        "raw_content_len", "ttft_ms", "overhead_ms", "status", "http_status", "error_code",
        "error_message", "trim", "sent", "metadata", "fit_id",
    ]  # fmt: skip
    assert {name: stored[name] for name in same} == {name: given[name] for name in same}
    assert stored["latency_ms"] == 1235
    assert stored["started_at"] == "2026-02-03T02:05:06.789000Z"
    assert (stored["finish_reason"], stored["finish_reason_raw"]) == ("length", "MAX_TOKENS")
    assert stored["cause"]["name"] == "upstream_error"
    assert stored["composition"] == {
        "system": 900,
        "tools": 800,
        "user": 0,
        "assistant": None,
        "tool_results": None,
        "images": None,
        "other": None,
        "results_by_tool": {"bash": 7, "read": 4},
    }
    assert (stored["lane"], stored["routes"]) == ("main", ["api"])
    assert owner.get(f"/conversations/{given['conversation']}").json()["parent"] == "trip"
    assert set(stored["cause"]) == {"name", "rule", "advice", "detail"}


def test_the_compaction_of_a_fit_is_a_trim(owner: Door) -> None:
    compaction = owner.post("/fit", examples.FIT).json()["compaction"]

    response = owner.post("/calls", _call(trim=compaction))

    assert response.status_code == 201
    trim = owner.get("/calls/c1").json()["trim"]
    assert trim == {
        "before_bytes": compaction["before_bytes"],
        "after_bytes": compaction["after_bytes"],
        "dropped": compaction["dropped"],
    }


def test_texts_are_not_kept_unless_the_project_wants_them(owner: Door) -> None:
    owner.post("/calls", _call(messages=[{"role": "user", "content": "hello"}], content="hi"))

    stored = owner.get("/calls/c1").json()

    assert (stored["messages"], stored["content"]) == (None, None)
    assert stored["sent"]["messages"] == 1
    assert stored["content_len"] == 2


@pytest.mark.django_db
def test_texts_are_kept_where_the_project_wants_them(stranger: Door) -> None:
    from helmdash.records.models import Project

    Project.objects.filter(slug="elsewhere").update(payload="full")
    messages = [{"role": "user", "content": [{"type": "text", "text": "hello €"}]}]

    stranger.post("/calls", _call(messages=messages, content="hi"))
    stored = stranger.get("/calls/c1").json()

    assert (stored["messages"], stored["content"]) == (messages, "hi")


def test_calls_of_one_story_are_shown_beside_each_other(owner: Door) -> None:
    owner.post("/calls", _call(id="filter", purpose="filter", correlation_id="story"))
    owner.post("/calls", _call(id="plan", purpose="plan", correlation_id="story"))

    related = owner.get("/calls/plan").json()["related"]

    assert [each["id"] for each in related] == ["filter"]


def test_null_and_left_out_and_blank_say_the_same(owner: Door) -> None:
    nothing = dict.fromkeys(
        ["provider", "purpose", "attempt", "status", "trim", "sent", "messages", "started_at",
         "metadata", "decoded", "latency_ms", "http_status", "conversation", "attempts"]
    )  # fmt: skip

    response = owner.post("/calls", {"model": " m ", "id": "x", **nothing, "pack": "  "})

    assert response.status_code == 201
    stored = owner.get("/calls/x").json()
    assert (stored["model"], stored["purpose"], stored["attempt"]) == ("m", "chat", 1)
    assert (stored["pack"], stored["status"]) == (None, "success")


def test_ids_may_hold_anything_printable(owner: Door) -> None:
    for name in ("a/b/c", "ü-€", "x y", "?q=1#f", "%2F", "x" * 128):
        assert owner.post("/calls", {"model": "m", "id": name}).status_code == 201
        path = "/calls/" + name.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
        assert owner.get(path).json()["id"] == name


WRONG: list[tuple[str, dict[str, Any], str]] = [
    # ids
    ("empty id", {"id": ""}, "id"),
    ("long id", {"id": "x" * 129}, "id"),
    ("id with a line end", {"id": "a\nb"}, "id"),
    ("id with blanks around", {"id": " a"}, "id"),
    ("id as a number", {"id": 5}, "id"),
    # model
    ("no model", {"model": None}, "model"),
    ("blank model", {"model": "   "}, "model"),
    ("long model", {"model": "m" * 256}, "model"),
    ("model with a control character", {"model": "a\x07b"}, "model"),
    # conversation
    ("conversation with a blank", {"conversation": "a b"}, "conversation"),
    ("conversation with a slash", {"conversation": "a/b"}, "conversation"),
    ("empty conversation", {"conversation": ""}, "conversation"),
    # No link can carry these two: browsers resolve them away.
    ("conversation of one dot", {"conversation": "."}, "conversation"),
    ("conversation of two dots", {"conversation": ".."}, "conversation"),
    ("long conversation", {"conversation": "c" * 256}, "conversation"),
    ("conversation not ASCII", {"conversation": "ü"}, "conversation"),
    # words as long as their columns
    ("long provider", {"provider": "p" * 65}, "provider"),
    ("long pack", {"pack": "p" * 129}, "pack"),
    ("long purpose", {"purpose": "p" * 33}, "purpose"),
    ("long correlation id", {"correlation_id": "p" * 129}, "correlation_id"),
    ("long caller", {"caller": "p" * 129}, "caller"),
    ("long upstream model", {"upstream_model": "p" * 256}, "upstream_model"),
    ("long variant", {"prompt_variant": "p" * 33}, "prompt_variant"),
    ("long response format", {"response_format": "p" * 33}, "response_format"),
    ("long finish reason", {"finish_reason": "p" * 65}, "finish_reason"),
    ("long error code", {"error_code": "p" * 129}, "error_code"),
    ("long fit id", {"fit_id": "f" * 65}, "fit_id"),
    ("pack on two lines", {"pack": "a\nb"}, "pack"),
    # numbers
    ("attempt 0", {"attempt": 0}, "attempt"),
    ("attempt as text", {"attempt": "1"}, "attempt"),
    ("attempt as true", {"attempt": True}, "attempt"),
    ("huge attempt", {"attempt": 2**40}, "attempt"),
    ("negative length", {"raw_content_len": -1}, "raw_content_len"),
    ("length beyond 2**53", {"raw_content_len": 2**53 + 1}, "raw_content_len"),
    ("length beyond 64 bits", {"raw_content_len": 10**30}, "raw_content_len"),
    ("half a byte", {"raw_content_len": 0.5}, "raw_content_len"),
    ("negative latency", {"latency_ms": -0.1}, "latency_ms"),
    ("endless latency", {"ttft_ms": 1e300}, "ttft_ms"),
    ("HTTP status 0", {"http_status": 0}, "http_status"),
    ("HTTP status 600", {"http_status": 600}, "http_status"),
    # words of closed sets
    ("unknown status", {"status": "ok"}, "status"),
    # objects
    ("usage as a number", {"usage": 5}, "usage"),
    ("usage as a list", {"usage": []}, "usage"),
    ("metadata as text", {"metadata": "x"}, "metadata"),
    ("messages as an object", {"messages": {}}, "messages"),
    ("a message as text", {"messages": ["hello"]}, "messages.0"),
    ("content as an object", {"content": {}}, "content"),
    ("decoded as text", {"decoded": "no"}, "decoded"),
    ("trim without its bytes", {"trim": {"before_bytes": 1}}, "trim.after_bytes"),
    ("trim with negative bytes", {"trim": {"before_bytes": 1, "after_bytes": -1}},
     "trim.after_bytes"),
    ("a label as a number", {"trim": {"before_bytes": 1, "after_bytes": 1, "dropped": [1]}},
     "trim.dropped.0"),
    ("sent with an unknown member", {"sent": {"byte": 1}}, "sent.byte"),
    ("attempts as a number", {"attempts": 2}, "attempts"),
    # times
    ("time without an offset", {"started_at": "2026-01-01T00:00:00"}, "started_at"),
    ("time as a number", {"started_at": 1767225600}, "started_at"),
    ("a date", {"started_at": "2026-01-01"}, "started_at"),
    ("no such day", {"started_at": "2026-02-30T00:00:00Z"}, "started_at"),
    ("a broken clock", {"started_at": "1970-01-01T00:00:00Z"}, "started_at"),
    ("the far future", {"started_at": "2101-01-01T00:00:00Z"}, "started_at"),
    ("a time to come", {"started_at": "2099-12-31T23:59:59Z"}, "started_at"),
    ("a week", {"started_at": "2026-W01-1T00:00:00Z"}, "started_at"),
    # unknown members are not dropped in silence
    ("a misspelt member", {"promt_variant": "x"}, "promt_variant"),
    # what PostgreSQL cannot store
    ("U+0000 in metadata", {"metadata": {"a": ["x\x00y"]}}, "metadata.a.0"),
    ("U+0000 in content", {"content": "\x00"}, "content"),
    ("U+0000 in a name", {"metadata": {"a\x00": 1}}, "metadata"),
    ("too deep", {"metadata": {"a": json.loads("[" * 260 + "]" * 260)}}, "metadata"),
]  # fmt: skip


@pytest.mark.one_database
@pytest.mark.parametrize(("over", "field"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_field_is_named(owner: Door, over: dict[str, Any], field: str) -> None:
    response = owner.post("/calls", json.dumps(_call(**over)).encode())

    assert response.status_code == 422
    assert response.json()["code"] == "invalid"
    (named,) = fields_of(response)
    assert named == field or named.startswith(f"{field}.")
    assert owner.get("/calls").json()["items"] == []


def test_a_misspelt_member_gets_a_suggestion(owner: Door) -> None:
    errors = owner.post("/calls", _call(conversaton="x")).json()["errors"]

    assert errors == [
        {"field": "conversaton", "message": "is not known here; did you mean conversation?"}
    ]


def test_every_wrong_field_is_named_at_once(owner: Door) -> None:
    response = owner.post("/calls", {"usage": 3, "attempt": 0, "zzz": 1})

    assert sorted(fields_of(response)) == ["attempt", "model", "usage", "zzz"]


def test_numbers_beyond_64_bits_are_doubles_in_free_objects(owner: Door) -> None:
    owner.post("/calls", b'{"id":"n","model":"m","metadata":{"n":123456789012345678901234567890}}')

    told = owner.get("/calls/n").json()["metadata"]["n"]
    assert float(told) == 123456789012345678901234567890.0


def test_an_escaped_backslash_before_u0000_is_no_nul(owner: Door) -> None:
    response = owner.post("/calls", rb'{"id":"n","model":"m","metadata":{"n":"\\u0000"}}')

    assert response.status_code == 201
    assert owner.get("/calls/n").json()["metadata"] == {"n": "\\u0000"}


def test_a_long_error_message_is_cut_not_refused(owner: Door) -> None:
    owner.post("/calls", _call(error_message="e" * 50_000, http_status=500))

    assert len(owner.get("/calls/c1").json()["error_message"]) == 2000


@pytest.mark.parametrize("name", ["openai", "anthropic", "failed"])
def test_the_documented_examples_are_accepted(owner: Door, name: str) -> None:
    body = {
        "openai": examples.CALL,
        "anthropic": examples.ANTHROPIC_CALL,
        "failed": examples.FAILED_CALL,
    }[name]

    assert owner.post("/calls", body).status_code == 201


def test_a_call_is_recorded_with_few_queries(
    owner: Door, project: ProjectInfo, django_assert_max_num_queries: Any
) -> None:
    owner.post("/calls", _call(id="warm"))

    with django_assert_max_num_queries(22):
        owner.post("/calls", _call(id="c2"))
