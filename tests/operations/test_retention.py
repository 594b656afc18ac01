"""Retention: what is older than a project wants goes, in batches; what is in use stays."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL
from helmdash.operations.database.transactions import write, write_and_pause
from helmdash.operations.retention.expired import (
    Retained,
    count_expired,
    delete_expired,
    forget_answers,
)
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.records.access.secrets import seal
from helmdash.records.models import (
    Call,
    CallName,
    CallPayload,
    Conversation,
    FailureMark,
    Fit,
    HealthChange,
    PlanAttempt,
    PlanCatalog,
    PlanRecord,
    PlanStep,
    Round,
    StoredMessage,
    TrialCall,
)
from tests.factories import NOW, make_capture, make_trial
from tests.plan_rows import add_attempt, make_plan
from tests.recording.support import make_ruled_project, record

SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """Keeps texts, for thirty days."""
    return make_ruled_project(payload="full", retention_days=30)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def record_days_ago(project: ProjectInfo, days: float, name: str, **over: object) -> None:
    user = {"role": "user", "content": name}
    capture = make_capture(
        id=name, conversation=f"of-{name}", messages=(SYSTEM, user), started_at=days_ago(days)
    )
    record(project, replace(capture, **over), now=days_ago(days))  # type: ignore[arg-type]


def make_fit(project: ProjectInfo, days: float) -> None:
    Fit.objects.create(
        project_id=project.id,
        name=f"fit-{days}",
        model="openai/gpt-4o",
        intent_sha="0" * 64,
        catalog_digest="0" * 64,
        before_bytes=2,
        after_bytes=2,
        fits=True,
        trim={},
        budget={},
        created_at=days_ago(days),
    )


def test_what_is_too_old_goes_with_all_that_belongs_to_it(project: ProjectInfo) -> None:
    record_days_ago(project, 40, "old")
    record_days_ago(project, 20, "young")
    around = {"conversation": None, "inside": ("otel:t:1",), "messages": ()}
    record_days_ago(project, 40, "otel:t:2", **around)
    make_fit(project, 31)
    make_fit(project, 29)

    done = delete_expired(actor=SHELL, project=project, now=NOW)

    assert done == Retained(calls=2, conversations=1, fits=1)
    assert [call.name for call in Call.objects.all()] == ["young"]
    assert [row.name for row in Conversation.objects.all()] == ["of-young"]
    for model in (CallName, CallPayload, Round, HealthChange, Fit):
        assert model.objects.count() == 1, model
    assert {row.body["content"] for row in StoredMessage.objects.all()} == {"Be brief.", "young"}
    kept = calls.find(project_id=project.id, call_id="young")
    assert kept is not None
    assert kept.messages == (SYSTEM, {"role": "user", "content": "young"})


def test_no_row_of_a_trial_outlives_its_call(project: ProjectInfo) -> None:
    trial = make_trial(project=project)
    for days, name, number in ((40, "old", trial.pk), (41, "of none", 77), (1, "new", trial.pk)):
        record_days_ago(project, days, name, trial=f"{number}:today:{'0' * 16}")
    # As one whose call went with its whole month.
    TrialCall.objects.create(
        project_id=project.id,
        trial=trial,
        arm="suggested",
        unit="0" * 16,
        call_number=10**6,
        started_at=days_ago(60),
    )

    delete_expired(actor=SHELL, project=project, now=NOW, batch=1)

    left = TrialCall.objects.values_list("call_number", flat=True)
    assert list(left) == list(Call.objects.values_list("id", flat=True))
    assert len(left) == 1


def test_counting_says_what_deleting_would_do_and_deletes_nothing(project: ProjectInfo) -> None:
    record_days_ago(project, 40, "old")
    record_days_ago(project, 20, "young")
    make_fit(project, 31)

    counted = count_expired(project=project, now=NOW)

    assert Call.objects.count() == 2
    assert counted == delete_expired(actor=SHELL, project=project, now=NOW)


def test_a_conversation_that_goes_on_loses_only_its_old_calls(project: ProjectInfo) -> None:
    record_days_ago(project, 40, "old", conversation="talk")
    record_days_ago(project, 20, "young", conversation="talk")

    counted = count_expired(project=project, now=NOW)
    done = delete_expired(actor=SHELL, project=project, now=NOW)

    assert counted == done == Retained(calls=1, conversations=0, fits=0)
    row = Conversation.objects.get()
    assert (row.name, row.generation) == ("talk", 2)
    assert Call.objects.get().generation == 2


def test_the_next_call_goes_on_counting_after_old_ones_are_gone(project: ProjectInfo) -> None:
    record_days_ago(project, 40, "old", conversation="talk")
    record_days_ago(project, 20, "young", conversation="talk")
    delete_expired(actor=SHELL, project=project, now=NOW)

    (answer,) = record(project, make_capture(conversation="talk"))

    assert answer.generation == 3


def test_a_conversation_whose_newest_call_was_reported_late_stays(project: ProjectInfo) -> None:
    record_days_ago(project, 10, "young", conversation="talk")
    late = make_capture(id="late", conversation="talk", started_at=days_ago(50))
    record(project, late, now=days_ago(9))

    done = delete_expired(actor=SHELL, project=project, now=NOW)

    assert (done.calls, done.conversations) == (1, 0)
    assert Conversation.objects.get().name == "talk"


def test_messages_that_a_kept_call_carries_stay(project: ProjectInfo) -> None:
    # Seen for the first time long ago, and resent with a call that is kept.
    record_days_ago(project, 60, "first", conversation="talk")
    shared = StoredMessage.objects.get(body__content="Be brief.")
    record_days_ago(project, 29.5, "again", conversation="talk")

    delete_expired(actor=SHELL, project=project, now=NOW)

    assert StoredMessage.objects.filter(pk=shared.pk).exists()
    kept = calls.find(project_id=project.id, call_id="again")
    assert kept is not None
    assert kept.messages is not None
    assert kept.messages[0] == SYSTEM


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_a_message_stays_that_a_call_brings_again_while_it_is_being_deleted() -> None:
    project = make_ruled_project(payload="full", retention_days=30)
    record_days_ago(project, 60, "first", conversation="talk")
    messages = StoredMessage.objects.order_by("id")
    system, user = messages.values_list("pk", flat=True)

    def retain() -> None:
        try:
            delete_expired(actor=SHELL, project=project, now=NOW)
        finally:
            connection.close()

    other = threading.Thread(target=retain)

    def bring_again() -> None:
        messages.filter(pk=system).update(latest_seen_at=NOW)
        other.start()
        end = time.monotonic() + 20
        while not _is_waited_for():
            assert time.monotonic() < end
            time.sleep(0.01)

    write(bring_again)
    other.join()

    assert [*messages.values_list("pk", flat=True)] == [system]
    assert user != system


def _is_waited_for() -> bool:
    """Whether somebody waits for what this connection has locked."""
    with connection.cursor() as cursor:
        # Of what pg_stat_activity says a transaction sees one moment only.
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted"
            " AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


def test_words_on_failures_go_with_the_calls_they_were_said_of(project: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other", retention_days=None)
    for days, whose in ((31, project), (29, project), (31, stranger)):
        FailureMark.objects.create(
            project_id=whose.id, cause="rate_limit", model_key="m", state="resolved", by="ann",
            at=days_ago(days),
        )  # fmt: skip

    delete_expired(actor=SHELL, project=project, now=NOW, batch=1)

    left = FailureMark.objects.order_by("at").values_list("project_id", "at")
    assert list(left) == [(stranger.id, days_ago(31)), (project.id, days_ago(29))]


def test_other_projects_are_left_alone(project: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other", payload="full")
    record_days_ago(project, 40, "old")
    record_days_ago(stranger, 40, "theirs")

    delete_expired(actor=SHELL, project=project, now=NOW)

    assert [call.name for call in Call.objects.all()] == ["theirs"]
    assert StoredMessage.objects.count() == 2


def test_a_project_without_a_limit_keeps_everything(db: None) -> None:
    project = make_ruled_project(retention_days=None)
    record_days_ago(project, 4_000, "old")

    nothing = Retained(calls=0, conversations=0, fits=0)
    assert count_expired(project=project, now=NOW) == nothing
    assert delete_expired(actor=SHELL, project=project, now=NOW) == nothing
    assert Call.objects.count() == 1


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_any_size_of_batch_deletes_the_same(project: ProjectInfo, batch: int) -> None:
    for number in range(7):
        record_days_ago(project, 40 + number, f"old-{number}")
        make_fit(project, 40 + number)

    done = delete_expired(actor=SHELL, project=project, now=NOW, batch=batch)

    assert done == Retained(calls=7, conversations=7, fits=7)
    assert not StoredMessage.objects.exists()


def test_one_transaction_deletes_no_more_than_a_batch(project: ProjectInfo) -> None:
    for number in range(7):
        record_days_ago(project, 40, f"old-{number}")

    with CaptureQueriesContext(connection) as queries:
        delete_expired(actor=SHELL, project=project, now=NOW, batch=3)

    calls_table = connection.ops.quote_name(Call._meta.db_table)
    deletes = [q["sql"] for q in queries if q["sql"].startswith(f"DELETE FROM {calls_table}")]
    assert len(deletes) >= 3
    assert all(sql.count(",") < 3 for sql in deletes)


# --- plans


def show_catalog(project: ProjectInfo, digest: str, days: float) -> None:
    PlanCatalog.objects.create(
        project_id=project.id, digest=digest, body="{}", latest_used_at=days_ago(days)
    )


def test_plans_go_with_their_steps_and_attempts(project: ProjectInfo) -> None:
    for name, days in (("old", 31), ("young", 29)):
        add_attempt(make_plan(project, name, entries=("a.b", ""), days=days))
    make_plan(make_ruled_project(slug="other", payload="full"), "theirs", days=400)

    counted = count_expired(project=project, now=NOW)
    done = delete_expired(actor=SHELL, project=project, now=NOW)

    assert counted == done == Retained(calls=0, conversations=0, fits=0, plans=1)
    assert {row.name for row in PlanRecord.objects.all()} == {"young", "theirs"}
    assert {row.plan.name for row in PlanStep.objects.all()} == {"young", "theirs"}
    assert [row.plan.name for row in PlanAttempt.objects.all()] == ["young"]


def test_a_shown_catalog_goes_when_no_kept_plan_can_have_seen_it(project: ProjectInfo) -> None:
    # The time of its latest use may lie a day behind.
    show_catalog(project, "unused", 31.1)
    show_catalog(project, "maybe", 30.9)
    show_catalog(project, "used", 2)

    delete_expired(actor=SHELL, project=project, now=NOW)

    assert {row.digest for row in PlanCatalog.objects.all()} == {"maybe", "used"}


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_any_size_of_batch_deletes_the_same_plans(project: ProjectInfo, batch: int) -> None:
    for number in range(7):
        make_plan(project, f"plan-{number}", days=40)
        show_catalog(project, str(number), 40)

    assert delete_expired(actor=SHELL, project=project, now=NOW, batch=batch).plans == 7
    assert not PlanCatalog.objects.exists()


@pytest.mark.parametrize(
    ("payload", "left"),
    [
        # its answer was only waiting to be fetched
        ("off", None),
        # as all its texts are kept
        ("redacted", {"steps": ["mail [email]"]}),
        ("full", {"steps": ["mail ann@example.com"]}),
    ],
)
def test_an_answer_that_waited_is_kept_as_its_project_keeps_texts(
    db: None, payload: str, left: object
) -> None:
    project = make_ruled_project(payload=payload)
    answer = {"steps": ["mail ann@example.com"]}
    given: dict[str, Any] = {"result": left, "waiting": seal(json.dumps(answer))}
    make_plan(project, "due", result_until=days_ago(1), **given)
    make_plan(project, "waits", result_until=NOW + timedelta(minutes=1), **given)
    make_plan(project, "fetched", result=None)

    # What the clock has taken already is not told, whether or not anybody ran `retain`.
    before = plans.find(project_id=project.id, plan_id="due", now=NOW)
    assert before is not None
    assert before.result == left
    assert forget_answers(now=NOW) == 1
    assert forget_answers(now=NOW) == 0

    row = PlanRecord.objects.get(name="due")
    assert (row.result, row.waiting, row.result_until) == (left, "", None)
    waits = plans.find(project_id=project.id, plan_id="waits", now=NOW)
    assert waits is not None
    assert waits.result == answer


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has more than one writer")
@pytest.mark.django_db(transaction=True)
def test_who_waits_to_write_has_its_turn_between_two_steps() -> None:
    done: list[str] = []

    def record_one() -> None:
        try:
            write(lambda: done.append("other"))
        finally:
            connection.close()

    other = threading.Thread(target=record_one)

    def step() -> None:
        if not done:
            other.start()
        time.sleep(0.02)  # and the pause is as long
        done.append("step")

    # Between the first two, but for a thread that is slow to begin or to wake.
    while done.count("step") < 50 and "other" not in done:
        write_and_pause(step)
    other.join()

    assert done[-1] == "other"
