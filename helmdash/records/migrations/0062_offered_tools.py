"""Calls keep which tools were sent, and the bytes of each."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0061_spending_by_client"),
    ]

    operations = [
        migrations.AddField(
            model_name="callpayload",
            name="offered",
            field=models.JSONField(
                help_text="Tools that were sent and their bytes (core.calls.tool_schemas).",
                null=True,
            ),
        ),
    ]
