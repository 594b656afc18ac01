"""The recorder: takes calls in at once, stores them in groups, loses none it has accepted.

One thread writes. It takes all that waits and stores the calls of each project in one transaction
(group commit). Calls of the gateway are written to the spool before `submit` returns, so that they
outlive the process; while the database is unavailable they wait there. Where no file takes them
either, they are stored before they are answered, or not made at all. Reports to the API wait in
memory only: their clients wait for the commit, and send again after a 503.

`facade` has what others call, `intake` what waits, `writer` the thread, `spool`, `spare` and
`orphaned_segments` the files.
"""

from __future__ import annotations

from helmdash.operations.recorder.facade import Recorder, recorder, start, stop
from helmdash.operations.recorder.files.units import Unit
from helmdash.operations.recorder.terms import Limits, RecorderFull, RecorderState

__all__ = [
    "Limits",
    "Recorder",
    "RecorderFull",
    "RecorderState",
    "Unit",
    "recorder",
    "start",
    "stop",
]
