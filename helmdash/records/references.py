"""Which stored messages are still referred to: by the lists of hashes that calls keep.

There is no index for it, and it is asked only when something is erased: one walk over the payloads
of a project, inside of the database.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from django.db import connection, transaction

from helmdash.records.models import Call, CallPayload

_PAYLOADS = CallPayload._meta.db_table
_CALLS = Call._meta.db_table
_POSTGRES = f"""
    SELECT DISTINCT each.value FROM {_PAYLOADS} p
    CROSS JOIN LATERAL jsonb_array_elements_text(p.message_hashes) AS each(value)
    WHERE p.project_id = %s AND jsonb_typeof(p.message_hashes) = 'array' AND each.value = ANY(%s)
"""
_SQLITE = f"""
    SELECT DISTINCT each.value FROM {_PAYLOADS} p, json_each(p.message_hashes) each
    WHERE p.project_id = %s AND p.message_hashes IS NOT NULL
    AND each.value IN (SELECT value FROM json_each(%s))
"""


def referred_to(project_id: int, hashes: Collection[str]) -> frozenset[str]:
    """Those of the hashes that some call of the project still lists. Reads all its payloads."""
    if not hashes:
        return frozenset()
    is_postgres = connection.vendor == "postgresql"
    wanted = list(hashes) if is_postgres else json.dumps(list(hashes))
    with connection.cursor() as cursor:
        cursor.execute(_POSTGRES if is_postgres else _SQLITE, [project_id, wanted])
        return frozenset(row[0] for row in cursor.fetchall())


def wait_for_writers() -> None:
    """Return once every transaction that is writing calls now has ended.

    On SQLite one writes at a time, so that whoever has just written has waited for all others.
    """
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {_CALLS} IN SHARE MODE")
