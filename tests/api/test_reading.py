"""Lists, details, timeline and export: filters, pages, query counts, ETags."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import listing as call_listing
from tests import factories
from tests.api.conftest import Door, fields_of


@pytest.fixture
def recorded(owner: Door) -> Door:
    """Six calls: two conversations, all that the filters tell apart."""
    base = {"model": "openai/gpt-4o", "finish_reason": "stop"}
    calls: list[dict[str, Any]] = [
        {"id": "a1", "conversation": "alpha", "usage": {"prompt_tokens": 5_000}, "pack": "web"},
        {"id": "a2", "conversation": "alpha", "usage": {"prompt_tokens": 110_000}},
        {"id": "a3", "conversation": "alpha", "usage": {"prompt_tokens": 127_000},
         "trim": {"before_bytes": 900, "after_bytes": 400}},
        {"id": "b1", "conversation": "beta", "usage": None, "model": "m", "purpose": "plan"},
        {"id": "b2", "conversation": "beta", "usage": None, "http_status": 429,
         "status": "error", "finish_reason": None, "correlation_id": "story"},
        {"id": "x1", "usage": {"prompt_tokens": 9}},
    ]  # fmt: skip
    stamped = [
        {**base, **call, "started_at": f"2026-03-0{day}T12:00:00Z"}
        for day, call in enumerate(calls, start=1)
    ]
    assert owner.post("/calls/batch", {"calls": stamped}).json()["stored"] == 6
    return owner


def _ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [item["id"] for item in response.json()["items"]]


FILTERS_OF_CALLS: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["x1", "b2", "b1", "a3", "a2", "a1"]),
        ({"conversation": "alpha"}, ["a3", "a2", "a1"]),
        ({"conversation": "nobody"}, []),
        ({"model": "m"}, ["b1"]),
        ({"level": "healthy"}, ["x1", "a1"]),
        ({"level": "caution"}, ["a2"]),
        ({"level": "critical"}, ["a3"]),
        ({"level": "unknown"}, ["b2", "b1"]),
        ({"cause": "rate_limited"}, ["b2"]),
        ({"finish_reason": "stop"}, ["x1", "b1", "a3", "a2", "a1"]),
        ({"purpose": "plan"}, ["b1"]),
        ({"pack": "web"}, ["a1"]),
        ({"since": "2026-03-05T00:00:00Z"}, ["x1", "b2"]),
        ({"since": "2026-03-05T12:00:00Z"}, ["x1", "b2"]),  # the bound itself is in
        ({"until": "2026-03-02T12:00:00Z"}, ["a1"]),  # the bound itself is out
        ({"since": "2026-03-05T01:00:00+13:00"}, ["x1", "b2", "b1"]),
        ({"since": "0001-01-01T00:00:00+23:59"}, ["x1", "b2", "b1", "a3", "a2", "a1"]),
        ({"until": "9999-12-31T23:59:59-23:59"}, ["x1", "b2", "b1", "a3", "a2", "a1"]),
        ({"q": "a"}, ["a3", "a2", "a1"]),  # ids, and alpha
        ({"q": "sto"}, ["b2"]),  # the correlation id
        ({"q": "bet"}, ["b2", "b1"]),  # a conversation
        # empty filters are left out
        ({"model": "", "q": "", "conversation": "", "cursor": ""}, ["x1", "b2", "b1", "a3", "a2",
                                                                   "a1"]),
]  # fmt: skip


def test_filters_of_calls(recorded: Door, subtests: pytest.Subtests) -> None:
    for query, ids in FILTERS_OF_CALLS:
        with subtests.test(query=query):
            assert _ids(recorded.get("/calls", query)) == ids


def test_an_offset_may_arrive_unescaped(recorded: Door) -> None:
    response = recorded.get("/calls?since=2026-03-05T01:00:00+00:00")

    assert _ids(response) == ["x1", "b2"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({}, ["beta", "alpha"]),
        ({"level": "critical"}, ["alpha"]),
        ({"level": "healthy"}, []),
        ({"model": "openai/gpt-4o"}, ["beta", "alpha"]),
        ({"q": "lph"}, ["alpha"]),
        ({"since": "2026-03-04T00:00:00Z"}, ["beta"]),
        ({"until": "2026-03-02T00:00:00Z"}, ["alpha"]),
    ],
)
def test_filters_of_conversations(recorded: Door, query: dict[str, str], ids: list[str]) -> None:
    assert _ids(recorded.get("/conversations", query)) == ids


LISTS = ["/calls", "/conversations", "/budgets", "/conversations/alpha/timeline"]


@pytest.mark.parametrize("path", LISTS)
def test_pages_join_to_the_whole_list(recorded: Door, path: str) -> None:
    whole = recorded.get(path, {"limit": "500"}).json()
    assert whole["next"] is None

    joined: list[object] = []
    query = {"limit": "1"}
    while True:
        page = recorded.get(path, query).json()
        joined += page["items"]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]

    assert joined == whole["items"]


@pytest.mark.one_database
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "501"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"limit": "5.0"}, "limit"),
        ({"limit": "1_0"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "9" * 40}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "WzEsMiwzLDQsNV0"}, "cursor"),  # ours in form, not in content
        ({"cursor": "W251bGxd"}, "cursor"),  # [null]
        ({"cursor": "x" * 501}, "cursor"),
        ({"cursor": "\x00"}, "cursor"),
        ({"page": "2"}, "page"),  # unknown
    ],
)
def test_a_wrong_place_in_a_list_is_named(
    recorded: Door, path: str, query: dict[str, str], field: str
) -> None:
    response = recorded.get(path, query)

    assert response.status_code == 422
    assert fields_of(response) == [field]


@pytest.mark.one_database
@pytest.mark.parametrize("cursor", ["nonsense", "W251bGxd"])
def test_a_wrong_place_is_named_before_what_is_missing(recorded: Door, cursor: str) -> None:
    response = recorded.get("/conversations/nobody/timeline", {"cursor": cursor})

    assert (response.status_code, fields_of(response)) == (422, ["cursor"])


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/calls", {"level": "red"}, "level"),
        ("/calls", {"level": ""}, "level"),
        ("/calls", {"cause": "bad_luck"}, "cause"),
        ("/calls", {"finish_reason": "MAX_TOKENS"}, "finish_reason"),
        ("/calls", {"since": "yesterday"}, "since"),
        ("/calls", {"until": "2026-01-01T00:00:00"}, "until"),
        ("/calls", {"model": "m" * 256}, "model"),
        ("/calls", {"q": "a\x00"}, "q"),
        ("/calls/export", {"limit": "5"}, "limit"),  # the export has no pages
        ("/calls/export", {"level": "red"}, "level"),
        ("/conversations", {"level": "red"}, "level"),
        ("/conversations", {"cause": "refused"}, "cause"),
        ("/conversations/alpha", {"x": "1"}, "x"),
        ("/calls/a1", {"x": "1"}, "x"),
        ("/budgets/1", {"x": "1"}, "x"),
        ("/budgets/resolve", {}, "model"),
        ("/context-budgets", {"model": "m"}, "model"),
    ],
)
def test_a_wrong_parameter_is_named(
    recorded: Door, path: str, query: dict[str, str], field: str
) -> None:
    response = recorded.get(path, query)

    assert response.status_code == 422
    assert fields_of(response) == [field]


def test_a_wrong_level_is_told_the_levels(recorded: Door) -> None:
    (error,) = recorded.get("/calls", {"level": "red"}).json()["errors"]

    assert "'healthy', 'caution', 'critical' or 'unknown'" in error["message"]


def test_a_parameter_given_twice_is_refused(recorded: Door) -> None:
    response = recorded.get("/calls?model=a&model=b")

    assert fields_of(response) == ["model"]


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        # the key, its project, and the list
        ("/calls", 2),
        ("/calls?level=critical", 2),
        ("/calls?conversation=alpha", 3),
        # a search asks one index after the other, and first how many ids begin so
        ("/calls?q=al", 7),
        ("/conversations", 2),
        # which models are meant by a spelling: the budgets' aliases, and those that were seen
        ("/conversations?level=critical&model=m&q=a", 7),
        # rounds, level changes, the curve, guidance, reminders
        ("/conversations/alpha", 8),
        # the conversation, its calls, its clears
        ("/conversations/alpha/timeline", 5),
        ("/conversations/alpha/reminders", 3),
        ("/calls/a1", 4),
        ("/calls/b2", 6),
        ("/budgets", 2),
        ("/budgets/resolve?model=m", 2),
        ("/context-budgets", 3),
        ("/catalogs", 2),
    ],
)
def test_reads_take_a_fixed_number_of_queries(
    recorded: Door, django_assert_num_queries: Any, path: str, queries: int
) -> None:
    recorded.get("/budgets/resolve?model=m")  # the table of budgets is read once a second

    with django_assert_num_queries(queries):
        recorded.get(path)


def test_the_number_of_queries_does_not_grow(
    recorded: Door, django_assert_num_queries: Any
) -> None:
    more = [{"model": "m", "conversation": f"c{n}"} for n in range(60)]
    recorded.post("/calls/batch", {"calls": more})

    with django_assert_num_queries(2):
        assert len(_ids(recorded.get("/calls", {"limit": "50"}))) == 50
    with django_assert_num_queries(2):
        assert len(_ids(recorded.get("/conversations", {"limit": "50"}))) == 50


def test_a_conversation_tells_its_standing(recorded: Door) -> None:
    told = recorded.get("/conversations/alpha").json()

    assert (told["id"], told["model"]) == ("alpha", "openai/gpt-4o")
    assert (told["round"], told["generation"]) == (1, 3)
    assert told["health"]["level"] == "critical"
    assert told["counts"] == {
        "calls": 3,
        "side_calls": 0,
        "earlier_attempts": 0,
        "rounds": 1,
        "failures": 0,
        "trims": 1,
    }
    assert told["remediation"] == {
        "active": False,
        "level": None,
        "grace_left": None,
        "countdown": None,
        "next_hard_in": None,
        "followed": None,
        "braked_at": None,
        "guidance": [],
    }
    assert told["rounds"] == [
        {
            "number": 1,
            "first_generation": 1,
            "latest_generation": 3,
            "peak_prompt_tokens": 127_000,
            "started_at": "2026-03-01T12:00:00Z",
            "ended_at": None,
            "opened_by": None,
        }
    ]
    assert [(c["from_level"], c["to_level"]) for c in told["level_changes"]] == [
        ("caution", "critical"),
        ("healthy", "caution"),
        (None, "healthy"),
    ]


def test_an_unknown_level_keeps_the_last_known_one_beside_it(owner: Door) -> None:
    call = {"model": "openai/gpt-4o", "conversation": "talk"}
    owner.post("/calls", {**call, "usage": {"prompt_tokens": 110_000}})
    owner.post("/calls", call)

    told = owner.get("/conversations/talk").json()

    assert (told["health"]["level"], told["known_level"]) == ("unknown", "caution")


def test_a_timeline_tells_calls_trims_and_changes_of_model(recorded: Door) -> None:
    alpha = recorded.get("/conversations/alpha/timeline").json()["items"]
    beta = recorded.get("/conversations/beta/timeline").json()["items"]

    assert [(e["generation"], e["event"]) for e in alpha] == [
        (1, "call"),
        (2, "call"),
        (3, "compaction"),
        (3, "call"),
    ]
    assert [(e["generation"], e["event"]) for e in beta] == [
        (1, "call"),
        (2, "model_change"),
        (2, "call"),
    ]
    assert alpha[0] == {
        "generation": 1,
        "round": 1,
        "at": "2026-03-01T12:00:00Z",
        "event": "call",
        "call_id": "a1",
        "model": "openai/gpt-4o",
        "prompt_tokens": 5_000,
        "level": "healthy",
        "detail": None,
    }


@pytest.mark.parametrize(
    "path",
    [
        "/calls/nobody",
        "/calls/%00",
        "/conversations/nobody",
        "/conversations/%00",
        "/conversations/%00/timeline",
        "/budgets/999999",
        "/budgets/99999999999999999999999999",
        "/budgets/x",
        "/catalogs/nothing",
        "/catalogs/%00",
    ],
)
def test_what_is_not_there_is_404(recorded: Door, path: str) -> None:
    response = recorded.get(path)

    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


@pytest.mark.parametrize("at_a_time", [1, 2, 6, 1000])
def test_the_export_is_a_call_on_each_line(
    recorded: Door, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr(call_listing, "_EXPORT_CHUNK", at_a_time)

    response = recorded.get("/calls/export")

    lines = b"".join(response.streaming_content).splitlines()
    assert response["Content-Type"] == "application/x-ndjson"
    assert [orjson.loads(line)["id"] for line in lines] == ["a1", "a2", "a3", "b1", "b2", "x1"]
    listed = recorded.get("/calls", {"conversation": "alpha"}).json()["items"]
    assert [orjson.loads(line) for line in lines[:3]] == listed[::-1]


def test_the_export_takes_the_filters_of_the_list(recorded: Door) -> None:
    response = recorded.get("/calls/export", {"level": "critical"})

    (line,) = b"".join(response.streaming_content).splitlines()
    assert orjson.loads(line)["id"] == "a3"


def test_an_empty_export_is_empty(owner: Door) -> None:
    assert b"".join(owner.get("/calls/export").streaming_content) == b""


def test_an_export_of_many_calls_comes_in_pieces(owner: Door) -> None:
    calls = [{"model": "m", "id": f"c{n}"} for n in range(450)]
    owner.post("/calls/batch", {"calls": calls})

    pieces = list(owner.get("/calls/export").streaming_content)

    assert [piece.count(b"\n") for piece in pieces] == [200, 200, 50]


@pytest.mark.parametrize(
    "path",
    ["/calls", "/calls/a1", "/conversations", "/conversations/alpha", "/budgets",
     "/context-budgets", "/budgets/resolve?model=m", "/conversations/alpha/timeline",
     "/conversations/alpha/reminders", "/catalogs"],
)  # fmt: skip
def test_an_unchanged_read_is_304(recorded: Door, path: str) -> None:
    first = recorded.get(path)

    again = recorded.get(path, if_none_match=first["ETag"])

    assert again.status_code == 304
    assert again.content == b""
    assert again["ETag"] == first["ETag"]
    assert "private" in first["Cache-Control"]


def test_a_new_call_changes_the_etag_of_the_list(recorded: Door) -> None:
    tag = recorded.get("/calls")["ETag"]
    recorded.post("/calls", {"model": "m"})

    assert recorded.get("/calls", if_none_match=tag).status_code == 200


def test_a_list_is_of_its_project_only(owner: Door, quiet: ProjectInfo) -> None:
    factories.record(factories.make_capture(), project=quiet)

    assert _ids(owner.get("/calls")) == []


@pytest.mark.parametrize("path", ["/calls", "/calls/export", "/conversations", "/plans", "/trims"])
def test_every_list_takes_the_query_of_its_page(owner: Door, path: str) -> None:
    one_of_each = {
        "/calls": "level:healthy -cause:any latency:<1h",
        "/calls/export": "level:healthy -cause:any latency:<1h",
        "/conversations": "level:healthy calls:>=1 -has:error",
        "/plans": "-outcome:failed steps:<9",
        "/trims": "-outcome:over before:>0",
    }
    assert owner.get(path, {"q": one_of_each[path]}).status_code == 200
    for wrong, named in (("colour:red", "colour"), ("has:nothing", "has:nothing"), ("-x", "-x")):
        response = owner.get(path, {"q": wrong})
        assert (response.status_code, fields_of(response)) == (422, ["q"])
        assert named in response.json()["errors"][0]["message"]
    assert owner.get(path, {"q": "x" * 501}).status_code == 422


def test_a_query_of_the_api_narrows_as_that_of_the_page(owner: Door, project: ProjectInfo) -> None:
    factories.record(
        factories.make_capture(id="slow", latency_ms=9_000),
        factories.make_capture(id="fast", latency_ms=10, conversation="other"),
        project=project,
    )

    def ids(path: str, q: str) -> list[str]:
        return [each["id"] for each in owner.get(path, {"q": q}).json()["items"]]

    assert ids("/calls", "latency:>2s") == ["slow"]
    assert ids("/calls", "fas") == ["fast"]
    assert ids("/conversations", "calls:1 oth") == ["other"]
