"""Rules of alerts may watch how full a conversation is, at a percentage of one's own."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0062_offered_tools"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="alertrule", name="alert_rule_kind_known"),
        migrations.AddConstraint(
            model_name="alertrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "level",
                            "fullness",
                            "countdown",
                            "cut",
                            "refusal",
                            "failing",
                            "failure_rate",
                            "latency",
                            "silence",
                            "recorder_lag",
                            "export_lag",
                        ],
                    )
                ),
                name="alert_rule_kind_known",
            ),
        ),
    ]
