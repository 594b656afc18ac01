"""Care of a conversation through the API: the steps, the clear, reminders, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from helmdash.api.openapi import examples
from helmdash.api.openapi.document import document
from helmdash.records.models import Conversation, Reminder
from tests import factories
from tests.api.conftest import PREFIX, Door, fields_of

HEALTHY, CAUTION, CRITICAL = 1_000, 6_000, 9_500
HEADINGS = (
    "Goal and scope",
    "Current progress",
    "Key decisions and constraints",
    "Changes",
    "Next steps",
    "Open questions and risks",
)
ANSWER_FIELDS = {
    "action", "strength", "text", "persist", "remaining", "round", "carry", "package",
    "generation", "reason",
}  # fmt: skip


@pytest.fixture
def house(owner: Door) -> Door:
    """A small model: caution above 5,000 tokens, critical above 9,000, hard every 3."""
    budget = {
        "key": "acme/small",
        "input_tokens": 10_000,
        "output_tokens": 1_000,
        "max_catalog_bytes": 9_000,
        "tier": "B",
        "context_length": 10_000,
        "optimal_max_tokens": 5_000,
        "critical_max_tokens": 9_000,
        "caution_cadence": 3,
    }
    assert owner.post("/budgets", budget).status_code == 201
    return owner


def _call(door: Door, tokens: int | None, **over: Any) -> Any:
    usage = None if tokens is None else {"prompt_tokens": tokens, "completion_tokens": 10}
    body = {
        "model": "acme/small",
        "conversation": "talk",
        "usage": usage,
        "finish_reason": "stop",
        "http_status": 200,
        "content": "Yes.",
        **over,
    }
    response = door.post("/calls", body)
    assert response.status_code == 201, response.content
    return response.json()


def _advance(door: Door, conversation: str = "talk", **body: Any) -> Any:
    response = door.post(f"/conversations/{conversation}/advance", body)
    assert response.status_code == 200, response.content
    told = response.json()
    assert set(told) >= ANSWER_FIELDS
    _validate("/conversations/{conversation_id}/advance", told)
    return told


def _steps(door: Door, tokens: int | None, count: int, **body: Any) -> Iterator[Any]:
    """Generations of so many tokens; what is told before the one after each."""
    for _ in range(count):
        _call(door, tokens)
        yield _advance(door, **body)


def _remediation(door: Door) -> Any:
    told = door.get("/conversations/talk").json()
    _validate("/conversations/{conversation_id}", told, "get")
    return told["remediation"]


def _add(door: Door, content: str, **over: Any) -> Any:
    response = door.post("/conversations/talk/reminders", {"content": content, **over})
    assert response.status_code == 201, response.content
    return response.json()


def _list(door: Door) -> list[tuple[int, str]]:
    items = door.get("/conversations/talk/reminders").json()["items"]
    return [(item["position"], item["content"]) for item in items]


def _validate(path: str, body: object, method: str = "post") -> None:
    operation = document()["paths"][PREFIX + path][method]
    status = "200" if "200" in operation["responses"] else "201"
    schema = operation["responses"][status]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": document()["components"]}).validate(body)


def test_a_healthy_conversation_needs_nothing(house: Door) -> None:
    _call(house, HEALTHY)

    told = _advance(house)

    assert told["reason"]
    assert {name: told[name] for name in ANSWER_FIELDS - {"reason"}} == {
        "action": "none",
        "strength": None,
        "text": None,
        "persist": False,
        "remaining": None,
        "round": 1,
        "carry": [],
        "package": None,
        "generation": 2,
    }
    assert _remediation(house)["active"] is False


def test_a_conversation_without_calls_needs_nothing(house: Door) -> None:
    told = _advance(house, "nobody-yet", user_prompt="Hello")

    assert (told["action"], told["round"], told["generation"]) == ("none", 1, 1)
    assert (told["carry"], told["package"]) == ([], None)


def test_caution_is_three_soft_ones_a_hard_one_and_then_each_cadence(house: Door) -> None:
    told = list(_steps(house, CAUTION, 11))

    assert [each["strength"] for each in told] == [
        "soft", "soft", "soft", "hard", None, None, "hard", None, None, "hard", None,
    ]  # fmt: skip
    assert all(each["persist"] is False and each["remaining"] is None for each in told)
    assert all(bool(each["text"]) is (each["action"] == "guide") for each in told)


def test_the_conversation_tells_what_was_done(house: Door) -> None:
    list(_steps(house, CAUTION, 4))

    told = _remediation(house)

    assert (told["active"], told["level"], told["grace_left"]) == (True, "caution", 0)
    assert (told["countdown"], told["next_hard_in"], told["followed"]) == (None, 3, False)
    given = told["guidance"]
    assert [(each["generation"], each["strength"]) for each in given] == [
        (5, "hard"), (4, "soft"), (3, "soft"), (2, "soft"),
    ]  # fmt: skip
    assert {(each["round"], each["action"], each["remaining"]) for each in given} == {
        (1, "guide", None)
    }
    assert all(each["at"] and each["followed_at"] is None for each in given)


def test_a_reminder_satisfies_the_hard_one(house: Door) -> None:
    list(_steps(house, CAUTION, 4))
    _add(house, "Chapter 1 is done.")

    told = _remediation(house)
    rest = [each["strength"] for each in _steps(house, CAUTION, 3)]

    assert told["followed"] is True
    assert told["guidance"][0]["followed_at"]
    assert rest == [None, None, "hard"]


def test_critical_counts_down_and_then_clears(house: Door) -> None:
    told = list(_steps(house, CRITICAL, 6))

    assert [each["remaining"] for each in told[:5]] == [4, 3, 2, 1, 0]
    for each in told[:5]:
        assert (each["action"], each["strength"]) == ("record_prompt", "critical")
        assert each["persist"] is True
        assert each["text"]
        assert (each["carry"], each["package"], each["round"]) == ([], None, 1)
    last = told[5]
    assert (last["action"], last["round"], last["persist"]) == ("clear", 2, False)
    assert all(heading in last["package"] for heading in HEADINGS)


def test_the_countdown_is_told_while_it_runs(house: Door) -> None:
    list(_steps(house, CRITICAL, 2))

    told = _remediation(house)

    assert (told["active"], told["level"], told["countdown"]) == (True, "critical", 3)
    assert [each["remaining"] for each in told["guidance"]] == [3, 4]


def test_a_prompt_of_the_user_counts_and_stays_as_it_is(house: Door) -> None:
    by_text = next(_steps(house, CRITICAL, 1, user_prompt="Go on"))
    by_flag = next(_steps(house, CRITICAL, 1, has_user_prompt=True))
    without = next(_steps(house, CRITICAL, 1, user_prompt=""))

    for told, remaining in ((by_text, 4), (by_flag, 3)):
        assert (told["action"], told["strength"], told["persist"]) == ("guide", "critical", False)
        assert told["remaining"] == remaining
    assert (without["action"], without["remaining"]) == ("record_prompt", 2)


def test_a_clear_carries_the_texts_nobody_has_answered_to_the_letter(house: Door) -> None:
    lost = "  What about\tthe second one?\r\n"
    pending = "\n\n And the third? \U0001f6f0  "
    list(_steps(house, CRITICAL, 4, user_prompt="Answered at once"))
    _call(house, CRITICAL)
    _advance(house, user_prompt=lost)
    _call(house, CRITICAL, status="error", http_status=500, finish_reason=None, content=None)

    told = _advance(house, user_prompt=pending)

    assert (told["action"], told["round"]) == ("clear", 2)
    assert told["carry"] == [lost, pending]
    assert pending.strip() not in told["package"]


def test_the_same_generation_gets_the_same_answer(house: Door) -> None:
    list(_steps(house, CRITICAL, 5))
    _call(house, CRITICAL)

    first = _advance(house, generation=7, user_prompt="Next")
    again = _advance(house, generation=7, user_prompt="Next")

    assert first["action"] == "clear"
    assert again == first
    assert house.get("/conversations/talk").json()["round"] == 2


def test_asking_twice_counts_once(house: Door) -> None:
    _call(house, CRITICAL)

    answers = [_advance(house) for _ in range(3)]

    assert [each["remaining"] for each in answers] == [4, 4, 4]
    assert len(_remediation(house)["guidance"]) == 1


def test_unknown_usage_freezes(house: Door) -> None:
    list(_steps(house, CRITICAL, 2))

    frozen = next(_steps(house, None, 1))
    after = next(_steps(house, CRITICAL, 1))

    assert frozen["action"] == "none"
    assert after["remaining"] == 2


def test_the_model_about_to_be_asked_decides(house: Door) -> None:
    _call(house, CRITICAL)

    larger = _advance(house, model="openai/gpt-4o")
    _call(house, CRITICAL)
    smaller = _advance(house)

    assert larger["action"] == "none"
    assert (smaller["action"], smaller["remaining"]) == ("record_prompt", 4)


def test_a_call_that_was_too_long_clears_at_once(house: Door) -> None:
    _call(house, CAUTION)
    _call(
        house, None, status="error", http_status=400, finish_reason=None, content=None,
        error_code="context_length_exceeded",
        error_message="This model's maximum context length is 10000 tokens.",
    )  # fmt: skip

    told = _advance(house, user_prompt="Once more")

    assert (told["action"], told["round"], told["carry"]) == ("clear", 2, ["Once more"])


def test_a_clear_shows_in_rounds_and_timeline(house: Door) -> None:
    list(_steps(house, CRITICAL, 6))

    told = house.get("/conversations/talk").json()
    empty = house.get("/conversations/talk/timeline").json()["items"]
    _call(house, HEALTHY)
    begun = house.get("/conversations/talk/timeline").json()["items"]

    assert (told["round"], told["counts"]["rounds"]) == (2, 2)
    assert [each["opened_by"] for each in told["rounds"]] == [None, "clear"]
    assert told["rounds"][0]["ended_at"]
    assert told["remediation"]["active"] is False
    assert told["remediation"]["guidance"][0]["action"] == "clear"
    event = empty[-1]
    assert event == {
        "generation": 7,
        "round": 2,
        "at": event["at"],
        "event": "clear",
        "call_id": None,
        "model": None,
        "prompt_tokens": None,
        "level": None,
        "detail": None,
    }
    assert [(each["generation"], each["event"]) for each in begun[-3:]] == [
        (6, "call"), (7, "clear"), (7, "call"),
    ]  # fmt: skip
    assert begun[-2]["at"] == event["at"]


def test_pages_of_a_timeline_with_clears_join_to_the_whole(house: Door) -> None:
    for _ in range(3):
        _call(house, HEALTHY)
        _call(house, HEALTHY)
        assert house.post("/conversations/talk/clear", {}).status_code == 200
    whole = house.get("/conversations/talk/timeline").json()["items"]

    joined: list[Any] = []
    query = {"limit": "1"}
    while "cursor" not in query or query["cursor"]:
        page = house.get("/conversations/talk/timeline", query).json()
        joined += page["items"]
        query["cursor"] = page["next"] or ""

    assert [each["event"] for each in whole] == ["call", "call", "clear"] * 3
    assert joined == whole


def test_a_late_call_of_the_round_before_says_nothing_about_the_new_one(house: Door) -> None:
    list(_steps(house, CRITICAL, 6))

    late = _call(house, CRITICAL, round=1)
    told = _advance(house)
    fresh = _call(house, HEALTHY, round=2)

    assert (late["round"], fresh["round"]) == (1, 2)
    assert told["action"] == "none"


@pytest.mark.parametrize("number", [0, -1, 1.5, "1", True, 2**31])
def test_the_round_of_a_call_is_a_small_whole_number(house: Door, number: object) -> None:
    response = house.post("/calls", {"model": "acme/small", "round": number})

    assert fields_of(response) == ["round"]


def test_clearing_opens_a_round_with_what_was_written_down(house: Door) -> None:
    _call(house, CAUTION)
    _add(house, "The manual has nine chapters.")
    _advance(house, user_prompt=" Still open ")

    response = house.post("/conversations/talk/clear", {"reminder_content": " Chapter 1 is done."})

    told = response.json()
    assert response.status_code == 200
    _validate("/conversations/{conversation_id}/clear", told)
    assert (told["round"], told["carried"]) == (2, [" Still open "])
    assert all(heading in told["package"] for heading in HEADINGS)
    assert "The manual has nine chapters." in told["package"]
    assert "Chapter 1 is done." in told["package"]
    assert len(_list(house)) == 2


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"reminder_content":null}', b'{"reminder_content":" "}']
)
def test_a_clear_needs_no_words(house: Door, body: bytes) -> None:
    _call(house, CAUTION)

    response = house.post("/conversations/talk/clear", body)

    assert (response.status_code, response.json()["round"]) == (200, 2)
    assert _list(house) == []


def test_a_step_needs_no_words(house: Door) -> None:
    assert house.post("/conversations/talk/advance", b"").json()["action"] == "none"


def test_clearing_again_before_the_next_call_changes_nothing(house: Door) -> None:
    _call(house, CAUTION)

    first = house.post("/conversations/talk/clear", {}).json()
    again = house.post("/conversations/talk/clear", {}).json()

    assert again == first
    assert house.get("/conversations/talk").json()["round"] == 2


def test_reminders_are_kept_in_their_order(house: Door) -> None:
    _call(house, HEALTHY)

    first, second = _add(house, "one"), _add(house, "  two\n")
    third = _add(house, "three", position=1, kind="re_entry")

    assert (first["kind"], third["kind"], third["position"]) == ("note", "re_entry", 1)
    assert _list(house) == [(1, "three"), (2, "one"), (3, "two")]
    path = f"/conversations/talk/reminders/{second['id']}"
    moved = house.patch(path, {"position": 1, "content": "two!"}).json()
    assert (moved["id"], moved["position"], moved["content"]) == (second["id"], 1, "two!")
    assert _list(house) == [(1, "two!"), (2, "three"), (3, "one")]
    house.patch(path, {"position": 99})
    assert _list(house) == [(1, "three"), (2, "one"), (3, "two!")]
    gone = house.delete(f"/conversations/talk/reminders/{third['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert _list(house) == [(1, "one"), (2, "two!")]


def test_a_reminder_has_the_documented_shape(house: Door) -> None:
    _call(house, HEALTHY)

    added = _add(house, "one")
    listed = house.get("/conversations/talk/reminders").json()

    assert set(added) == {"id", "position", "kind", "content", "updated_at"}
    assert listed == {"items": [added]}
    _validate("/conversations/{conversation_id}/reminders", added)
    _validate("/conversations/{conversation_id}/reminders", listed, "get")


def test_a_change_of_nothing_changes_nothing(house: Door) -> None:
    list(_steps(house, CAUTION, 4))
    added = _add(house, "one")
    list(_steps(house, CAUTION, 3))

    response = house.patch(
        f"/conversations/talk/reminders/{added['id']}", {"content": None, "kind": None}
    )

    assert (response.status_code, response.json()) == (200, added)
    assert _remediation(house)["followed"] is False


# path below /conversations, body, the field that is named
WRONG: tuple[tuple[str, str, object, str], ...] = (
    ("POST", "talk/advance", {"generation": 0}, "generation"),
    ("POST", "talk/advance", {"generation": -3}, "generation"),
    ("POST", "talk/advance", {"generation": "2"}, "generation"),
    ("POST", "talk/advance", {"generation": True}, "generation"),
    ("POST", "talk/advance", {"generation": 1.5}, "generation"),
    ("POST", "talk/advance", {"generation": 2**60}, "generation"),
    ("POST", "talk/advance", {"has_user_prompt": "yes"}, "has_user_prompt"),
    ("POST", "talk/advance", {"user_prompt": 7}, "user_prompt"),
    ("POST", "talk/advance", {"user_prompt": "a\x00"}, "user_prompt"),
    ("POST", "talk/advance", {"model": ""}, "model"),
    ("POST", "talk/advance", {"model": "m" * 256}, "model"),
    ("POST", "talk/advance", {"prompt": "x"}, "prompt"),
    ("POST", "talk/advance?generation=2", {}, "generation"),
    ("POST", "talk/advance", [], "body"),
    ("POST", "tälk/advance", {}, "conversation_id"),
    ("POST", "a b/advance", {}, "conversation_id"),
    ("POST", "%00/advance", {}, "conversation_id"),
    ("POST", "%0A/advance", {}, "conversation_id"),
    ("POST", "%2E/advance", {}, "conversation_id"),
    ("POST", "%2E%2E/advance", {}, "conversation_id"),
    ("POST", f"{'a' * 256}/advance", {}, "conversation_id"),
    ("POST", "talk/clear", {"reminder_content": 5}, "reminder_content"),
    ("POST", "talk/clear", {"reminder_content": "x" * 20_001}, "reminder_content"),
    ("POST", "talk/clear", {"reason": "because"}, "reason"),
    ("POST", "talk/reminders", {}, "content"),
    ("POST", "talk/reminders", {"content": None}, "content"),
    ("POST", "talk/reminders", {"content": ""}, "content"),
    ("POST", "talk/reminders", {"content": " \n\u3000"}, "content"),
    ("POST", "talk/reminders", {"content": "\x1c\x1f"}, "content"),
    ("POST", "talk/reminders", {"content": "a\x00b"}, "content"),
    ("POST", "talk/reminders", {"content": "x" * 20_001}, "content"),
    ("POST", "talk/reminders", {"content": "x", "kind": "memo"}, "kind"),
    ("POST", "talk/reminders", {"content": "x", "position": 0}, "position"),
    ("POST", "talk/reminders", {"content": "x", "postion": 1}, "postion"),
    ("PATCH", "talk/reminders/{id}", {"content": " "}, "content"),
    ("PATCH", "talk/reminders/{id}", {"kind": 1}, "kind"),
    ("PATCH", "talk/reminders/{id}", {"position": -1}, "position"),
    ("PATCH", "talk/reminders/{id}", {"id": "x"}, "id"),
    ("GET", "talk/reminders?limit=5", b"", "limit"),
    ("DELETE", "talk/reminders/{id}?force=1", b"", "force"),
)


def test_a_wrong_field_is_named(house: Door) -> None:
    _call(house, HEALTHY)
    added = _add(house, "one")

    for method, path, body, field in WRONG:
        response = house.send(method, f"/conversations/{path}".replace("{id}", added["id"]), body)

        assert response.status_code == 422, (method, path, body)
        assert fields_of(response) == [field]
    assert _list(house) == [(1, "one")]


def test_a_misspelt_member_gets_a_suggestion(house: Door) -> None:
    (error,) = house.post("/conversations/talk/advance", {"user_promt": "x"}).json()["errors"]

    assert error["message"] == "is not known here; did you mean user_prompt?"


@pytest.mark.parametrize("conversation", ["nobody", "%00", "a b", "%2E%2E", "a" * 256])
def test_what_belongs_to_no_conversation_is_404(house: Door, conversation: str) -> None:
    path = f"/conversations/{conversation}"
    responses = [
        house.post(f"{path}/clear", {}),
        house.get(f"{path}/reminders"),
        house.post(f"{path}/reminders", {"content": "x"}),
        house.patch(f"{path}/reminders/r", {"content": "x"}),
        house.delete(f"{path}/reminders/r"),
    ]

    for response in responses:
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("reminder", ["nothing", "%00", "1", "a" * 500])
def test_what_is_no_reminder_is_404(house: Door, reminder: str) -> None:
    _call(house, HEALTHY)
    path = f"/conversations/talk/reminders/{reminder}"

    for response in (house.patch(path, {"content": "x"}), house.delete(path)):
        assert response.status_code == 404
        assert response.json()["code"] == "not_found"


def test_one_reminder_has_no_address_to_read(house: Door) -> None:
    response = house.get("/conversations/talk/reminders/x")

    assert (response.status_code, response["Allow"]) == (405, "DELETE, PATCH")


def test_a_deleted_reminder_is_gone_the_second_time(house: Door) -> None:
    _call(house, HEALTHY)
    path = f"/conversations/talk/reminders/{_add(house, 'one')['id']}"

    assert [house.delete(path).status_code for _ in range(2)] == [204, 404]


def test_a_conversation_has_at_most_200_reminders(house: Door) -> None:
    _call(house, HEALTHY)
    row = Conversation.objects.get(name="talk")
    Reminder.objects.bulk_create(
        Reminder(
            project=row.project, conversation=row, name=f"rem_{number}", position=number,
            content="x", created_at=factories.NOW, updated_at=factories.NOW,
        )
        for number in range(1, 201)
    )  # fmt: skip

    added = house.post("/conversations/talk/reminders", {"content": "one more"})
    cleared = house.post("/conversations/talk/clear", {"reminder_content": "one more"})

    assert fields_of(added) == ["content"]
    assert fields_of(cleared) == ["reminder_content"]
    assert len(_list(house)) == 200
    assert house.get("/conversations/talk").json()["round"] == 1


def test_projects_do_not_see_each_others_reminders(house: Door, stranger: Door) -> None:
    _call(house, HEALTHY)
    added = _add(house, "one")
    path = f"/conversations/talk/reminders/{added['id']}"

    assert stranger.get("/conversations/talk/reminders").status_code == 404
    _call(stranger, CRITICAL)
    assert stranger.get("/conversations/talk/reminders").json() == {"items": []}
    assert stranger.patch(path, {"content": "theirs"}).status_code == 404
    assert stranger.delete(path).status_code == 404
    assert _advance(house)["action"] == "none"
    assert _list(house) == [(1, "one")]


def test_a_read_is_304_until_the_remediation_changes(house: Door) -> None:
    list(_steps(house, CAUTION, 4))
    tags = {path: house.get(path)["ETag"] for path in _READS}
    for path, tag in tags.items():
        assert house.get(path, if_none_match=tag).status_code == 304

    _add(house, "one")

    for path, tag in tags.items():
        assert house.get(path, if_none_match=tag).status_code == 200, path


_READS = ("/conversations/talk", "/conversations/talk/reminders")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/conversations/run-42/advance", examples.ADVANCE),
        ("/conversations/run-42/advance", examples.ADVANCE_WITH_PROMPT),
        ("/conversations/run-42/clear", examples.CLEAR),
        ("/conversations/run-42/reminders", examples.REMINDER),
    ],
)
def test_the_documented_examples_are_accepted(owner: Door, path: str, body: object) -> None:
    owner.post("/calls", examples.CALL)

    assert owner.post(path, body).status_code in (200, 201)


def test_an_erased_conversation_is_gone_at_every_address(owner: Door, stranger: Door) -> None:
    owner.post("/calls", {"id": "a", "conversation": "talk", "model": "openai/gpt-4o"})
    other = stranger.delete("/conversations/talk").json()

    first = owner.delete("/conversations/talk")
    again = owner.delete("/conversations/talk")

    nothing = {
        "conversation": "talk",
        "calls": 0,
        "messages": 0,
        "fits": 0,
        "plans": 0,
        "sub_agents": 0,
        "waiting_prompts": 0,
    }
    assert other == nothing
    assert (first.status_code, first.json()) == (200, {**nothing, "calls": 1})
    assert (again.status_code, again.json()) == (200, nothing)
    assert owner.get("/conversations/talk").status_code == 404
    assert owner.get("/calls/a").status_code == 404
    assert owner.delete("/conversations/talk?force=1").status_code == 422
    assert owner.delete("/conversations/%00").status_code == 422
