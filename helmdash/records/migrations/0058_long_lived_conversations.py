"""An index of the conversations that have gone on for more than a day: few, and those that a list
which ends at some time looks for among all that came after it.

On PostgreSQL it is built aside, while others read and write.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

from helmdash.records.long_lived import IsLongLived


class AddIndexAside(migrations.AddIndex):
    """As Django's, which keeps writers out for as long as it takes; not within a transaction (a
    restore), where nobody else is there. One that broke off is built anew."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """On PostgreSQL aside."""
        connection = schema_editor.connection
        if connection.vendor != "postgresql" or connection.in_atomic_block:
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
        model = to_state.apps.get_model(app_label, self.model_name)
        if found:
            schema_editor.remove_index(model, self.index, concurrently=True)
        schema_editor.add_index(model, self.index, concurrently=True)


def tell_how_long(_apps: Any, schema_editor: Any) -> None:
    """Have PostgreSQL know how few conversations go on for long: it takes a third of all for that, and
    reads all of them instead of the index."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE STATISTICS IF NOT EXISTS conversation_lasted"
            " ON (latest_at - started_at) FROM records_conversation"
        )


class Migration(migrations.Migration):
    # For the index that is built aside.
    atomic = False

    dependencies = [
        ("records", "0057_projects_asked_once"),
    ]

    operations = [
        AddIndexAside(
            model_name="conversation",
            index=models.Index(
                fields=["project", "latest_at", "id"],
                condition=models.Q(IsLongLived("latest_at", "started_at")),
                name="long_conversation_by_time",
            ),
        ),
        migrations.RunPython(tell_how_long, migrations.RunPython.noop, elidable=False),
    ]
