"""A process that records as the gateway does, to be killed: `python -m tests.recorder.driver`.

    setup            make the tables and the default project
    load PREFIX GAP  start three calls that never end, then one call every GAP seconds, each noted
                     on standard output once the recorder has taken it in; SIGTERM ends it cleanly
    wait             start, store what is left in the spool, and end
    list             what is in the database, as JSON
    expire           store calls that are older than the project keeps them; their deletion is due
    retain slowly    delete them, and rest after each step, which is noted on standard output
    retain           try to while another has the job, and then when its lease is over

The environment says which database and data directory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import asdict
from types import FrameType


def main() -> None:
    """Do what the first argument says."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "helmdash.settings"
    import django

    django.setup()
    match sys.argv[1:]:
        case ["setup"]:
            _setup()
        case ["load", prefix, gap]:
            _load(prefix, float(gap))
        case ["wait"]:
            _wait()
        case ["list"]:
            _list()
        case ["expire"]:
            _expire()
        case ["retain", "slowly"]:
            _retain_slowly()
        case ["retain"]:
            _retain()


def _setup() -> None:
    from django.core.management import call_command

    from helmdash.operations.access import project_settings
    from helmdash.operations.budgets import shipped

    call_command("migrate", interactive=False, verbosity=0)
    project_settings.ensure_project()
    shipped.load_budgets()


def _load(prefix: str, gap: float) -> None:
    from django.db import connection
    from django.utils import timezone

    from helmdash.operations.recorder import recorder, start, stop
    from helmdash.queries.access.access import default_project
    from tests.factories import make_capture

    project = default_project()
    connection.close()
    start()
    is_asked: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        is_asked.append(number)

    signal.signal(signal.SIGTERM, end)
    for number in range(3):
        recorder().begin(f"{prefix}-open-{number}", project.id)
    number = largest = 0
    while not is_asked:
        name = f"{prefix}-{number:06d}"
        recorder().begin(name, project.id)
        capture = make_capture(id=name, conversation=f"talk-{number % 5}", content="x" * 500)
        recorder().submit(project, "driver", capture, timezone.now())
        sys.stdout.write(name + "\n")
        sys.stdout.flush()
        number += 1
        largest = max(largest, recorder().queued()[0])
        time.sleep(gap)
    for number in range(3):
        recorder().abandon(f"{prefix}-open-{number}")
    stop(8)
    sys.stdout.write(f"largest queue: {largest}\n")


def _wait() -> None:
    from helmdash.operations.recorder import recorder, start, stop

    start()
    recorder().settle(30)
    stop()


def _list() -> None:
    from django.db import connection

    from helmdash.queries import ledger, rollups
    from helmdash.queries.access.access import default_project
    from helmdash.records.models import Call, Conversation

    checked = "ok"
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA integrity_check")
            checked = cursor.fetchone()[0]
    total = ledger.totals()
    found = {
        "calls": list(Call.objects.order_by("id").values_list("name", flat=True)),
        "held": rollups.held_calls(project_id=default_project().id),
        "generations": sum(Conversation.objects.values_list("generation", flat=True)),
        "integrity": checked,
        "ledger": {name: getattr(total, name) for name in ledger.COUNTS},
        "rows": [asdict(each.counts) for each in ledger.processes()],
        "running": sum(each.stopped_at is None for each in ledger.processes()),
    }
    sys.stdout.write(json.dumps(found))


def _expire() -> None:
    from datetime import timedelta

    from django.utils import timezone

    from helmdash.operations.jobs import leases
    from helmdash.records.models import Project
    from tests.factories import make_capture, record

    Project.objects.update(retention_days=30)
    old = timezone.now() - timedelta(days=40)
    record(*(make_capture(id=f"old-{n}", conversation=f"{n}", started_at=old) for n in range(30)))
    leases.make_rows({"retention": old})


def _retain_slowly() -> None:
    from collections.abc import Callable

    from helmdash.operations.database.transactions import write_and_pause
    from helmdash.operations.jobs import kinds
    from helmdash.operations.jobs.running import JobThread
    from helmdash.operations.retention import expired

    def write_and_rest(work: Callable[[], int]) -> int:
        done = write_and_pause(work)
        if done:
            sys.stdout.write(f"deleted {done}\n")
            sys.stdout.flush()
            time.sleep(60)
        return done

    vars(expired)["write_and_pause"] = write_and_rest
    JobThread(kinds.LONG, holder="killed").look_once()


def _retain() -> None:
    from helmdash.operations.database.clock import clock
    from helmdash.operations.jobs import kinds
    from helmdash.operations.jobs.leases import LEASE
    from helmdash.operations.jobs.running import JobThread
    from helmdash.queries.jobs import jobs
    from helmdash.records.models import Job

    thread = JobThread(kinds.LONG, holder="heir")
    # Its lease still runs, and has run out: nobody waits for that here.
    for until in (clock() + LEASE, clock() - LEASE):
        Job.objects.filter(until__isnull=False).update(until=until)
        thread.look_once()
        job = next(each for each in jobs() if each.name == "retention")
        sys.stdout.write(f"{job.holder} {job.outcome} {job.told}\n")


if __name__ == "__main__":
    main()
