"""Times as PostgreSQL writes them: read as Django reads them, by another parser."""

from __future__ import annotations

from datetime import UTC

import pytest
from django.db import DataError, connection

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite's times are text of Django's"
)


# To the microsecond, with noughts at the end left out, without a fraction, and at Python's edges.
_WRITTEN = (
    "2026-11-24 10:31:21.940699+00",
    "2026-11-24 10:31:21.94+00",
    "2026-11-24 10:31:21+00",
    "0001-01-01 00:00:00+00",
    "9999-12-31 23:59:59.999999+00",
)


@pytest.mark.django_db
@pytest.mark.parametrize("written", _WRITTEN)
def test_a_time_is_what_django_reads(written: str) -> None:
    from django.db.backends.postgresql.psycopg_any import BaseTzLoader

    connection.ensure_connection()
    loader = connection.connection.adapters.get_loader(1184, 0)
    parents = type("Utc", (BaseTzLoader,), {"timezone": UTC})
    assert loader is not parents
    assert "Quick" in loader.__name__
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [written])
        (found,) = cursor.fetchone()
    assert found == parents(1184).load(written.encode())
    assert found.tzinfo is UTC


@pytest.mark.django_db
@pytest.mark.parametrize("written", ["infinity", "4713-01-01 00:00:00+00 BC"])
def test_a_time_that_python_has_not_is_an_error_of_the_database(written: str) -> None:
    # psycopg reads what it gets when it is fetched.
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [written])
        with pytest.raises(DataError):
            cursor.fetchone()
