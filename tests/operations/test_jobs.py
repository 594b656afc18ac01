"""Jobs: each done by one process at a time, gone on with by another, told as it went."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from helmdash.core.access.permissions import SHELL, Forbidden, Person
from helmdash.operations.database import statistics
from helmdash.operations.database.clock import clock
from helmdash.operations.jobs import asking, kinds, leases, running
from helmdash.operations.jobs.folding import writers_thread
from helmdash.operations.jobs.leases import Done, LeaseLost, Progress, Seen, Turn
from helmdash.operations.jobs.running import JobKind, JobThread, Run, run_now
from helmdash.operations.recorder import Recorder
from helmdash.operations.retention import expired
from helmdash.operations.rollups import folding
from helmdash.queries import rollups
from helmdash.queries.jobs import JobState, jobs
from helmdash.records.models import Call, Job, RollupState
from helmdash.settings import VisibleFormatter
from tests.factories import make_capture, make_project, record

PAST = datetime(2020, 1, 1, tzinfo=UTC)


def kind(run: Callable[[Run], Done], *, name: str = "sweep", due_at: datetime = PAST) -> JobKind:
    return JobKind(name=name, words="Sweep", run=run, first_due=lambda now: due_at)


def quiet(run: Run) -> Done:
    return Done(told="swept", due_at=run.now + timedelta(days=1), cursor="7")


def state() -> JobState:
    (found,) = jobs()
    return found


def run_out(name: str = "sweep") -> None:
    """What the time does to a lease whose holder was killed."""
    Job.objects.filter(name=name).update(until=PAST)


@pytest.mark.django_db(transaction=True)
def test_of_many_processes_one_does_what_is_due() -> None:
    runs: list[str] = []

    def sweep(run: Run) -> Done:
        runs.append(run.cursor)
        return quiet(run)

    def process(number: int) -> None:
        try:
            JobThread((kind(sweep),), holder=f"host-{number}").look_once()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(process, range(12)))

    assert runs == [""]
    assert (state().outcome, state().told, state().is_running) == ("done", "swept", False)
    # The next time it hears where the last one was.
    Job.objects.update(due_at=PAST)
    process(12)
    assert (runs, state().holder) == (["", "7"], "host-12")


@pytest.mark.django_db(transaction=True)
def test_who_found_nothing_looks_again_when_somebody_has_written_or_time_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[None] = []

    def look(looked: Callable[[], dict[str, Seen]] = leases.look) -> dict[str, Seen]:
        looks.append(None)
        return looked()

    monkeypatch.setattr(leases, "look", look)
    monkeypatch.setattr(running, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(running, "_CALM_AFTER_SECONDS", 0.2)
    monkeypatch.setattr(running, "_LONGEST_CALM_SECONDS", 60.0)
    thread = JobThread((kind(quiet),), holder="one")
    thread.start()
    try:
        wait_for(lambda: bool(jobs()) and state().outcome == "done")

        def is_calm() -> bool:
            before = len(looks)
            time.sleep(0.3)
            return len(looks) == before

        # PostgreSQL does not say whether anybody has written.
        is_told = connection.vendor == "sqlite"
        wait_for(lambda: is_calm() == is_told)

        Job.objects.update(due_at=PAST)
        wait_for(lambda: Job.objects.filter(turns=2, until=None).exists())

        # What the clock alone makes due is found a little later,
        monkeypatch.setattr(running, "_LONGEST_CALM_SECONDS", 0.05)
        Job.objects.update(due_at=timezone.now() + timedelta(seconds=0.5))
        wait_for(lambda: Job.objects.filter(turns=3, until=None).exists())

        # and in time where it follows soon upon what somebody wrote.
        monkeypatch.setattr(running, "_CALM_AFTER_SECONDS", 60.0)
        monkeypatch.setattr(running, "_LONGEST_CALM_SECONDS", 60.0)
        Job.objects.update(due_at=timezone.now() + timedelta(seconds=0.5))
        wait_for(lambda: Job.objects.get().turns == 4)
    finally:
        thread.stop(9)


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.django_db
def test_a_job_is_not_taken_from_its_holder_until_the_lease_ends() -> None:
    leases.make_rows({"sweep": PAST})
    seen = leases.look()["sweep"]

    turn = leases.take(seen, holder="one")

    assert turn is not None
    assert leases.take(seen, holder="two") is None  # it saw what is no longer so
    assert leases.take(leases.look()["sweep"], holder="two") is None
    assert state().is_running
    run_out()
    leases.renew(turn)  # late, and nobody else came
    assert not leases.look()["sweep"].is_free
    run_out()
    assert state().is_broken_off
    other = leases.take(leases.look()["sweep"], holder="two")
    assert other is not None
    # The one that was asleep for longer than its lease can do nothing more to the row.
    for late in (leases.renew, leases.interrupt, lambda turn: leases.fail(turn, told="late")):
        with pytest.raises(LeaseLost):
            late(turn)
    with pytest.raises(LeaseLost):
        leases.end(turn, Done(told="late", due_at=None))
    leases.end(other, Done(told="swept", due_at=None))
    assert (state().holder, state().told, state().due_at) == ("two", "swept", None)


# What the holder does while a command waits, what the command hears, who has had the job.
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sign", "is_done", "holder"),
    [
        (lambda turn: leases.renew(turn), False, "one"),
        (lambda turn: leases.end(turn, Done(told="done", due_at=None)), True, "a command"),
        # killed: its lease ends
        (lambda turn: run_out(), True, "a command"),
    ],
)
def test_a_command_waits_for_a_sign_of_life_of_who_holds_its_job(
    sign: Callable[[Turn], None], is_done: bool, holder: str
) -> None:
    leases.make_rows({"sweep": PAST})
    turn = leases.take(leases.look()["sweep"], holder="one")
    assert turn is not None
    told: list[str] = []

    def show(words: str) -> None:
        told.append(words)
        if len(told) == 2:
            sign(turn)

    assert run_now(kind(quiet), holder="a command", show=show) is is_done

    assert len(told) == 2
    assert "sign of life" in told[0]
    assert state().holder == holder


@pytest.mark.django_db
def test_a_lease_from_before_the_clock_was_set_back_ends_all_the_same() -> None:
    """Who held it was killed; nobody waits until the clock is there again."""
    leases.make_rows({"sweep": PAST})
    assert leases.take(leases.look()["sweep"], holder="one")
    Job.objects.update(until=clock() + timedelta(hours=1))

    assert run_now(kind(quiet), holder="two")

    assert (state().holder, state().outcome) == ("two", "done")


@pytest.mark.django_db
@pytest.mark.parametrize("is_taken_over", [True, False])
def test_who_slept_for_longer_than_its_lease_asks_before_the_next_step(
    monkeypatch: pytest.MonkeyPatch, is_taken_over: bool
) -> None:
    """A host that was frozen goes on at once, and its next renewal is still to come."""
    monkeypatch.setattr(running, "_SURE_SECONDS", 0.0)
    steps = []

    def long(run: Run) -> Done:
        for step in range(3):
            steps.append(step)
            if step == 1:
                run_out()
            if step == 1 and is_taken_over:
                assert leases.take(leases.look()["sweep"], holder="two")
            run.go_on()
        return quiet(run)

    JobThread((kind(long),), holder="one").look_once()

    assert steps == ([0, 1] if is_taken_over else [0, 1, 2])
    assert state().holder == ("two" if is_taken_over else "one")
    assert state().is_running == is_taken_over


@pytest.mark.django_db
def test_a_failed_job_is_tried_again_later_each_time_and_tells_no_value() -> None:
    def fail(run: Run) -> Done:
        raise ValueError("the text of somebody")

    waits = []
    for _ in range(9):
        JobThread((kind(fail),), holder="one").look_once()
        due_at = state().due_at
        assert due_at is not None
        waits.append((due_at - state().now).total_seconds())
        Job.objects.update(due_at=PAST)
    found = state()
    assert (found.outcome, found.told, found.failures) == ("failed", "ValueError", 9)
    assert [round(wait / 60) for wait in waits] == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    JobThread((kind(quiet),), holder="one").look_once()

    assert (state().outcome, state().failures) == ("done", 0)


@pytest.mark.django_db
def test_what_a_database_refuses_is_logged_without_the_values_that_it_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = [Job(name="the text of somebody")] * 2

    def store_twice(run: Run) -> Done:
        with transaction.atomic():
            Job.objects.bulk_create(rows)
        return quiet(run)

    JobThread((kind(store_twice),), holder="one").look_once()

    (told,) = caplog.records
    told.exc_text = None  # as another handler wrote it
    line = VisibleFormatter().format(told)
    assert state().told == "IntegrityError"
    assert "the job sweep failed" in line
    assert "unique" in line.lower()
    assert "of somebody" not in line


@pytest.mark.django_db
def test_a_job_that_cannot_tell_whether_it_is_wanted_keeps_no_other_from_its_turn() -> None:
    def fail(now: object) -> bool:
        raise ValueError

    def ask_and_do(run: Run) -> Done:
        fail(run.now)
        return quiet(run)

    first = JobKind(
        name="first", words="", run=ask_and_do, first_due=lambda now: None, is_wanted=fail
    )

    JobThread((first, kind(quiet)), holder="one").look_once()

    assert {job.name: job.outcome for job in jobs()} == {"first": "failed", "sweep": "done"}


@pytest.mark.django_db
def test_who_stops_gives_its_job_back_between_two_steps() -> None:
    steps = []

    def long(run: Run) -> Done:
        for step in range(5):
            steps.append(step)
            run.go_on()
            thread.stop(0)
        return quiet(run)

    thread = JobThread((kind(long),), holder="one")
    thread.look_once()

    assert steps == [0, 1]
    assert state().outcome == "interrupted"
    seen = leases.look()["sweep"]
    assert (seen.is_free, seen.is_due) == (True, True)


@pytest.mark.django_db
def test_who_is_asked_to_end_says_how_far_it_was_and_goes_on_there() -> None:
    seen = []

    def long(run: Run) -> Done:
        for step in range(int(run.cursor or 0), 4):
            run.tell(Progress(step=f"at {step}", done=step, of=4, cursor=str(step)))
            found = state()
            seen.append((found.step, found.steps_done, found.steps_all))
            if step == 1:
                Job.objects.update(cancel_by="admin")
        return quiet(run)

    tomorrow = clock() + timedelta(days=1)
    thread = JobThread((kind(long, due_at=tomorrow),), holder="one")
    thread.look_once()  # not due yet
    Job.objects.update(due_at=PAST)
    thread.look_once()

    assert seen == [("at 0", 0, 4), ("at 1", 1, 4)]
    found = state()
    assert (found.outcome, found.told, found.is_running) == ("cancelled", "by admin", False)
    assert found.due_at == tomorrow  # as if it were done
    Job.objects.update(due_at=PAST)
    thread.look_once()
    assert [step for step, _, _ in seen] == ["at 0", "at 1", "at 2", "at 3"]
    assert state().outcome == "done"


@pytest.mark.django_db
def test_a_command_that_is_interrupted_gives_its_job_back() -> None:
    def long(run: Run) -> Done:
        run.tell(Progress(step="at 1"))
        raise KeyboardInterrupt

    shown: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run_now(kind(long), holder="a command", show=shown.append)

    assert shown == ["at 1"]
    assert (state().outcome, state().is_running) == ("cancelled", False)


@pytest.mark.django_db
def test_people_start_and_end_only_what_takes_long() -> None:
    JobThread(kinds.LONG, holder="one").look_once()
    superuser = Person(name="root", is_superuser=True)
    for name in ("retention", "rebuild", "rollups", "unknown"):
        is_known = name in kinds.cancellable()
        for ask in (asking.start, asking.cancel):
            with contextlib.nullcontext() if is_known else pytest.raises(asking.UnknownJob):
                ask(actor=superuser, name=name)
            with pytest.raises(Forbidden):
                ask(actor=Person(name="viewer"), name=name)
    assert {name for name, seen in leases.look().items() if seen.is_due} == {"retention", "rebuild"}


@pytest.mark.django_db
def test_retention_ends_between_two_batches_and_deletes_the_rest_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = make_project(slug="short", retention_days=30)
    old = timezone.now() - timedelta(days=40)
    record(*(make_capture(started_at=old) for _ in range(3)), project=project)
    # On PostgreSQL its month would go at once.
    record(make_capture(started_at=old), project=make_project(slug="long"))
    monkeypatch.setattr(expired, "_in_steps", partial(by_ones, expired._in_steps))
    shown: list[str] = []

    def show(words: str) -> None:
        shown.append(words)
        if len(shown) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kinds.retain_now(lambda done: None, show)

    assert shown == ["short: 1 calls", "short: 2 calls"]
    assert Call.objects.filter(project_id=project.id).count() == 1
    kinds.retain_now(lambda done: None, lambda words: None)
    assert Call.objects.filter(project_id=project.id).count() == 0
    assert Call.objects.count() == 1


def by_ones(steps: Callable[..., int], *arguments: Any) -> int:
    """Batches of one."""
    return steps(*(1 if each == expired.BATCH_ROWS else each for each in arguments))


@pytest.mark.django_db
def test_a_rebuild_goes_on_with_the_project_that_it_was_at() -> None:
    projects = [make_project(slug=slug) for slug in ("first", "second", "third")]
    for project in projects:
        record(make_capture(), project=project)
    told: list[str] = []

    def run(show: Callable[[str], None]) -> None:
        asking.start(actor=SHELL, name="rebuild")
        thread = JobThread(
            [
                replace(each, run=partial(shown, each.run, show))
                for each in kinds.LONG
                if each.name == "rebuild"
            ],
            holder="one",
        )
        thread.look_once()

    def shown(rebuild: Callable[[Run], Done], show: Callable[[str], None], run: Run) -> Done:
        def tell(progress: Progress) -> None:
            run.tell(progress)
            show(progress.step)

        return rebuild(replace(run, tell=tell))

    def break_off(words: str) -> None:
        told.append(words.split(":")[0])
        if words.startswith("second: back"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(break_off)
    assert (told[0], told[-1], state().outcome) == ("default", "second", "cancelled")
    told.clear()
    run(lambda words: told.append(words.split(":")[0]))

    assert set(told) == {"second", "third"}
    assert state().outcome == "done"
    # Of one project that was asked for by itself nothing is left: all are counted.
    with pytest.raises(KeyboardInterrupt):
        kinds.rebuild_now(["second"], lambda *_: None, break_off, anew=True)
    told.clear()
    run(lambda words: told.append(words.split(":")[0]))
    assert set(told) == {"default", "first", "second", "third"}


@pytest.mark.django_db
def test_the_clock_of_a_host_decides_nothing() -> None:
    assert abs(clock() - timezone.now()) < timedelta(seconds=30)
    leases.make_rows({"past": PAST, "coming": clock() + timedelta(hours=1), "never": None})

    due = {name for name, seen in leases.look().items() if seen.is_due}

    assert due == {"past"}
    assert all(abs(seen.now - clock()).seconds < 30 for seen in leases.look().values())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("due_in", "ended_ago", "is_due"),
    [
        (timedelta(hours=1), timedelta(minutes=1), False),
        (timedelta(days=7), None, False),
        # It was done an hour from now.
        (timedelta(hours=1, minutes=1), timedelta(hours=-1), True),
        # Never done, and first due in a year that nobody is in any more.
        (timedelta(days=300), None, True),
        (None, timedelta(hours=-1), False),
    ],
)
def test_a_job_does_not_wait_for_a_clock_that_was_set_back(
    due_in: timedelta | None, ended_ago: timedelta | None, is_due: bool
) -> None:
    leases.make_rows({"sweep": None if due_in is None else clock() + due_in})
    Job.objects.update(ended_at=None if ended_ago is None else clock() - ended_ago)

    assert leases.look()["sweep"].is_due is is_due


@pytest.mark.django_db
def test_calls_are_added_to_the_rollups_when_they_are_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = JobThread(kinds.QUICK, holder="one")
    record(*(make_capture(conversation=f"c{n}") for n in range(3)))
    thread.look_once()
    assert rollups.waiting(now=timezone.now()).calls == 3

    monkeypatch.setattr(folding, "ENOUGH_CALLS", 3)
    thread.look_once()

    assert rollups.waiting(now=timezone.now()).calls == 0
    told = {job.name: job.told for job in jobs()}
    assert told["rollups"] == "added 3 calls"


@pytest.mark.django_db
def test_a_server_leaves_rollups_to_its_hosts_writer_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Recorder, "has_writer_process", True)
    monkeypatch.setattr(folding, "ENOUGH_CALLS", 1)
    record(make_capture())
    JobThread(kinds.QUICK, holder="server").look_once()
    assert rollups.waiting(now=timezone.now()).calls == 1

    writers_thread().look_once()

    assert rollups.waiting(now=timezone.now()).calls == 0


@pytest.mark.django_db
def test_calls_from_before_there_were_rollups_are_counted_a_little_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = JobThread(kinds.QUICK, holder="one")
    record(*(make_capture(started_at=timezone.now() - timedelta(hours=n)) for n in range(2)))
    RollupState.objects.create(project_id=make_project().id, is_complete=False)
    monkeypatch.setattr(kinds, "_COUNT_SECONDS", 0.0)
    told = []

    while rollups.countings():
        thread.look_once()
        told += [job.told for job in jobs() if job.name == "older-calls"]

    assert told == ["more are left", "more are left", "all are counted"]


@pytest.mark.django_db
def test_retention_runs_by_itself_at_its_hour() -> None:
    project = make_project(slug="short", retention_days=30)
    old = timezone.now() - timedelta(days=40)
    record(make_capture(started_at=old), make_capture(id="young"), project=project)
    # A month goes whole where nobody keeps a call of it, as those do that are empty.
    record(make_capture(started_at=old), project=make_project(slug="long"))
    thread = JobThread(kinds.LONG[:1], holder="one")

    thread.look_once()  # it is not yet the hour
    assert Call.objects.count() == 3
    first = state().due_at
    assert first is not None
    assert (first.hour, first.minute) == (3, 0)
    assert timedelta() < first - state().now <= timedelta(days=1)
    Job.objects.update(due_at=PAST)
    thread.look_once()

    assert Call.objects.count() == 2
    assert state().told.endswith("deleted 1 call, 0 conversations, the texts of 0 calls")
    assert state().due_at == first


@pytest.mark.django_db
def test_statistics_are_refreshed_less_often_as_a_database_ages() -> None:
    thread = JobThread(kinds.QUICK, holder="one")
    thread.look_once()
    waits = []
    for _ in range(9):
        Job.objects.filter(name="statistics").update(due_at=PAST)
        thread.look_once()
        row = Job.objects.get(name="statistics")
        assert row.due_at is not None
        assert row.started_at is not None
        waits.append(round((row.due_at - row.started_at).total_seconds()))

    longest = 86_400 if statistics.is_dear() else 3600
    assert waits == [min(60 * 2**n, longest) for n in range(9)]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no partitions")
@pytest.mark.django_db
def test_a_table_of_partitions_is_analyzed_as_a_whole() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE probe (n int) PARTITION BY RANGE (n)")
        cursor.execute("CREATE TABLE probe_1 PARTITION OF probe FOR VALUES FROM (0) TO (100)")
        cursor.execute("INSERT INTO probe SELECT generate_series(0, 99)")
        looked_at = statistics.refresh()
        cursor.execute(
            "SELECT reltuples FROM pg_class WHERE relname LIKE 'probe%' ORDER BY relname"
        )
        # Its partitions are autovacuum's affair, and each costs as much as the whole.
        assert cursor.fetchall() == [(100,), (100,) if statistics.is_dear() else (-1,)]
        assert looked_at > statistics.refresh(unseen=True) == 0
