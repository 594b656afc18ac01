"""What the recorder's tests share: calls, and what must be true of the numbers."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from helmdash.core.calls.capture import Capture
from helmdash.operations.recorder import Recorder
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.ledger import LedgerCounts
from helmdash.records.models import Call
from tests.factories import NOW, make_capture
from tests.support.processes import children
from tests.support.server import Served


def call(number: int, **over: Any) -> Capture:
    """The call of this number, always the same."""
    given: dict[str, Any] = {
        "id": f"call-{number:05d}",
        "conversation": f"talk-{number % 3}",
        "started_at": NOW,
        "messages": ({"role": "user", "content": f"question {number}"},),
        "content": f"answer {number}",
        **over,
    }
    return make_capture(**given)


def submit(recorder: Recorder, project: ProjectInfo, *numbers: int, **over: Any) -> None:
    """Hand calls over as the gateway does."""
    for number in numbers:
        capture = call(number, **over)
        recorder.begin(capture.id or "", project.id)
        recorder.submit(project, "owner", capture, NOW)


def names() -> list[str]:
    """The ids of all stored calls, in the order they were stored."""
    return list(Call.objects.order_by("id").values_list("name", flat=True))


def expected(*numbers: int) -> list[str]:
    """The ids of these calls."""
    return [f"call-{number:05d}" for number in numbers]


def counts(recorder: Recorder) -> LedgerCounts:
    """The recorder's own numbers, which must add up."""
    found = recorder.own_ledger().counts
    settled = found.stored + found.duplicate + found.rejected + found.dropped
    assert found.accepted == settled + found.waiting, found
    return found


def writer_of(served: Served, *, other_than: int = 0) -> int:
    """The process that stores for a server, and is not this one; waits half a minute for it."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for pid in children(served.process.pid):
            with contextlib.suppress(OSError):  # it has just ended
                if b"cli.writer" in Path(f"/proc/{pid}/cmdline").read_bytes() and pid != other_than:
                    return pid
        time.sleep(0.05)
    raise AssertionError(served.log)
