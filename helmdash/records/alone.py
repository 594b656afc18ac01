"""Tables for a change of the catalog alone, while others use them. PostgreSQL.

`ALTER TABLE` waits for everybody who has the table open, and everybody who comes after waits behind
it. So the lock is asked for a second at a time and let go of in between.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction
from django.db.utils import OperationalError

_LOCK_WAIT = "1s"
_TRIES, _PAUSE_SECONDS = 300, 0.5


def lock_alone(connection: Any, *tables: str) -> None:
    """Until this transaction ends nobody else uses the tables, not even to read.

    Who uses them is waited for, without those behind waiting long: for some minutes. Raises
    OperationalError where there was always somebody.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
    for left in reversed(range(_TRIES)):
        try:
            # A lock that was not had is let go of at once, so that who came behind goes on.
            with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                cursor.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
            return
        except OperationalError as error:
            # 55P03: lock_not_available
            if getattr(error.__cause__, "sqlstate", None) != "55P03" or not left:
                raise
        time.sleep(_PAUSE_SECONDS)
