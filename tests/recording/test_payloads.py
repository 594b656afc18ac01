"""What is kept of a call's texts: nothing, masked, or as sent; each message once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.calls.capture import CapturedTrim
from helmdash.core.calls.withheld import NOT_KEPT
from helmdash.core.text.messages import canonical_json
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.calls.calls import CallDetail
from helmdash.records.models import Call, CallPayload, Conversation, StoredMessage
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

WORD = "pregnant"
SECRET = "sk-proj-abcdefghijklmnop1234"
QUESTION = {"role": "user", "content": f"my key is {SECRET}, write to ann@example.org"}
ANSWER = {"role": "assistant", "content": "I will."}
HISTORY: tuple[dict[str, Any], ...] = ({"role": "system", "content": "Be brief."}, QUESTION)


@pytest.fixture
def full(db: None) -> ProjectInfo:
    return make_ruled_project(payload="full")


def detail(project: ProjectInfo, name: str = "one") -> CallDetail:
    found = calls.find(project_id=project.id, call_id=name)
    assert found is not None
    return found


def test_off_keeps_figures_and_no_text(project: ProjectInfo) -> None:
    trim = CapturedTrim(before_bytes=10, after_bytes=5, dropped=("entry.extra",))
    record(
        project,
        make_capture(
            id="one",
            messages=HISTORY,
            content=f"noted {SECRET}",
            trim=trim,
            metadata={"step": 3},
            attempts=({"http_status": 429},),
        ),
    )

    kept = detail(project)
    assert (kept.messages, kept.content) == (None, None)
    assert not StoredMessage.objects.exists()
    assert kept.usage_raw == {"prompt_tokens": 20_000, "completion_tokens": 200}
    assert kept.metadata == {"step": 3}
    assert kept.trim_dropped == ("entry.extra",)
    assert kept.attempts == ({"http_status": 429},)
    assert kept.call.sent.messages == 2
    assert kept.call.sent.bytes == sum(
        len(text) for text in ('{"content":"Be brief.","role":"system"}', canonical_json(QUESTION))
    )
    assert kept.call.content_len == kept.call.raw_content_len == len(f"noted {SECRET}")


def test_full_keeps_the_texts_as_they_were_sent(full: ProjectInfo) -> None:
    record(full, make_capture(id="one", messages=HISTORY, content="<think>hm</think>Yes. Grüße"))

    kept = detail(full)
    assert kept.messages == HISTORY
    assert kept.content == "<think>hm</think>Yes. Grüße"
    assert kept.call.raw_content_len == len("<think>hm</think>Yes. Grüße".encode())
    assert kept.call.content_len == len("Yes. Grüße".encode())


def test_redacted_masks_secrets_in_messages_and_answers(db: None) -> None:
    project = make_ruled_project(payload="redacted")
    tool = {"role": "tool", "content": [{"type": "text", "text": f"Bearer {SECRET}"}]}

    given = {"messages": (QUESTION, tool), "content": f"ok, {SECRET}"}
    record(project, make_capture(id="one", metadata={"step": 3, "by": [SECRET]}, **given))

    kept = detail(project)
    assert SECRET not in repr(kept)
    assert kept.metadata == {"step": 3, "by": ["[key]"]}
    assert "ann@example.org" not in repr(kept)
    assert kept.messages is not None
    assert kept.messages[0] == {"role": "user", "content": "my key is [key], write to [email]"}
    assert kept.content == "ok, [key]"


@pytest.mark.parametrize("told_by", ["message", "code"])
def test_off_keeps_nothing_of_an_error_that_quotes_the_prompt(db: None, told_by: str) -> None:
    project = make_ruled_project(payload="off")
    quoting = f"Invalid value: 'I am {WORD}'. This model's maximum context length is 8192 tokens."

    record(
        project,
        make_capture(
            id="one",
            http_status=400,
            error_code=quoting if told_by == "code" else "context_length_exceeded",
            error_message=quoting,
            error_is_own=False,
            attempts=({"number": 1, "status": 503, "message": quoting}, {"number": 2}),
        ),
    )

    found = detail(project)
    row = Call.objects.select_related("payload").get()
    assert WORD not in repr(found) + repr(vars(row)) + repr(vars(row.payload))
    assert row.cause == "context_overflow"
    assert "maximum context length is 8192 tokens" in row.error_message
    assert "maximum context length is 8192 tokens" in row.cause_detail


def test_off_keeps_our_own_sentences(db: None) -> None:
    project = make_ruled_project(payload="off")
    said = "Upstream openai closed the connection."

    record(
        project,
        make_capture(
            id="one", error_code="connection_closed", error_message=said, error_is_own=True
        ),
    )

    assert Call.objects.get().error_message == said


@pytest.mark.parametrize("payload", ["redacted", "full"])
def test_error_messages_are_always_masked_and_clipped(db: None, payload: str) -> None:
    project = make_ruled_project(payload=payload)

    record(
        project,
        make_capture(
            id="one",
            http_status=401,
            error_message=f"Incorrect API key provided: {SECRET} " + "x" * 5_000,
        ),
    )

    message = detail(project).call.error_message
    assert message is not None
    assert SECRET not in message
    assert len(message) == 2_000
    assert SECRET not in Call.objects.get().cause_detail


def test_a_resent_history_is_stored_once(full: ProjectInfo) -> None:
    record(full, make_capture(id="one", messages=HISTORY))
    record(full, make_capture(id="two", messages=(*HISTORY, ANSWER)))
    record(
        full,
        make_capture(id="three", messages=(*HISTORY, ANSWER), conversation="other"),
        make_capture(id="four", messages=(*HISTORY, ANSWER, QUESTION), conversation="other"),
    )

    assert StoredMessage.objects.count() == 4  # system, question, answer, the question again
    assert detail(full, "one").messages == HISTORY
    assert detail(full, "four").messages == (*HISTORY, ANSWER, QUESTION)


def test_the_order_of_keys_does_not_make_another_message(full: ProjectInfo) -> None:
    turned = {"content": QUESTION["content"], "role": "user"}

    record(full, make_capture(id="one", messages=(QUESTION,)))
    record(full, make_capture(id="two", messages=(turned,)))

    assert StoredMessage.objects.count() == 1
    assert detail(full, "one").call.prompt_hash == detail(full, "two").call.prompt_hash


def test_a_message_seen_again_is_marked_once_a_day(full: ProjectInfo) -> None:
    record(full, make_capture(messages=HISTORY), now=NOW)
    record(full, make_capture(messages=HISTORY), now=NOW + timedelta(hours=23))
    after_hours = set(StoredMessage.objects.values_list("latest_seen_at", flat=True))
    record(full, make_capture(messages=HISTORY), now=NOW + timedelta(hours=25))
    after_a_day = set(StoredMessage.objects.values_list("latest_seen_at", flat=True))

    assert after_hours == {NOW}
    assert after_a_day == {NOW + timedelta(hours=25)}


def test_two_projects_do_not_share_messages(full: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other", payload="full")

    record(full, make_capture(messages=HISTORY))
    record(stranger, make_capture(messages=HISTORY))

    assert StoredMessage.objects.count() == 4


def test_a_call_with_nothing_beside_it_has_no_side_row(project: ProjectInfo) -> None:
    record(project, make_capture(usage=None))

    assert Call.objects.count() == 1
    assert not CallPayload.objects.exists()


# PostgreSQL stores NUL in no text, and UTF-8 knows no lone surrogate: U+FFFD stands for them.
@pytest.mark.parametrize("odd", ["\0", "\ud800"])
def test_characters_that_cannot_be_stored_are_replaced(full: ProjectInfo, odd: str) -> None:
    message = {"role": "user", "content": f"a{odd}b", f"k{odd}": [f"{odd}", {"x": f"{odd}"}]}

    record(
        full,
        make_capture(
            id="one",
            messages=(message,),
            content=f"c{odd}d",
            error_message=f"e{odd}f",
            pack=f"p{odd}",
            metadata={"note": f"m{odd}n"},
        ),
    )

    kept = detail(full)
    assert kept.messages == (
        {"role": "user", "content": "a\ufffdb", "k\ufffd": ["\ufffd", {"x": "\ufffd"}]},
    )
    assert (kept.content, kept.call.error_message) == ("c\ufffdd", "e\ufffdf")
    assert (kept.call.pack, kept.metadata) == ("p\ufffd", {"note": "m\ufffdn"})


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (2**70, 2**70),  # more than 64 bits
        (float("inf"), None),
        (0.25, 0.25),
        ("\\u0000", "\\u0000"),  # six characters, not one
        ("Grüße 🧭", "Grüße 🧭"),
    ],
)
def test_any_json_value_survives_in_metadata(
    project: ProjectInfo, value: object, stored: object
) -> None:
    record(project, make_capture(id="one", metadata={"value": value}))

    assert detail(project).metadata == {"value": stored}


def test_a_batch_is_stored_whole_or_not_at_all(full: ProjectInfo) -> None:
    if connection.vendor == "sqlite":
        bad = make_capture(id="bad", http_status=-1)  # breaks a CHECK
    else:
        bad = make_capture(id="bad", provider="x" * 1_000)  # does not fit its column

    with pytest.raises((DataError, IntegrityError)):
        record(full, make_capture(id="good", messages=HISTORY), bad)

    assert not Call.objects.exists()
    assert not Conversation.objects.exists()
    assert not StoredMessage.objects.exists()


@pytest.mark.parametrize("size", [1, 64])
def test_the_number_of_statements_does_not_grow_with_the_batch(
    full: ProjectInfo, size: int
) -> None:
    record(full, make_capture(messages=HISTORY))  # the tables of budgets are read by now

    with CaptureQueriesContext(connection) as queries:
        record(
            full,
            *(make_capture(id=f"{n}", messages=(*HISTORY, {"n": n})) for n in range(size)),
        )

    assert len(queries) <= 16


@pytest.mark.parametrize(
    ("payload", "kept"), [("redacted", "[masked]"), ("full", "EMP-77"), ("off", None)]
)
def test_own_patterns_mask_kept_texts_and_errors_alike(
    db: None, payload: str, kept: str | None
) -> None:
    project = make_ruled_project(payload=payload, redaction_patterns=[r"EMP-\d+"])
    message = {"role": "user", "content": "about EMP-77"}
    record(
        project,
        make_capture(
            id="x", messages=(message,), content="EMP-77", error_message="EMP-77 is unknown"
        ),
    )

    found = calls.find(project_id=project.id, call_id="x")

    assert found is not None
    said = NOT_KEPT if payload == "off" else "[masked] is unknown"
    assert found.call.error_message == said
    assert found.content == kept
    told = None if kept is None else ({"role": "user", "content": f"about {kept}"},)
    assert found.messages == told
