"""Part of a large load: made-up calls of a year, recorded as real ones are.

Run as a worker process (bench.databases.Worker): one JSON command a line on stdin, one answer. Each
transaction is recording's own (`record_calls`): judged, placed, stored, and noted for the rollups,
which the workers add up on their way.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from helmdash.core.access.permissions import SHELL  # noqa: E402
from helmdash.core.calls.capture import Capture  # noqa: E402
from helmdash.operations.database import statistics  # noqa: E402
from helmdash.operations.demo import generating  # noqa: E402
from helmdash.operations.recording.calls import record_calls  # noqa: E402
from helmdash.operations.retention import retaining  # noqa: E402
from helmdash.operations.rollups.folding import fold, fold_all  # noqa: E402
from helmdash.queries.access.access import ProjectInfo, find_project  # noqa: E402
from helmdash.records.models import Project  # noqa: E402
from helmdash.records.statements.bulk import analyze  # noqa: E402

DAYS = 365
# As the goals of `large` have it: the share of calls with texts, and the longest conversation.
TEXTS, LONGEST = 0.01, 10_000
# An answer now and then tells how far it is, and is where a broken-off load goes on.
_STEP_SECONDS = 5.0
# What is added up at once is written once; days and months would be written anew for each chunk.
_FOLD_AFTER = 50_000
# As the writer process has it: the youngest are looked over so seldom.
_GARBAGE_AFTER = 50_000


class _Part:
    """The calls of one worker, from where it broke off."""

    def __init__(self, command: dict[str, Any]) -> None:
        self._project = _project()
        self._skip = command["done"]
        self.done = 0
        self._waiting = 0
        self._chunks = generating.chunks(
            generating.made_calls(
                random.Random(command["tag"]),
                calls=command["calls"],
                tag=command["tag"],
                now=datetime.fromisoformat(command["now"]),
                days=DAYS,
                text_share=TEXTS,
                longest=LONGEST if command["is_first"] else None,
            )
        )

    def step(self) -> bool:
        """Record for some seconds; False when all is."""
        end = time.monotonic() + _STEP_SECONDS
        for chunk in self._chunks:
            if self.done >= self._skip:
                self._record(chunk)
            self.done += len(chunk)
            if time.monotonic() > end:
                return True
        return False

    def _record(self, chunk: list[Capture]) -> None:
        at = chunk[-1].started_at
        assert at is not None
        record_calls(project=self._project, captures=chunk, caller="generator", now=at)
        self._waiting += len(chunk)
        # Once, and not until nothing waits: the other worker goes on recording, and who adds up
        # all that comes would do nothing else.
        if self._waiting >= _FOLD_AFTER:
            fold()
            self._waiting = 0


def main() -> None:
    """Answer commands until stdin ends."""
    gc.freeze()
    gc.set_threshold(_GARBAGE_AFTER, 10, 100)
    for answer in _answers():
        # The commands of Django print; the protocol has stdout to itself.
        print(json.dumps(answer), file=_protocol, flush=True)


def _answers() -> Iterator[Any]:
    part: _Part | None = None
    for line in sys.stdin:
        command = json.loads(line)
        match command["do"]:
            case "prepare":
                call_command("up", "--setup-only", stdout=StringIO())
                generating.project_to_fill(generating.GENERATED_SLUG)
                yield None
            case "begin":
                part = _Part(command)
                yield None
            case "step":
                assert part is not None
                goes_on = part.step()
                yield {"done": part.done, "goes_on": goes_on}
            case "keep":
                rows = Project.objects.filter(slug=generating.GENERATED_SLUG)
                rows.update(retention_days=command["days"])
                yield None
            case "retain":
                yield _retain()
            case _:
                fold_all()
                _tidy()
                statistics.refresh()
                yield None


def _tidy() -> None:
    """What the database does by itself in the hours behind a load."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
    analyze()


def _retain() -> dict[str, Any]:
    """All that retention deletes, as the daily job does it; seconds, and calls that went one by
    one."""
    began, at, gone = time.monotonic(), timezone.now(), 0
    dropped = retaining.drop_months(actor=SHELL, now=at)
    seconds_of_months = time.monotonic() - began
    for project in retaining.retain(actor=SHELL, now=at, step=lambda *_: None):
        gone += project.rows.calls if project.rows is not None else 0
    return {
        "months": dropped.months,
        "seconds_of_months": seconds_of_months,
        "seconds": time.monotonic() - began,
        "calls": gone,
    }


def _project() -> ProjectInfo:
    project = find_project(slug=generating.GENERATED_SLUG)
    assert project is not None
    return project


if __name__ == "__main__":
    _protocol = sys.stdout
    sys.stdout = sys.stderr
    main()
