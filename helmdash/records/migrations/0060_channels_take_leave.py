"""A channel that is deleted is kept until it has heard that what it was told of is over for it."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0059_names_by_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="alertchannel",
            name="left_at",
            field=models.DateTimeField(
                help_text="When it was switched off, with what it is still to hear.", null=True
            ),
        ),
        migrations.AddField(
            model_name="alertchannel",
            name="gone_at",
            field=models.DateTimeField(
                help_text="When it was deleted, but for what it is still to hear.", null=True
            ),
        ),
    ]
