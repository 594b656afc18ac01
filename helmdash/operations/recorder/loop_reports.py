"""One report at a time, handed to the writer process by the event loop, which also hears of it.

A lone client's report would wake the recorder's thread twice for nothing but passing it on, and
wait for the interpreter behind what the thread still has to do: a tenth of the client's whole wait
(docs/adr/0072). What comes while one is under way is left to the thread, which makes a group of it;
so is whatever does not end as it should, since the thread knows what to do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import time
from collections.abc import Callable, Sequence

from helmdash.operations.recorder.files.units import Outcome, Unit
from helmdash.operations.recorder.intake import Intake
from helmdash.operations.recorder.link import LinkLost, WriterLink
from helmdash.operations.recorder.wire import Group

logger = logging.getLogger(__name__)

# A short report may have a thousand calls without texts: 210 kB on the way, more where the key has
# a long name, and 360 in the answer, while a connection holds 219. So few are some 20 kB of both.
_MOST_CALLS = 16


class LoopReports:
    """The event loop's way to the writer process. Used on that loop only, but for `end`."""

    def __init__(
        self,
        intake: Intake,
        link: WriterLink,
        *,
        group_of: Callable[[Sequence[Unit]], Group],
        finish: Callable[[Sequence[Outcome]], None],
        doubt: Callable[[LinkLost], None],
    ) -> None:
        """finish: book outcomes without asking the database. doubt: the writer process ended."""
        self._intake = intake
        self._link = link
        self._group_of = group_of
        self._finish = finish
        self._doubt = doubt
        self._under_way: tuple[asyncio.AbstractEventLoop, Unit] | None = None
        self.asked_at: float | None = None
        """When the one that is under way was handed over, by the monotonic clock."""

    def store(self, unit: Unit) -> bool:
        """Hand a report over and have its promise kept; False: it is the thread's to take.

        The report must be short: one that the connection does not hold as a whole costs the link.
        """
        if len(unit.captures) > _MOST_CALLS or not self._intake.reserve():
            return False
        # Not before: the thread may lose the link at any moment until it is reserved.
        if not self._link.is_up:
            self._intake.release()
            return False
        if unit.answers is not None:
            unit.answers.set_running_or_notify_cancel()
        loop, place = asyncio.get_running_loop(), self._link.fileno()
        try:
            group = self._group_of([unit])
            loop.add_reader(place, self._hear)
            # libuv has made it one that does not wait, which the thread's reading must.
            os.set_blocking(place, True)
            self._under_way, self.asked_at = (loop, unit), time.monotonic()
            self._link.send_at_once(group)
        except Exception as error:
            self._under_way = self.asked_at = None
            loop.remove_reader(place)
            if isinstance(error, LinkLost):
                self._doubt(error)
            else:
                logger.exception("a report could not be handed over by the event loop")
            self._intake.release(unit)
        return True

    def end(self, seconds: float) -> None:
        """Wait so long for what is under way, where the loop itself cannot any more: it is stopping
        in this thread, or has ended. The link stays reserved where no answer comes."""
        if self._under_way is not None and _is_ours_or_over(self._under_way[0]):
            # select() takes no numbers over a thousand.
            answer = select.poll()
            answer.register(self._link.fileno(), select.POLLIN)
            if answer.poll(seconds * 1000):
                self._hear()
            else:
                logger.warning("the writer process does not answer, and the server stops")

    def _hear(self) -> None:
        assert self._under_way is not None
        loop, unit = self._under_way
        self._under_way = self.asked_at = None
        if not loop.is_closed():
            loop.remove_reader(self._link.fileno())
        left: Unit | None = unit
        try:
            outcomes = [each for some in self._link.hear([unit]) for each in some]
            # A fault is for the books, which are in the database.
            if not any(outcome.fault for outcome in outcomes):
                self._finish(outcomes)
                left = None
        except LinkLost as error:
            self._doubt(error)
        except Exception as error:
            logger.debug("a report is left to the recorder's thread: %s", error)
        finally:
            self._intake.release(left)


def _is_ours_or_over(loop: asyncio.AbstractEventLoop) -> bool:
    if loop.is_closed():
        return True
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
