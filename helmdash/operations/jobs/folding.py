"""The job that adds calls to the rollups: done by the host's writer process where there is one.

It takes as much of the interpreter as the rest of what server processes do by themselves, and the
gateway's loop has none to spare.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from helmdash.core.text.counts import count_of
from helmdash.operations.jobs.leases import Done
from helmdash.operations.jobs.running import JobKind, JobThread, Run
from helmdash.operations.recorder import recorder
from helmdash.operations.rollups import folding


def _fold(run: Run) -> Done:
    calls = 0
    while folding.is_due(run.now) and (added := folding.fold()):
        calls += added
        run.go_on()
    return Done(told=f"added {count_of(calls, 'call')}", due_at=None)


def _is_left_to_servers(now: datetime) -> bool:
    """There is something to add, and no writer process of this host that will."""
    return not recorder().has_writer_process and folding.is_due(now)


IN_A_SERVER = JobKind(
    name="rollups",
    words="Add calls to the figures that pages count from",
    run=_fold,
    first_due=lambda now: None,
    is_wanted=_is_left_to_servers,
)
IN_THE_WRITER = replace(IN_A_SERVER, is_wanted=folding.is_due)


def writers_thread() -> JobThread:
    """The thread of the writer process that does it."""
    return JobThread((IN_THE_WRITER,), holder=recorder().name)
