"""A table of the ids of calls, apart from the calls: what is unique holds for no partition alone.

Others wait for as long as it copies names.
"""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

_FILL = """
    INSERT INTO records_callname
        (project_id, name, call_id, started_at, conversation_id, generation)
    SELECT project_id, name, id, started_at, conversation_id, generation FROM records_call
"""


def drop_unique_indexes(apps: Any, schema_editor: Any) -> None:
    """On SQLite they are gone with the old table, which the next step makes anew, once."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX call_name")
        schema_editor.execute("DROP INDEX call_generation")


def order_by_bytes(apps: Any, schema_editor: Any) -> None:
    """So that the key itself finds names by their beginning; SQLite's order is that one."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            'ALTER TABLE records_callname ALTER COLUMN name TYPE varchar(128) COLLATE "C"'
        )


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0013_rollups"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(model_name="call", name="call_name"),
                migrations.RemoveConstraint(model_name="call", name="call_generation"),
            ],
            database_operations=[
                migrations.RunPython(drop_unique_indexes, migrations.RunPython.noop)
            ],
        ),
        migrations.AlterField(
            model_name="call",
            name="conversation",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="calls",
                to="records.conversation",
            ),
        ),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False)),
                fields=["project", "conversation", "generation"],
                name="call_by_generation",
            ),
        ),
        migrations.CreateModel(
            name="CallName",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "project_id",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="records.project",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="The client's own id, or one we made.", max_length=128
                    ),
                ),
                ("call_id", models.BigIntegerField()),
                (
                    "started_at",
                    models.DateTimeField(help_text="The call's: in which partition it is."),
                ),
                ("conversation_id", models.BigIntegerField(null=True)),
                ("generation", models.PositiveBigIntegerField(null=True)),
            ],
        ),
        migrations.RunPython(order_by_bytes, migrations.RunPython.noop),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="callname",
            constraint=models.UniqueConstraint(
                condition=models.Q(("conversation_id__isnull", False)),
                fields=("project", "conversation_id", "generation"),
                name="call_generation",
            ),
        ),
    ]
