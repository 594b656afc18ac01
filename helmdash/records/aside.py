"""Migrations of indexes beside those who read and write: PostgreSQL, by what Django has for it.

Not within a transaction (a restore makes tables in one), where nobody else is there. SQLite builds
and drops them at once; since such a migration is no transaction there either, it may find done what
it begins with, where its process was killed before that was noted.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations


class AddIndexAside(migrations.AddIndex):
    """As Django's, which keeps writers out for as long as it takes. One that broke off is built
    anew."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """On PostgreSQL aside."""
        connection = schema_editor.connection
        model = to_state.apps.get_model(app_label, self.model_name)
        if not _is_aside(connection):
            if not _is_there(connection, model, self.index.name):
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
                [self.index.name],
            )
            found = cursor.fetchall()
        if found == [(True,)]:
            return
        if found:
            schema_editor.remove_index(model, self.index, concurrently=True)
        schema_editor.add_index(model, self.index, concurrently=True)


class RemoveIndexAside(migrations.RemoveIndex):
    """As Django's, behind which whoever comes waits until all who read before have gone."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """On PostgreSQL aside."""
        connection = schema_editor.connection
        model = from_state.apps.get_model(app_label, self.model_name)
        if not _is_aside(connection):
            if _is_there(connection, model, self.name):
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        index = from_state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
        schema_editor.remove_index(model, index, concurrently=True)


def _is_aside(connection: Any) -> bool:
    return connection.vendor == "postgresql" and not connection.in_atomic_block


def _is_there(connection: Any, model: Any, index: str) -> bool:
    with connection.cursor() as cursor:
        return index in connection.introspection.get_constraints(cursor, model._meta.db_table)
