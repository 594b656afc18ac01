"""Correlation ids are looked up among the names of calls, which tell the time of each.

An index of calls would have to be asked month by month. Others wait for as long as it copies them.
"""

from __future__ import annotations

from django.db import migrations, models

_FILL = """
    UPDATE records_callname SET correlation_id = c.correlation_id FROM records_call c
    WHERE c.project_id = records_callname.project_id AND c.id = records_callname.call_id
        AND c.started_at = records_callname.started_at AND c.name = records_callname.name
        AND c.correlation_id <> ''
"""


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0025_oidc_identities"),
    ]

    operations = [
        migrations.AddField(
            model_name="callname",
            name="correlation_id",
            field=models.CharField(max_length=128, null=True),
        ),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="callname",
            index=models.Index(
                condition=models.Q(("correlation_id__isnull", False)),
                fields=["project", "correlation_id"],
                name="call_name_by_correlation",
                opclasses=["int8_ops", "varchar_pattern_ops"],
            ),
        ),
        migrations.RemoveIndex(model_name="call", name="call_by_correlation"),
    ]
