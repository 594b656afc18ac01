"""The index of conversations by time has their names, in which a search looks for a part of one.

Code of before finds by the new index what it found by the old one.
"""

from __future__ import annotations

from django.db import migrations, models

from helmdash.records.aside import AddIndexAside, RemoveIndexAside


class Migration(migrations.Migration):
    # For the indexes, which are built and dropped aside.
    atomic = False

    dependencies = [
        ("records", "0058_long_lived_conversations"),
    ]

    operations = [
        AddIndexAside(
            model_name="conversation",
            index=models.Index(
                fields=["project", "latest_at", "id", "name"],
                name="conversation_by_time_and_name",
            ),
        ),
        RemoveIndexAside(model_name="conversation", name="conversation_by_time"),
    ]
