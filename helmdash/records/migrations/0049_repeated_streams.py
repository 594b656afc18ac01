"""A stream asked for again: the later attempt has the generation, the earlier one names it."""

from typing import Any

from django.db import migrations, models

_NUMBERED = models.CheckConstraint(
    condition=models.Q(
        models.Q(conversation__isnull=True, generation__isnull=True),
        models.Q(conversation__isnull=False, generation__isnull=False),
        models.Q(generation__isnull=True, lane="side", lane__isnull=False),
        models.Q(attempt_of__isnull=False, conversation__isnull=False, generation__isnull=True),
        _connector="OR",
    ),
    name="call_generation_with_conversation",
)


def swap_constraint(apps: Any, schema_editor: Any) -> None:
    """Every stored call keeps the new rule, for it kept the stricter one before: none is read.

    SQLite can change a constraint by copying the table only; that is done once.
    """
    call = apps.get_model("records", "Call")
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.add_constraint(call, _NUMBERED)
        return
    # Gone with its column where somebody went back from here before.
    table, name = map(schema_editor.quote_name, (call._meta.db_table, _NUMBERED.name))
    schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
    schema_editor.execute(f"{_NUMBERED.create_sql(call, schema_editor)} NOT VALID", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0048_apprise_channels"),
    ]

    operations = [
        migrations.AddField(
            model_name="call",
            name="attempt_of",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="The generation that a later attempt took over. Null: none did.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="earlier_attempts",
            field=models.PositiveBigIntegerField(
                blank=True,
                help_text="Calls whose generation a later attempt took. Null: none.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="newest_stream",
            field=models.JSONField(null=True),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="call", name="call_generation_with_conversation"
                ),
                migrations.AddConstraint(model_name="call", constraint=_NUMBERED),
            ]
        ),
        migrations.RunPython(swap_constraint, migrations.RunPython.noop),
    ]
