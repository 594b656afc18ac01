"""How much one of many steps writes, so that others wait for none of them for long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.db.models import F, Func, IntegerField, QuerySet

from helmdash.records.statements.direct import is_postgres

Result = TypeVar("Result")

# Who reports a call waits for the lock of SQLite's one writer. Retention shall make nobody wait for
# more than 100 ms, and who waits looks for the lock each 25 ms at first, then more
# seldom: a fifth of that.
STEP_SECONDS: Final = 0.02
# The first step, of which nobody knows what it takes; and the least there is, since each step has
# costs that its rows do not change.
_FIRST_ROWS, _LEAST_ROWS = 100, 20
# A step that was quick for once does not make the next one a long one.
_MOST_GROWTH = 2.0
# What SQLite overwrites of texts in half a step: 40 MB took 0.5 s, by a hundred rows. What the last
# step took says nothing of the next one there: a message is 20 bytes, or 8 MB.
_MOST_BYTES: Final = 1_000_000
_LOOKED_AT: Final = 50


class StepSize:
    """How many rows the next step takes: on SQLite as many as it writes in STEP_SECONDS, by what
    the last one took; on PostgreSQL, where writers do not wait for each other, always the most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows = most if is_postgres() else min(most, _FIRST_ROWS)

    def timed(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """The work of a step of `rows`, which the next step's rows hang on."""

        def run() -> Result:
            began = time.monotonic()
            done = work()
            self._took(time.monotonic() - began)
            return done

        return run

    def _took(self, seconds: float) -> None:
        if is_postgres():
            return
        growth = min(STEP_SECONDS / max(seconds, 1e-6), _MOST_GROWTH)
        self.rows = min(max(int(self.rows * growth), _LEAST_ROWS), self._most)


def at_once(rows: QuerySet[Any], most: int, *, bytes_of: str) -> list[int]:
    """The numbers of the first of these rows, `most` at most; on SQLite no more than it deletes in
    a moment by what one column holds, but one row at least.

    Reads that column there: not to be asked for while others wait for the lock.
    """
    if is_postgres():
        return list(rows.values_list("id", flat=True)[:most])
    length = Func(F(bytes_of), function="LENGTH", output_field=IntegerField())
    found: list[int] = []
    size = 0
    for pk, length_of_row in rows.values_list("id", length)[:most].iterator(_LOOKED_AT):
        size += length_of_row or 0
        if found and size > _MOST_BYTES:
            break
        found.append(pk)
    return found
