"""Months of calls: on PostgreSQL each is a table of its own, with what hangs on its calls.

A month is made ahead (`operations.database.months`), or when the first row of it comes: reports
may tell of times long ago. SQLite has no partitions, and nothing here does anything there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from django.db import connection, transaction

from helmdash.records.statements.direct import is_postgres

# The tables by the time of a call, `started_at`.
TABLES = ("records_call", "records_callpayload")
# Whatever is older lies in one partition: models with an API are younger, and a clock that is wrong
# by decades shall not make hundreds of tables.
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_MONTHS_AHEAD = 2
# New ones in a transaction: a year.
MOST_AT_ONCE = 12

Month = datetime | None  # its first moment; None is all that is before FIRST

# What this process has seen to be there. Another may drop a month since: see `is_missing`.
_known: set[Month] = set()


def month_of(at: datetime) -> Month:
    """The month that a time is in, in UTC."""
    if at < FIRST:
        return None
    at = at.astimezone(UTC)
    return datetime(at.year, at.month, 1, tzinfo=UTC)


def month_after(month: Month) -> datetime:
    """The first moment that is not in a month any more."""
    if month is None:
        return FIRST
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


def partition_of(table: str, month: Month) -> str:
    """The name of a partition."""
    return f"{table}_before" if month is None else f"{table}_{month:%Y_%m}"


def new_months(times: Iterable[datetime]) -> list[list[Month]]:
    """The months of these times that have no partition yet, as many together as one transaction
    may make; none for so few times that they cannot be too many.

    A partition takes locks of its own; a history of years in one report would take hundreds.
    """
    if not is_postgres():
        return []
    some = list(times)
    if len(some) <= MOST_AT_ONCE:
        return []
    missing = _months(some) - _known
    if missing:
        missing -= set(existing())
    found = sorted(missing, key=month_after)
    return [found[at : at + MOST_AT_ONCE] for at in range(0, len(found), MOST_AT_ONCE)]


def provide(times: Iterable[datetime]) -> None:
    """See that the months of these times have their partitions, inside of the transaction."""
    if not is_postgres():
        return
    make(_months([*times]) - _known)


def _months(times: Sequence[datetime]) -> set[Month]:
    """Of calls that are recorded together nearly always one: not looked for in each."""
    ends = {month_of(min(times)), month_of(max(times))} if times else set()
    return ends if len(ends) < 2 else {month_of(at) for at in times}


def make(months: Collection[Month]) -> None:
    """See that these months have their partitions, inside of the transaction."""
    missing = set(months)
    if not missing:
        return
    missing -= set(existing())
    if not missing:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        # One makes them at a time, and whoever waited finds them. Reading and writing go on.
        cursor.execute(f"LOCK TABLE ONLY {TABLES[0]} IN SHARE UPDATE EXCLUSIVE MODE")
        missing -= set(existing())
        for statement in statements(missing):
            cursor.execute(statement)


def months_ahead(now: datetime) -> list[datetime]:
    """This month and the next ones, by their first moments."""
    months = [now.astimezone(UTC)]
    for _ in range(_MONTHS_AHEAD):
        months.append(month_after(month_of(months[-1])))
    return months


def statements(months: Iterable[Month], *, tables: Sequence[str] = TABLES) -> Iterator[str]:
    """What makes the partitions of some months, on a connection of anybody's.

    Attached, for to be made as a partition would take the lock of all readers.
    """
    for month in months:
        start = "MINVALUE" if month is None else f"'{month.isoformat()}'"
        bounds = f"FROM ({start}) TO ('{month_after(month).isoformat()}')"
        for table in tables:
            name = partition_of(table, month)
            yield (
                f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS"
                " INCLUDING STORAGE INCLUDING COMPRESSION)"
            )
            yield f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES {bounds}"


def existing() -> list[Month]:
    """The months that have partitions, in order; known from now on. One query."""
    if not is_postgres():
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = to_regclass(%s) ORDER BY 1",
            [TABLES[0]],
        )
        ends = [str(name).removeprefix(f"{TABLES[0]}_") for (name,) in cursor.fetchall()]
    months = [_read(end) for end in ends]
    _known.update(months)
    return sorted(months, key=month_after)


def is_missing(error: Exception) -> bool:
    """Whether a row had no partition to go to: another process has dropped it.

    Then it is forgotten that it was there, so that the next try makes it again.
    """
    cause = error.__cause__
    found = (
        getattr(cause, "sqlstate", None) == "23514"
        # A check that a row breaks has a name.
        and getattr(getattr(cause, "diag", None), "constraint_name", "") is None
    )
    if found:
        forget()
    return found


def forget() -> None:
    """Look again which months there are."""
    _known.clear()


def _read(end: str) -> Month:
    if end == "before":
        return None
    year, month = end.split("_")
    return datetime(int(year), int(month), 1, tzinfo=UTC)
