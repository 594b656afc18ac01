"""PostgreSQL stores the first calls of a batch while those behind them are placed: what is stored
is the same as if all were sent once they are placed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.recording import call_batch, message_keys, truncation
from helmdash.operations.recording.inference import conversation_name
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import (
    Call,
    CallName,
    CallPayload,
    Conversation,
    HealthChange,
    Project,
    Round,
    StoredMessage,
)
from helmdash.records.statements import bulk, direct, partitions
from helmdash.records.statements.direct import is_postgres
from tests.factories import NOW
from tests.recording.chats import TASK, nameless
from tests.recording.support import (
    HEALTHY,
    make_ruled_project,
    prompt,
    record,
    somebody_else,
    storing,
)
from tests.recording.test_repeated_streams import BROKEN, stream

pytestmark = [
    pytest.mark.skipif(not is_postgres(), reason="SQLite stores rows in this process"),
    pytest.mark.django_db(transaction=True),
]

NEVER = 1_000_000
BY_GATEWAY: dict[str, Any] = {"routes": (CallRoute.GATEWAY,)}
CALLS = [
    prompt(HEALTHY, id=f"call {n}", conversation=f"talk {n % 7}", **BY_GATEWAY) for n in range(130)
]
STREAM = stream(0, id="stream", conversation="streams", **BROKEN)
AGAIN = stream(10, id="again", conversation="streams")
BEFORE = stream(-10, id="before", conversation="streams", **BROKEN)


def kept(project: ProjectInfo) -> list[list[dict[str, Any]]]:
    """All that is stored of calls, by names in the place of numbers."""
    named: dict[Any, Any] = {None: None, **dict(Conversation.objects.values_list("id", "name"))}
    calls: dict[Any, Any] = dict(Call.objects.values_list("id", "name"))
    told: list[list[dict[str, Any]]] = []
    for model in (Call, CallName, CallPayload, Conversation, HealthChange, Round, StoredMessage):
        rows: list[dict[str, Any]] = []
        for found in model._default_manager.filter(project_id=project.id).values():
            row = dict(found)
            for gone in ("id", "project_id", "rules_id"):
                row.pop(gone, None)
            if "conversation_id" in row:
                row["conversation_id"] = named[row["conversation_id"]]
            if "call_id" in row:
                row["call_id"] = calls[row["call_id"]]
            rows.append(row)
        told.append(sorted(rows, key=str))
    return told


def recorded(
    monkeypatch: pytest.MonkeyPatch, slug: str, batches: Sequence[Sequence[Capture]], at_once: int
) -> tuple[list[Any], list[list[dict[str, Any]]], list[str]]:
    """The answers, what is kept, and the tables of the statements in their order. at_once: so many
    calls are sent while others are placed."""
    monkeypatch.setattr(call_batch, "_SENT_AT_ONCE", at_once)
    truncation.forget()
    message_keys.forget()
    project, tables = make_ruled_project(slug=slug, payload="full"), list[str]()
    tell = direct.tell_prepared

    def noted(statement: str, values: Sequence[object]) -> None:
        tables.append(statement.split('"')[1])
        tell(statement, values)

    with monkeypatch.context() as patched:
        patched.setattr(bulk, "tell_prepared", noted)
        answers = storing(lambda: [each for one in batches for each in record(project, *one)])
    return answers, kept(project), tables


def test_calls_are_sent_while_those_behind_them_are_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take: Callable[..., Any] = call_batch.CallBatch.take
    taken = list[int]()

    def counted(batch: call_batch.CallBatch, item: Any) -> Any:
        answer = take(batch, item)
        taken.append(batch._sent)
        return answer

    monkeypatch.setattr(call_batch.CallBatch, "take", counted)
    answers, rows, tables = recorded(monkeypatch, "early", [CALLS], 25)

    assert [answer.id for answer in answers] == [f"call {n}" for n in range(130)]
    assert taken == [(n + 1) // 25 * 25 for n in range(130)]
    calls, beside = Call._meta.db_table, CallPayload._meta.db_table
    assert tables[:11] == [calls, beside] * 5 + [Conversation._meta.db_table]
    assert tables.count(calls) == 6
    assert recorded(monkeypatch, "late", [CALLS], NEVER)[1] == rows


def sized(number: int, size: int, tokens: int, **over: Any) -> Capture:
    """A call of another model, each of a conversation of its own."""
    over |= {"sent": SentSizes(bytes=size, messages=4), "model": "openai/gpt-4o-mini", **BY_GATEWAY}
    return prompt(tokens, id=f"sized {number}", conversation=f"sized {number}", **over)


# Of what a provider adds to, sizes tell nothing of a cut; of dense text they are learned from.
DENSE = {n: sized(n, 25_000 + 100 * n, 10_000 + 40 * n, sent_is_prompt=False) for n in range(40)}
INFERRED = nameless(TASK, reply="Done.", id="inferred", usage={"prompt_tokens": 90_000})
TALK = conversation_name("inferred")
SUMMED_UP = prompt(90_000, id="asked", conversation=TALK, purpose="compaction")
GONE_ON = nameless(TASK, "Done.", "And now?", id="gone on", usage={"prompt_tokens": 90_000})
SMALLER = prompt(9_000, id="smaller", conversation=TALK)


def another_door(call: Capture) -> Capture:
    return replace(call, routes=(CallRoute.OTLP_LOG,), finish_reason="length")


# What comes where, of 130 calls.
UNUSUAL: dict[str, tuple[dict[int, Capture], Sequence[Capture]]] = {
    "a stream that is asked for again": ({3: STREAM, 60: AGAIN}, ()),
    "one that is asked for again soon": ({3: STREAM, 4: AGAIN}, ()),
    "one that was recorded, asked for again": ({60: AGAIN}, [STREAM]),
    "the attempt before comes later": ({3: AGAIN, 60: BEFORE}, ()),
    "the attempt before comes later, of a stored one": ({60: BEFORE}, [AGAIN]),
    "the same call twice": ({3: CALLS[100]}, ()),
    "the same call by another door": ({100: another_door(CALLS[3])}, ()),
    "a stored call": ({60: replace(CALLS[60], id="first")}, [replace(CALLS[60], id="first")]),
    "calls of no conversation": ({n: nameless(TASK, id=f"n {n}") for n in (3, 60, 90)}, ()),
    "one month and another": (
        {60: replace(CALLS[60], started_at=NOW - timedelta(days=70))},
        (),
    ),
    "sizes that tell nothing of a cut": ({**DENSE, 60: sized(60, 24_000, 4_555)}, ()),
    "what was asked for before a call that names nothing": (
        {3: GONE_ON, 60: SMALLER},
        [INFERRED, SUMMED_UP],
    ),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_what_is_told_of_a_call_that_is_sent_is_kept(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    unusual, before = UNUSUAL[what]
    batch = [unusual.get(n, call) for n, call in enumerate(CALLS)]
    batches = [*([each] for each in before), batch]

    early = recorded(monkeypatch, "early", batches, 25)
    late = recorded(monkeypatch, "late", batches, NEVER)

    assert early[:2] == late[:2]


class StoppedError(Exception):
    """Of ours, while a call is placed."""


@contextmanager
def before_call(number: int, what: Callable[[], None]) -> Iterator[None]:
    """Do something before the call of this number is placed, once."""
    take: Callable[..., Any] = call_batch.CallBatch.take
    count = iter(range(1_000))

    def taken(batch: call_batch.CallBatch, item: Any) -> Any:
        if next(count) == number:
            what()
        return take(batch, item)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(call_batch.CallBatch, "take", taken)
        yield


def stop() -> None:
    raise StoppedError


def terminate() -> None:
    """As an administrator would, from another connection."""
    with somebody_else() as other:
        process = connection.connection.info.backend_pid
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [process])


@pytest.mark.parametrize("number", [10, 60, 129])
@pytest.mark.parametrize(
    ("what", "error"), [(stop, StoppedError), (terminate, OperationalError)], ids=["ours", "lost"]
)
def test_a_batch_that_ends_half_sent_is_not_stored(
    what: Callable[[], None], error: type[Exception], number: int
) -> None:
    project = make_ruled_project(payload="full")

    def work() -> int:
        with before_call(number, what), pytest.raises(error):
            record(project, *CALLS)
        stored = Call.objects.count()
        record(project, *CALLS)
        return stored

    assert storing(work) == 0
    assert Call.objects.count() == CallName.objects.count() == len(CALLS)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_batch_begins_anew_within_another_transaction(is_kept: bool) -> None:
    project = make_ruled_project(payload="full")
    batch = [{3: STREAM, 60: AGAIN}.get(n, call) for n, call in enumerate(CALLS)]

    def work() -> None:
        with suppress(StoppedError), transaction.atomic():
            Project.objects.filter(pk=project.id).update(name="Outer")
            record(project, *batch)
            if not is_kept:
                raise StoppedError

    storing(work)

    assert Call.objects.count() == (len(batch) if is_kept else 0)
    assert (Project.objects.get(pk=project.id).name == "Outer") == is_kept


@pytest.mark.parametrize("number", [10, 60, 129])
def test_a_month_that_is_dropped_while_a_batch_is_sent_is_made_again(number: int) -> None:
    """By another process: this one takes the month for known. Once a call of it is sent, who drops
    waits."""
    project = make_ruled_project(payload="full")
    old = NOW - timedelta(days=200)
    batch = [
        replace(call, started_at=old if n in (9, 70, 128) else NOW) for n, call in enumerate(CALLS)
    ]
    dropped = list[bool]()

    def drop() -> None:
        with somebody_else() as other:
            other.execute("SET lock_timeout = '200ms'")
            with suppress(psycopg.errors.LockNotAvailable):
                for table in reversed(partitions.TABLES):
                    month = partitions.partition_of(table, partitions.month_of(old))
                    other.execute(f"DROP TABLE {month}".encode())
                other.commit()
                dropped.append(True)

    def work() -> None:
        record(project, replace(CALLS[0], id="first", started_at=old))
        with before_call(number, drop):
            record(project, *batch)

    storing(work)

    assert dropped == [True] * (number == 10)
    names = {*Call.objects.values_list("name", flat=True)}
    assert names - {"first"} == {call.id for call in batch}


@pytest.mark.parametrize("seed", range(8))
def test_any_batch_is_stored_the_same_way(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    made = list[Capture]()
    for number in range(400):
        id, seconds = f"call {number}", number * chance.choice([0.1, 5])
        name = f"talk {chance.randrange(12)}"
        at = NOW + timedelta(seconds=seconds)
        match chance.randrange(40):
            case 0 if made:
                call = chance.choice(made[-60:])
            case 1 if made:
                call = another_door(chance.choice(made[-60:]))
            case 2 | 3:
                ends = BROKEN if chance.random() < 0.5 else {}
                call = stream(seconds, TASK, "Go on.", id=id, conversation=name, **ends)
            case 4:
                call = nameless(TASK, "Yes.", str(chance.randrange(3)), id=id, started_at=at)
            case 5:
                call = prompt(None, id=id, conversation=None, started_at=at)
            case 6:
                call = prompt(9, id=id, conversation=name, started_at=at - timedelta(days=40))
            case _:
                said = ({"role": "user", "content": f"question {chance.randrange(90)}"},)
                tokens = chance.randrange(1, 140_000)
                call = prompt(tokens, id=id, conversation=name, started_at=at, messages=said)
        made.append(call if call.routes else replace(call, **BY_GATEWAY))
    batches = [made[at : at + 80] for at in range(0, len(made), 80)]

    early = recorded(monkeypatch, "early", batches, 7)
    late = recorded(monkeypatch, "late", batches, NEVER)

    assert early[:2] == late[:2]


def test_a_message_that_another_process_stored_is_stored_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A conversation has it whose next call comes last, and a new one shares it."""

    def told(id: str, conversation: str, *texts: str) -> Capture:
        said = tuple({"role": "user", "content": text} for text in texts)
        return prompt(9, id=id, conversation=conversation, messages=said)

    stored = [told("stored", "elsewhere", "first", "second")]
    batch = [told("shares", "here", "first", "second", "other"), *CALLS[:60]]
    batch.append(told("goes on", "elsewhere", "first", "second", "third"))

    def bodies(slug: str, at_once: int) -> list[str]:
        monkeypatch.setattr(call_batch, "_SENT_AT_ONCE", at_once)
        project = make_ruled_project(slug=slug, payload="full")
        storing(lambda: record(project, *stored, now=NOW - timedelta(minutes=1)))
        message_keys.forget()
        storing(lambda: record(project, *batch))
        kept = StoredMessage.objects.filter(project_id=project.id)
        return sorted(str(body["content"]) for body in kept.values_list("body", flat=True))

    assert bodies("early", 25) == bodies("late", NEVER) == ["first", "other", "second", "third"]
