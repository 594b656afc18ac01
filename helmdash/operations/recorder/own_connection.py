"""The connection of a thread that stores."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections

from helmdash.operations.database.sqlite_file import database_file, existing
from helmdash.records.statements.direct import PREPARED_WHERE_SAID, store_by

# Every count and every word of a closed set is a condition of its table, and every JSON column is
# parsed to see whether it is JSON: a quarter of what SQLite takes to store a call. Whoever writes
# rows for this connection asks the same of whole columns (records.statements.possible_values).
_UNCHECKED = " PRAGMA ignore_check_constraints=ON;"
# SQLite's lock may be held by a command that writes much; waiting for it is not yet an outage.
SQLITE_WAIT_SECONDS = 10


def use_own_connection() -> None:
    """Give this thread a connection beside the pool, which does not wait for a lock for ever.

    It is not to queue behind the pages, and a pool that found its database unavailable tries again
    later and later.
    """
    path = database_file()
    own = connections.create_connection(DEFAULT_DB_ALIAS)
    settings = dict(own.settings_dict)
    options = {name: v for name, v in settings["OPTIONS"].items() if name != "pool"}
    if own.vendor == "sqlite":
        options["timeout"] = SQLITE_WAIT_SECONDS
        options["init_command"] = options.get("init_command", "") + _UNCHECKED
    else:
        options["prepare_threshold"] = PREPARED_WHERE_SAID
    if path is not None:
        settings["NAME"] = existing(path)
    own.settings_dict = {**settings, "OPTIONS": options}
    store_by(own)
