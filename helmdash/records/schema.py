"""The release of the tables, written down where they are (helmdash.places).

`migrate` is the one that brings tables here, whoever calls it, so it is what writes the mark.
"""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from helmdash.places import OLDEST_CODE, SCHEMA_RELEASE


def mark_release(*, using: str, **_: Any) -> None:
    """After `migrate`: note this code's release, unless some migration of it is still to come."""
    from helmdash.records.models import SchemaMark

    connection = connections[using]
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return
    SchemaMark.objects.using(using).update_or_create(
        release=SCHEMA_RELEASE, defaults={"oldest_code": OLDEST_CODE}
    )
