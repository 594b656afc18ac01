"""A server process that is one of several ends with the process that started it, and not before."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def end_with_parent() -> None:
    """From now on end in order, as by SIGTERM, when the process ends that started this one as one
    of its workers. Does nothing in a process that nobody started so.

    uvicorn's workers go on where the kernel kills what watches over them: they answered, held the
    port against the next start, and nobody would have started another one in their place.

    Call it in the main thread.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    # When a terminal is closed all are told: the one that started this ends it in order.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
