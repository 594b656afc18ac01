"""Channels by Apprise."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("records", "0047_saved_views")]

    operations = [
        migrations.RemoveConstraint(model_name="alertchannel", name="alert_channel_kind_known"),
        migrations.AddConstraint(
            model_name="alertchannel",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "webhook",
                            "slack",
                            "discord",
                            "email",
                            "alertmanager",
                            "pagerduty",
                            "apprise",
                        ],
                    )
                ),
                name="alert_channel_kind_known",
            ),
        ),
    ]
