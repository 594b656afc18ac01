"""Heavy requests: what takes long to work through is worked through by a process of its own.

Python works on one thing at a time in a process: while it reads a chat of 50,000 messages, every
other client of that process waits, whether the work is on the event loop or in a thread. So a
process that serves clients keeps only what it can do in a few milliseconds; it hands the whole
request of anything heavier to one worker process, which runs the same application, and passes the
answer on as it comes. The worker is started by the first heavy request and ends when it was idle.

`weighing` says what is heavy, `turns` who is next, `forwarding` hands requests over, `worker` and
`serving` are the process on the other side, `frames` what the two say to each other. No rules of
HelmDash live here. See docs/adr/0025.
"""

from __future__ import annotations

from helmdash.heavy.forwarding import NoWorker, WorkerForwarder, forwarder_of
from helmdash.heavy.frames import FORWARDER_KEY
from helmdash.heavy.serving import end_turn
from helmdash.heavy.turns import TooManyWaiting
from helmdash.heavy.weighing import is_heavy, is_quick

__all__ = [
    "FORWARDER_KEY",
    "NoWorker",
    "TooManyWaiting",
    "WorkerForwarder",
    "end_turn",
    "forwarder_of",
    "is_heavy",
    "is_quick",
]
