"""An index of the conversations that have gone on for more than a day: few, and those that a list
which ends at some time looks for among all that came after it.

On PostgreSQL it is built aside, while others read and write.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

from helmdash.records.aside import AddIndexAside
from helmdash.records.long_lived import IsLongLived


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
