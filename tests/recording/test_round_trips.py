"""A few calls on PostgreSQL: asked about and stored in three round trips, and as they ever were."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.db import DatabaseError, connection, transaction

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.recorder import group_commit
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.ledger import LedgerCounts, ProcessLedger
from helmdash.records.models import (
    Budget,
    Call,
    CallPayload,
    Conversation,
    LearnedWindow,
    Project,
    RecorderLedger,
)
from helmdash.records.statements import direct
from helmdash.records.statements.direct import is_postgres
from tests.factories import NOW
from tests.recording.chats import nameless
from tests.recording.support import at_once, make_ruled_project, prompt, record, storing

pytestmark = [
    pytest.mark.skipif(not is_postgres(), reason="SQLite is asked without a round trip"),
    pytest.mark.django_db(transaction=True),
]

HELLO = ({"role": "user", "content": "hello"},)
OWN = ProcessLedger(
    name="here", started_at=NOW, seen_at=NOW, stopped_at=None, counts=LedgerCounts(stored=1)
)
# What a call is given by the database, or that is another project's.
_OTHERWISE = ("id", "project_id", "conversation_id", "call_id")


@contextmanager
def counted_round_trips() -> Iterator[list[int]]:
    """How often this thread's connection waits for the server within: one number, at the end."""
    driver, found = connection.connection.pgconn, [0]
    with tempfile.TemporaryFile("w+") as file:
        driver.trace(file.fileno())
        try:
            yield found
        finally:
            driver.untrace()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        lines = [line.split("\t") for line in file.read().splitlines()]
    found[0] = sum(line[1] == "F" and line[3] in {"Sync", "Query"} for line in lines)


def said(*texts: str) -> tuple[dict[str, str], ...]:
    return tuple({"role": "user", "content": text} for text in texts)


def test_a_report_takes_two_round_trips() -> None:
    project = make_ruled_project(payload="full")
    told = [
        prompt(9, id="new", conversation="another", messages=said("a")),
        prompt(10, id="next", conversation="another", messages=said("a", "b")),
        prompt(11, id="third", conversation="another", messages=said("a", "b", "c")),
        Capture(model="m", id="alone"),
    ]

    def work() -> list[int]:
        record(project, prompt(9, id="first", messages=HELLO), also=booked)
        found = []
        for capture in told:
            with counted_round_trips() as count:
                record(project, capture, also=booked)
            found += count
        return found

    # One to begin and for all that is asked, one for all that is told and the commit.
    assert storing(work) == [2, 2, 2, 2]
    assert Call.objects.count() == 5


def test_a_batch_that_begins_several_conversations_takes_as_few() -> None:
    project = make_ruled_project(payload="full")
    told = [
        prompt(9, id=f"call {name}", conversation=name, messages=said("system", name))
        for name in "abcd"
    ]

    def work() -> int:
        record(project, prompt(9, id="first", messages=HELLO), also=booked)
        with counted_round_trips() as count:
            record(project, *told, also=booked)
        return count[0]

    # As for one call: who begins the same ones meanwhile is met at their names.
    assert storing(work) == 2
    assert Call.objects.count() == 5


SEQUENCES: dict[str, list[list[Capture]]] = {
    "turns": [[prompt(n * 30_000, id=f"t{n}", messages=said(*"abcdef"[:n]))] for n in range(1, 6)],
    "told twice": [[prompt(5, id="one")], [prompt(5, id="one")], [prompt(6, id="two")]],
    "twice at once": [[prompt(5, id="one"), prompt(5, id="one"), prompt(6, id="two")]],
    "several": [
        [prompt(5, id=f"{n}-{talk}", conversation=talk) for talk in "abc"] for n in range(3)
    ],
    "beside": [
        [prompt(5, id="main")],
        [prompt(5, id="side", lane=Lane.SIDE)],
        [prompt(5, id="lone side", conversation="other", lane=Lane.SIDE)],
    ],
    "without a name": [
        [nameless("Please look", id="n1")],
        [nameless("Please look", "Fine.", "and then?", id="n2")],
        [nameless("Something else", id="n3"), nameless("A third", id="n4")],
    ],
    "failures": [
        [prompt(None, id="f1", http_status=500, finish_reason=None)],
        [prompt(125_000, id="f2", finish_reason="length")],
    ],
    "an agent's": [
        [Capture(model="m", id="inner", conversation="s", inside=("outer",))],
        [Capture(model="m", id="outer", conversation="s")],
    ],
    "by two names": [
        [Capture(model="m", id="g1", also_known=("resp-1",), routes=(CallRoute.GATEWAY,))],
        [Capture(model="m", id="resp-1", conversation="told", routes=(CallRoute.OTLP_SPAN,))],
    ],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_calls_are_stored_as_one_by_one(name: str) -> None:
    together = make_ruled_project(payload="full")
    apart = make_ruled_project(slug="apart", name="Apart", payload="full")

    def record_all(project: ProjectInfo) -> list[tuple[Recorded, ...]]:
        return [
            record(project, *captures, now=NOW + timedelta(seconds=number))
            for number, captures in enumerate(SEQUENCES[name])
        ]

    ours, theirs = storing(lambda: record_all(together)), record_all(apart)

    assert told_of(together, ours) == told_of(apart, theirs)


def told_of(project: ProjectInfo, answers: Sequence[object]) -> list[str]:
    """The answers and all rows of a project, as far as they are not numbered or named by chance."""
    rows = [
        row
        for model, order in ((Conversation, "id"), (Call, "id"), (CallPayload, "call_id"))
        for row in model.objects.filter(project_id=project.id).order_by(order).values()
    ]
    told = [
        str({key: value for key, value in row.items() if key not in _OTHERWISE}) for row in rows
    ]
    names = Conversation.objects.filter(project_id=project.id).order_by("id")
    for number, name in enumerate(names.values_list("name", flat=True)):
        told = [each.replace(f"'{name}'", f"'talk {number}'") for each in [*told, str(answers)]]
    return told


def test_budgets_that_were_edited_rule_at_once() -> None:
    project = make_ruled_project()

    def work() -> list[str]:
        levels: list[str] = []
        for context_length in (128_000, 40_000, 128_000):
            Budget.objects.get(key="openai/gpt-4o").delete()
            Budget.objects.create(
                key="openai/gpt-4o",
                input_tokens=30_000,
                output_tokens=1_500,
                tier="C",
                context_length=context_length,
            )
            (answer,) = record(project, prompt(39_000, id=f"with {context_length} {len(levels)}"))
            levels.append(answer.health.level.value)
        return levels

    assert storing(work) == ["healthy", "critical", "healthy"]


def booked(answers: Sequence[Recorded]) -> None:
    group_commit.book(replace(OWN, counts=LedgerCounts(stored=len(answers))))


def test_the_ledger_is_written_with_the_call() -> None:
    project = make_ruled_project()

    def work() -> None:
        for name in ("first", "second"):
            record(project, prompt(5, id=name), also=booked)
            assert RecorderLedger.objects.get(name="here").stored == 1
            RecorderLedger.objects.update(stored=0)

    storing(work)

    assert Call.objects.count() == 2


def test_a_fault_of_the_ledger_refuses_no_call() -> None:
    project = make_ruled_project()

    def faulty(answers: Sequence[Recorded]) -> None:
        group_commit.book(replace(OWN, counts=LedgerCounts(stored=-1)))

    def work() -> None:
        record(project, prompt(5, id="first"), also=booked)
        record(project, prompt(5, id="second"), also=faulty)
        record(project, prompt(5, id="third"), also=booked)

    storing(work)

    assert set(Call.objects.values_list("name", flat=True)) == {"first", "second", "third"}
    assert RecorderLedger.objects.get(name="here").stored == 1


def test_what_cannot_be_stored_leaves_nothing_behind() -> None:
    project = make_ruled_project()

    def work() -> None:
        record(project, prompt(5, id="first"), also=booked)
        with pytest.raises(DatabaseError):
            record(project, prompt(5, id="good"), prompt(5, id="bad", attempt=-1), also=booked)
        record(project, prompt(5, id="last"), also=booked)

    storing(work)

    assert set(Call.objects.values_list("name", flat=True)) == {"first", "last"}
    assert Conversation.objects.get().generation == 2


def test_a_conversation_begun_by_many_at_once_is_one() -> None:
    project = make_ruled_project()

    def begin(number: int) -> Recorded:
        return storing(lambda: record(project, prompt(5, id=f"call {number}"), also=booked)[0])

    answers = at_once([partial(begin, number) for number in range(8)])

    assert sorted(answer.generation or 0 for answer in answers) == [*range(1, 9)]
    assert Conversation.objects.get().generation == 8


def test_threads_that_store_tell_each_their_own() -> None:
    """A writer process has a thread for each server process of its host."""
    project = make_ruled_project()
    renaming, asked = "UPDATE records_project SET name = %s WHERE id = %s", "SELECT %s::int"

    def by_another() -> tuple[bool, list[tuple[int]]]:
        record(project, prompt(5, id="another's"), also=booked)
        return direct.is_told_together(), direct.ask_prepared(asked, [2])

    def work() -> tuple[bool, list[tuple[int]]]:
        told = direct.Question(asked, [1])
        with transaction.atomic(), direct.asked_ahead([told]), direct.told_together():
            direct.tell_prepared(renaming, ["mine", project.id])
            found = storing(by_another)
            assert direct.is_told_together()
            assert direct.ask_prepared(*told) == [(1,)]
        return found

    assert storing(work) == (False, [(2,)])
    assert Call.objects.get().name == "another's"
    assert Project.objects.get(pk=project.id).name == "mine"


def test_what_another_writer_stored_while_its_conversation_was_waited_for_is_met() -> None:
    """The names of calls are read when the conversation is locked: a second telling joins the first
    by a name that is not unique to it."""
    project = make_ruled_project()
    record(project, prompt(5, id="before"))
    first = prompt(6, id="by gateway", also_known=("resp-1",), routes=(CallRoute.GATEWAY,))
    second = prompt(6, id="by span", also_known=("resp-1",), routes=(CallRoute.OTLP_SPAN,))

    assert told_while_it_waits(project, second, first).duplicate
    assert set(Call.objects.values_list("name", flat=True)) == {"before", "by gateway"}


def test_what_another_writer_stored_while_a_batch_waited_to_begin_conversations_is_met() -> None:
    """Several are inserted before anything else; what was asked ahead is older than that."""
    project = make_ruled_project()
    first = prompt(6, id="by gateway", also_known=("resp-1",), routes=(CallRoute.GATEWAY,))
    second = prompt(6, id="by span", also_known=("resp-1",), routes=(CallRoute.OTLP_SPAN,))
    beside = prompt(5, id="beside", conversation="another")

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            record(project, first)
            waiting = threads.submit(storing, lambda: record(project, second, beside, also=booked))
            wait_for_a_lock()
        answers = waiting.result()

    assert [answer.duplicate for answer in answers] == [True, False]
    assert set(Call.objects.values_list("name", flat=True)) == {"by gateway", "beside"}


def test_what_another_writer_stored_while_a_sessions_conversation_was_waited_for_is_met() -> None:
    """It is found by another name than the batch has for it, and locked after what was asked
    ahead."""
    project = make_ruled_project()
    told = {"conversation": "session", "client_name": "gemini-cli", "routes": (CallRoute.OTLP_LOG,)}
    gateway = (CallRoute.GATEWAY,)
    record(project, nameless("Please look", id="g1", also_known=("resp-1",), routes=gateway))
    record(project, prompt(6, id="log 1", also_known=("resp-1",), **told))
    later = nameless(
        "Please look", "Fine.", "and?", id="g2", also_known=("resp-2",), routes=gateway
    )
    again = prompt(6, id="log 2", also_known=("resp-2",), **told)

    assert told_while_it_waits(project, again, later).duplicate
    assert set(Call.objects.values_list("name", flat=True)) == {"g1", "g2"}


def test_who_waits_to_begin_a_conversation_keeps_nobody_from_what_it_has_learned() -> None:
    """Else who has begun it waits for that, and the database breaks one off after a second."""
    project = make_ruled_project()
    told = "This model's maximum context length is 16384 tokens. You sent 20000."
    failed = {"status": "error", "http_status": 400, "finish_reason": None, "error_message": told}
    record(project, prompt(5, id="before", conversation="other"))

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            record(project, prompt(5, id="first"))
            refused = prompt(None, id="second", **failed)
            waiting = threads.submit(storing, lambda: record(project, refused, also=booked))
            wait_for_a_lock()
            direct.tell("SET LOCAL lock_timeout = '500ms'", [])
            record(project, prompt(None, id="third", conversation="another", **failed))
        waiting.result()

    assert LearnedWindow.objects.get().tokens == 16_384
    assert Call.objects.count() == 4


def told_while_it_waits(project: ProjectInfo, waiting: Capture, meanwhile: Capture) -> Recorded:
    """The answer to a call that waits for its conversation until another writer has stored one."""
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            list(Conversation.objects.select_for_update())
            answer = threads.submit(storing, lambda: record(project, waiting, also=booked)[0])
            wait_for_a_lock()
            record(project, meanwhile)
        return answer.result()


def wait_for_a_lock() -> None:
    """Until a connection to this database waits for another one."""
    asked = (
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE NOT granted AND pg_stat_activity.datname = current_database()"
    )
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(asked)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")
